// The list of earlier conversations: search, open, rename and delete them.
import { get, patch, remove } from "./api.js";
import { $, el, tell, tool } from "./dom.js";

const LEAST = 6; // conversations from which on the list can be searched
let all = [];

// open: shows a conversation. deleted: called after one was deleted. trouble: shows an error.
export const acts = { open: null, deleted: null, trouble: null };

export async function listThreads(shown) {
  all = (await get("/api/threads")).threads;
  $("find").hidden = all.length < LEAST && !$("find").value;
  drawThreads(shown);
}

export function drawThreads(shown) {
  const words = $("find").value.trim().toLowerCase(), today = new Date().toDateString(), groups = new Map();
  const found = all.filter(({ title }) => title.toLowerCase().includes(words));
  for (const one of found) {
    const day = new Date(one.updated), name = day.toDateString() === today ? "Today" : day.toLocaleDateString("en", { month: "long", day: "numeric", year: "numeric" });
    groups.set(name, [...(groups.get(name) ?? []), line(one, shown)]);
  }
  const focused = $("list").contains(document.activeElement) ? document.activeElement.dataset.thread : null;
  $("list").replaceChildren(...[...groups].flatMap(([name, items]) => [el("h2", null, name), el("ul", null, items)]),
    words && !found.length ? el("p", { class: "soft" }, "No conversation has these words in its title.") : "");
  if (focused) $("list").querySelector(`[data-thread="${CSS.escape(focused)}"]`)?.focus();
  markThread(shown);
}

export function markThread(shown) {
  for (const one of document.querySelectorAll("[data-thread]")) {
    if (one.dataset.thread === shown) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
}

function line(one, shown) {
  const tried = (act) => () => act().catch((error) => acts.trouble(error.message));
  return el("li", { class: "thread" },
    el("button", { type: "button", dir: "auto", "data-thread": one.id, title: one.title, onclick: tried(() => acts.open(one.id)) }, one.title),
    tool("edit", `Rename “${one.title}”`, tried(() => rename(one, shown))), tool("bin", `Delete “${one.title}”`, tried(() => drop(one, shown))));
}

async function rename(one, shown) {
  const title = await ask("Rename the conversation", "", "Rename", one.title);
  if (!title || title === one.title) return;
  await patch(path(one), { title });
  await listThreads(shown);
  tell("Renamed.");
}

async function drop(one, shown) {
  if (!await ask("Delete the conversation?", `“${one.title}”, with its questions, answers and feedback, is deleted from the server.`, "Delete")) return;
  await remove(path(one));
  acts.deleted(one.id);
  await listThreads(one.id === shown ? null : shown);
  tell("Deleted.");
}

const path = ({ id }) => `/api/threads/${encodeURIComponent(id)}`;

// Ask in a dialog. Returns the text of its field, or true if it has none; null if the user cancels.
function ask(title, about, yes, value) {
  $("change-title").textContent = title;
  $("change-about").textContent = about;
  $("change-about").hidden = !about;
  $("change-field").hidden = value === undefined;
  $("change-field").required = value !== undefined;
  $("change-field").value = value ?? "";
  $("change-yes").textContent = yes;
  $("change").returnValue = "";
  $("change-no").onclick = () => $("change").close();
  $("change").showModal();
  return new Promise((done) => {
    $("change").onclose = () => done($("change").returnValue !== "yes" ? null : value === undefined ? true : $("change-field").value.trim());
  });
}
