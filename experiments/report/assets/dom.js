// Every element is made here. What comes from a run is only ever text, and no attribute's name is.
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

function button(words, attributes, act) {
  const made = el("button", { type: "button", ...attributes }, words);
  made.addEventListener("click", act);
  return made;
}

// Details whose content is made when they are first opened.
function folded(attributes, summary, make) {
  const details = el("details", attributes, el("summary", null, summary));
  const fill = () => {
    if (!details.open || details.childElementCount > 1) return;
    const place = el("div", { class: "folded" });
    details.append(place);
    Promise.resolve(make()).then((made) => place.append(...[made].flat()), (error) => place.append(broken(error)));
  };
  details.addEventListener("toggle", fill);
  return details;
}

const broken = (error) => el("p", { class: "failure" }, `This browser could not unpack the text (${error.name}).`);
const count = (number) => number.toLocaleString("en");
const plural = (number, word, words) => `${count(number)} ${number === 1 ? word : words ?? `${word}s`}`;
const number = (cell) => el("span", { class: "number" }, String(cell));
const badge = (words, kind) => el("span", { class: `badge ${kind}` }, words);
const hint = (words) => el("p", { class: "hint" }, words);
const cut = (left) => (left ? el("p", { class: "cut" }, `${count(left)} further characters are left out here.`) : null);

// A text may come alone or with the number of characters that are left out of it.
const wordsOf = (piece) => (Array.isArray(piece) ? piece[0] : piece ?? "");
const leftOf = (piece) => (Array.isArray(piece) ? piece[1] : 0);

const CLIP = 6000;

// A text with what is looked for marked in it; a long one begins with its first characters.
function textOf(piece, needles, kind) {
  const words = wordsOf(piece);
  const box = el("div", { class: `text ${kind ?? ""}`.trim(), dir: "auto", tabindex: words.length > 1500 ? "0" : null },
    marked(words.slice(0, CLIP), needles));
  if (words.length <= CLIP) return [box, cut(leftOf(piece))];
  const more = button(`Show ${count(words.length - CLIP)} further characters`, { class: "more-text" }, () => {
    box.append(...[marked(words.slice(CLIP), needles)].flat());
    more.remove();
    box.focus();
  });
  return [box, more, cut(leftOf(piece))];
}

const MOST_MARKS = 400;

// needles: [text, class] pairs, whatever their case; the first that fits is marked.
function marked(words, needles) {
  const wanted = (needles ?? []).filter(([needle]) => needle);
  if (!wanted.length) return [words];
  const any = new RegExp(wanted.map(([needle]) => `(${needle.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")})`).join("|"), "giu");
  const pieces = [];
  let at = 0;
  for (const match of words.matchAll(any)) {
    if (pieces.length > MOST_MARKS) break;
    const which = match.slice(1).findIndex((group) => group !== undefined);
    pieces.push(words.slice(at, match.index), el("mark", { class: wanted[which][1] }, match[0]));
    at = match.index + match[0].length;
  }
  return [...pieces, words.slice(at)];
}
