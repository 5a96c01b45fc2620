// The chat page: the current conversation, earlier ones, and keyboard shortcuts.
import { events, get, openSession, signedIn, signOut } from "./api.js";
import { Answer } from "./answer.js";
import { choice, drawChoice, lanes, named, scoreOf } from "./choose.js";
import { $, el, icon, settle, tell } from "./dom.js";
import { close, isOpen } from "./pane.js";
import { acts, drawThreads, listThreads, markThread } from "./threads.js";

const page = { threads: [], running: null, shown: null }; // thread of each lane; AbortController of running answers; shown thread

async function start() {
  $("new").append(icon("plus"), "New conversation");
  $("menu").append(icon("menu"));
  $("narrow").append(icon("filter"));
  $("leave").append(icon("leave"), "Sign out");
  drawSend();
  try {
    await openSession();
    const { configurations, explore, title, examples } = await get("/api/configurations");
    Object.assign(choice, { all: configurations, explore });
    $("title").textContent = $("heading").textContent = document.title = title;
    $("leave").hidden = !signedIn();
    drawEmpty(title, examples);
    drawChoice(onChoice);
    const thread = new URL(location.href).searchParams.get("thread");
    await Promise.all([listThreads(page.shown), thread ? openThread(thread) : begin()]);
  } catch (error) {
    trouble(error.message);
  }
  settle();
}

function drawEmpty(title, examples) {
  $("empty").replaceChildren(el("h2", null, title),
    el("p", { class: "soft" }, "Answers come from the documents and name their sources. The model can be wrong: open the sources to check."),
    examples.length ? el("ul", { id: "examples", "aria-label": "Example questions" }, examples.map((question) =>
      el("li", null, el("button", { type: "button", dir: "auto", onclick: () => ask(question) }, question)))) : "",
    choice.all.length > 1 ? el("div", { id: "cards" }) : "");
}

function onChoice(restart) {
  drawChoice(onChoice);
  if (restart && $("turns").childElementCount) begin();
}

function begin() {
  stop();
  close();
  page.threads = [];
  page.shown = null;
  $("turns").replaceChildren();
  $("empty").hidden = false;
  address(null);
  markThread(page.shown);
  $("question").focus();
}

function address(thread) {
  const url = new URL(location.href);
  if (thread) url.searchParams.set("thread", thread);
  else url.searchParams.delete("thread");
  history.replaceState(null, "", url);
}

async function ask(question) {
  stop();
  $("empty").hidden = true;
  const where = $("where").value.trim();
  const names = lanes(), several = choice.all.length > 1;
  const answers = names.map((name) => new Answer(() => ask(question), several ? labelOf(name ?? "") : null, several ? labelOf : null));
  const turn = addTurn(question, answers, where);
  turn.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  const running = page.running = new AbortController();
  drawSend();
  tell("Searching.");
  await Promise.all(answers.map((answer, lane) => follow(answer, lane, { question, thread: page.threads[lane] ?? null, configuration: names[lane], where: where || null }, running.signal)));
  if (page.running === running) page.running = null;
  drawSend();
  listThreads(page.shown).catch(() => {});
}

function addTurn(question, answers, where) {
  const turn = el("li", { class: "turn" }, el("h2", { class: "asked", dir: "auto" }, question),
    where ? el("p", { class: "within soft" }, icon("filter"), el("span", null, "Searched only ", el("bdi", null, where))) : null,
    el("div", { class: answers.length > 1 ? "lanes two" : "lanes" }, answers.map((answer) => answer.element)));
  $("turns").append(turn);
  return turn;
}

const labelOf = (name) => { const one = named(name); return one ? [el("bdi", null, name), scoreOf(one) ? ` · ${scoreOf(one)}` : ""] : name ?? "A/B test: rate the answer to see what gave it"; };

