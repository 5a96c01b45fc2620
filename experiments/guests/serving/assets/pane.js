// What stands beside an answer: a source with its passage marked, or the trace; and the card that a chip shows.
import { openSession } from "./api.js";
import { $, el, tool, tell } from "./dom.js";

let opener = null;

export function openSource(source, from) {
  const frame = el("iframe", { sandbox: "allow-same-origin", referrerpolicy: "no-referrer", title: source.title });
  openSession().catch(() => {}).then(() => { frame.src = source.url; }); // the one of this morning may have ended
  // No script runs in it. A click there takes the keys with it: Escape still closes.
  frame.onload = () => frame.contentDocument?.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  const away = el("a", { class: "quiet", href: source.url, target: "_blank", rel: "noopener", "aria-label": "Open in a tab of its own", title: "Open in a tab of its own" });
  away.append(tool("out", "").firstChild);
  open([el("span", { class: "number" }, String(source.n)), " ", el("bdi", null, source.title)], [away], [el("p", { class: "opening" }, "Opening the document"), frame], from);
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

// A chip for the sources of one mark: it opens the first, and shows what all of them say.
export function chipOf(sources) {
  const names = sources.map(({ n, title }) => `${n}: ${title}`).join("; ");
  return el("button", {
    type: "button", class: "chip", "aria-label": `Source ${names}`,
    onclick: ({ currentTarget }) => openSource(sources[0], currentTarget),
    onpointerenter: ({ currentTarget, pointerType }) => { if (pointerType === "mouse") peek(currentTarget, sources); },
    onpointerleave: hidePeek, onblur: hidePeek,
    onfocus: ({ currentTarget }) => { if (currentTarget.matches(":focus-visible")) peek(currentTarget, sources); },
  }, sources.map(({ n }) => n).join(", "));
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
