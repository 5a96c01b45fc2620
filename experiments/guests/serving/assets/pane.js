// The side pane with a source or a trace, and the preview card of a citation.
import { openSession } from "./api.js";
import { $, el, tool, tell } from "./dom.js";

let opener = null;

export function openSource(source, from) {
  const frame = el("iframe", { sandbox: "allow-same-origin", referrerpolicy: "no-referrer", title: source.title });
  openSession().catch(() => {}).then(() => { frame.src = source.url.slice(1); }); // the cookie may have expired
  // No script runs in the frame. It takes the focus on a click, but Escape still closes the pane.
  frame.onload = () => frame.contentDocument?.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  const away = el("a", { class: "quiet", href: source.url.slice(1), target: "_blank", rel: "noopener", "aria-label": "Open in a new tab", title: "Open in a new tab" });
  away.append(tool("out", "").firstChild);
  open([el("span", { class: "number" }, String(source.n)), " ", el("bdi", null, source.title)], [away], [el("p", { class: "opening" }, "Loading the document"), frame], from);
  $("pane").dataset.kind = "source";
  tell(`Source ${source.n} is open: ${source.title}`);
}

export function openParts(title, parts, from) {
  open([title], [], parts, from);
  $("pane").dataset.kind = "trace";
}

function open(title, tools, parts, from) {
  $("pane-title").replaceChildren(...title);
  $("pane-tools").replaceChildren(...tools, tool("close", "Close (Esc)", close, { id: "pane-close" }));
  $("pane-body").replaceChildren(...parts);
  for (const one of document.querySelectorAll("[data-open]")) delete one.dataset.open;
  if (from) from.dataset.open = "";
  opener = from ?? opener;
  $("pane").hidden = false;
  document.body.classList.add("split");
  $("pane").focus({ preventScroll: true });
  hidePeek();
}

export const isOpen = () => !$("pane").hidden;

export function close() {
  if (!isOpen()) return;
  $("pane").hidden = true;
  $("pane-body").replaceChildren();
  document.body.classList.remove("split");
  if (opener) delete opener.dataset.open;
  (opener?.isConnected ? opener : $("question")).focus();
  opener = null;
}

// Create the chip of a citation. A click opens its first source; hovering previews all of them.
export function chipOf(sources) {
  const numbers = sources.map(({ n }) => n).join(", "), names = sources.map(({ title }) => title).join("; ");
  return el("button", {
    type: "button", class: "chip", "aria-label": `${sources.length > 1 ? "Sources" : "Source"} ${numbers}: ${names}`,
    onclick: ({ currentTarget }) => openSource(sources[0], currentTarget),
    onpointerenter: ({ currentTarget, pointerType }) => { if (pointerType === "mouse") peek(currentTarget, sources); },
    onpointerleave: hidePeek, onblur: hidePeek,
    onfocus: ({ currentTarget }) => { if (currentTarget.matches(":focus-visible")) peek(currentTarget, sources); },
  }, numbers);
}

const PEEK = 260; // characters

function peek(chip, sources) {
  $("peek").replaceChildren(...sources.slice(0, 3).map(({ title, text }) => el("div", null,
    el("strong", { dir: "auto" }, title), el("p", { dir: "auto" }, text.length > PEEK ? `${text.slice(0, PEEK)}…` : text))));
  $("peek").hidden = false;
  const { left, top, bottom } = chip.getBoundingClientRect(), { width, height } = $("peek").getBoundingClientRect();
  $("peek").style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  $("peek").style.top = `${bottom + height + 12 < innerHeight ? bottom + 6 : Math.max(8, top - height - 6)}px`;
}

function hidePeek() { $("peek").hidden = true; }