async function follow(answer, lane, asked, signal) {
  try {
    for await (const event of events("/api/ask", asked, signal)) {
      if (event.event === "begun" && !signal.aborted) {
        page.threads[lane] = event.thread;
        if (choice.all.length > 1) answer.label.replaceChildren(...[labelOf(event.configuration)].flat());
        if (!choice.beside) address(page.shown = event.thread);
      }
      answer.take(event);
    }
    answer.fail("Incomplete answer", "The connection was lost.");
  } catch (error) {
    if (error.name === "AbortError") answer.fail("Stopped", "You stopped this answer.");
    else answer.fail("The question could not be sent", error.message);
  }
}

function stop() {
  page.running?.abort();
  page.running = null;
  drawSend();
}

function drawSend() {
  const busy = page.running !== null, words = busy ? "Stop" : "Ask";
  $("send").replaceChildren(icon(busy ? "stop" : "send"));
  $("send").setAttribute("aria-label", words);
  $("send").title = words;
  $("send").disabled = !busy && !$("question").value.trim();
}

function trouble(words) {
  $("empty").hidden = false;
  $("empty").replaceChildren(el("div", { class: "answer failed" }, el("div", { class: "words" }, icon("trouble"), el("div", null,
    el("strong", null, "The page could not be loaded"), el("p", null, words)))));
}

async function openThread(id) {
  const { turns } = await get(`/api/threads/${encodeURIComponent(id)}`);
  stop();
  close();
  page.threads = [page.shown = id];
  choice.beside = null;
  drawChoice(onChoice);
  $("empty").hidden = true;
  $("turns").replaceChildren();
  for (const { question, answer, where, feedback } of turns) {
    const several = choice.all.length > 1;
    const one = new Answer(() => ask(question), answer && several ? labelOf(answer.configuration) : null, several ? labelOf : null);
    addTurn(question, [one], where);
    if (answer) one.show(answer, feedback);
    else one.fail("Incomplete answer", "The server stopped before the answer ended.");
  }
  showFilter(turns.at(-1)?.where ?? "");
  address(id);
  markThread(page.shown);
  showThreads(false);
  $("turns").lastElementChild?.scrollIntoView({ block: "start" });
  $("question").focus();
}

function showThreads(open) {
  document.body.classList.toggle("threads", open);
  $("menu").setAttribute("aria-expanded", String(open));
  if (open) ($("list").querySelector("[data-thread]") ?? $("new")).focus();
}

// Show the filter of the next question, or hide it; a hidden filter is empty, so that none acts unseen.
function showFilter(where) {
  $("filter").hidden = !where && where !== null;
  $("where").value = where ?? "";
  $("narrow").setAttribute("aria-expanded", String(!$("filter").hidden));
}

$("composer").onsubmit = (event) => {
  event.preventDefault();
  if (page.running) return stop();
  const question = $("question").value.trim();
  if (!question) return $("question").focus();
  $("question").value = "";
  return ask(question);
};
$("question").oninput = drawSend;
$("question").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!page.running) $("composer").requestSubmit();
};
$("narrow").onclick = () => {
  showFilter($("filter").hidden ? null : "");
  $($("filter").hidden ? "question" : "where").focus();
};
$("where").onkeydown = (event) => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  showFilter("");
  $("question").focus();
};
$("new").onclick = () => { showThreads(false); begin(); };
$("menu").onclick = () => showThreads(!document.body.classList.contains("threads"));
$("find").oninput = () => drawThreads(page.shown);
$("leave").onclick = () => signOut().catch((error) => trouble(error.message));
Object.assign(acts, { open: openThread, trouble, deleted: (id) => { if (id === page.shown) begin(); } });
$("list").onkeydown = (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], every = [...$("list").querySelectorAll("[data-thread]")];
  if (!step) return;
  event.preventDefault();
  every[(every.indexOf(document.activeElement) + step + every.length) % every.length]?.focus();
};
document.onkeydown = (event) => {
  const typing = event.target.closest("input, textarea, dialog");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    $("question").focus();
  } else if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open], :popover-open")) {
    if (isOpen()) close();
    else if (document.body.classList.contains("threads")) { showThreads(false); $("menu").focus(); }
    else if (page.running) stop();
  }
};

start();
