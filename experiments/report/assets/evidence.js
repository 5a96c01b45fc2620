// The passages that the chosen answers were shown: who cited each, and whether it is gold.
function evidenceOf(question, data, chosen) {
  const passages = data.passages ?? [];
  const shown = new Set(chosen.flatMap((cell) => [...(data.answers[cell] ? numbered(data.answers[cell]).values() : [])]));
  const places = passages.map((_, place) => place);
  const others = places.filter((place) => !shown.has(place));
  const box = el("div", { class: "evidence" }, el("h3", null, "Evidence"), hint(goldNote(data)),
    shown.size ? null : el("p", { class: "none" }, chosen.length ? "The chosen answers were shown no passage." : "No answer is chosen."),
    places.filter((place) => shown.has(place)).map((place) => passageOf(question, place, data, chosen)));
  if (others.length) {
    const more = button(`Show ${plural(others.length, "passage")} of the other cells`, { class: "others" }, () => {
      more.replaceWith(...others.map((place) => passageOf(question, place, data, chosen)));
    });
    box.append(more);
  }
  return box;
}

function goldNote(data) {
  const marked = (data.passages ?? []).filter((passage) => passage.gold).length;
  if (!data.gold_total) return "This question names no gold evidence.";
  return `Gold evidence: ${data.gold_total} in all; ${plural(marked, "passage counts", "passages count")} as gold, over all cells.`;
}

// Which cells showed a passage, with what numbers, and which of them cited it.
function useOf(place, data) {
  const use = { numbers: new Set(), shown: [], cited: [] };
  data.answers.forEach((answer, cell) => {
    for (const [shownAs, at] of answer ? numbered(answer) : []) {
      if (at !== place) continue;
      use.numbers.add(shownAs);
      use.shown.push(cell);
      if ((answer.cited ?? []).includes(shownAs)) use.cited.push(cell);
    }
  });
  return use;
}

function passageOf(question, place, data, chosen) {
  const passage = data.passages[place];
  const use = useOf(place, data);
  const cited = use.cited.filter((cell) => chosen.includes(cell));
  const by = use.cited.length - cited.length;
  const kinds = `passage${cited.length ? " cited" : ""}${passage.gold ? " is-gold" : ""}`;
  return el("details", { class: kinds, "data-place": place, open: Boolean(cited.length || passage.gold) },
    el("summary", null, el("span", { class: "mark" }, [...use.numbers].map((shownAs) => `[${shownAs}]`).join(", ")), " ",
      el("bdi", { class: "source-name" }, passage.source), " ", el("span", { class: "n" }, whereOf(passage)), " ",
      passage.gold ? [badge(`gold by ${passage.gold}`, "gold-mark"), " "] : null,
      cited.length || by ? el("span", { class: "by" }, "cited by ", cited.map((cell) => chip(cell, chosen)),
        by ? el("span", { class: "n" }, cited.length ? ` and ${by} more` : plural(by, "other cell")) : null) : null),
    contentOfPassage(passage, data));
}

const chip = (cell, chosen) => el("span", { class: `number key-${chosen.indexOf(cell) % 6}`, title: index.cells[cell].label }, String(index.cells[cell].number));

function whereOf(passage) {
  const [first, last] = passage.pages ?? [];
  const pages = first === undefined ? "" : first === last ? `, page ${first}` : `, pages ${first} to ${last}`;
  return `${passage.format}${pages}, characters ${count(passage.start)} to ${count(passage.end)}`;
}

function contentOfPassage(passage, data) {
  const pieces = item("evidence", passage.text);
  if (pieces === undefined) return el("p", { class: "cut" }, "Not in this page, to keep it small. The run folder has it.");
  const words = [pieces[0] ?? "", pieces[1]?.left_out ?? 0];
  const needles = [[state.text.trim(), "hit"], ...(data.gold ?? []).map((gold) => [goldNeedle(wordsOf(gold)), "gold-text"])];
  if (passage.format !== "html") return textOf(words, needles, "source");
  return [textOf([readable(words[0]), words[1]], needles, "source"),
    folded({ class: "rest" }, "HTML, as the model saw it", () => textOf(words, needles, "source"))];
}

// Short answers such as `no` stand everywhere.
const goldNeedle = (words) => (words.length > 2 && words.length < 200 && !/^(yes|no|the)$/i.test(words) ? words : "");

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

// What a reader sees of HTML: tags gone, cells and blocks apart. It is only ever shown as text. The browser's own
// parser is not asked: it would look at style attributes, which the page's policy refuses with complaints.
function readable(source) {
  return source.replace(/<(script|style)\b[\s\S]*?<\/\1\s*>|<!--[\s\S]*?-->/gi, "")
    .replace(/<\/t[dh]\s*>\s*(?=<t[dh]\b)/gi, " | ")
    .replace(/<(br|\/?(p|div|tr|li|ul|ol|table|h[1-6]|section|article|blockquote|pre))\b[^<>]*>/gi, "\n")
    .replace(/<\/?[a-z][^<>]*>/gi, "")
    .replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|amp|lt|gt|quot|apos|nbsp);/gi, (whole, name) => decoded(name) ?? whole)
    .replace(/[ \t]+\n/g, "\n").replace(/\n[ \t]+/g, "\n").replace(/\n{3,}/g, "\n\n").trim();
}

// Only visible characters: what is written out elsewhere cannot come in as an entity.
function decoded(name) {
  if (name[0] !== "#") return ENTITIES[name.toLowerCase()];
  const code = name[1].toLowerCase() === "x" ? parseInt(name.slice(2), 16) : Number(name.slice(1));
  const sign = code <= 0x10ffff ? String.fromCodePoint(code) : "";
  return /^[\p{L}\p{N}\p{P}\p{S}\p{M}\p{Zs}]$/u.test(sign) ? sign : undefined;
}

function showPassage(question, place) {
  const row = rowOf(question);
  if (!row.querySelector(`.passage[data-place="${place}"]`)) row.querySelector(".others")?.click();
  const passage = row.querySelector(`.passage[data-place="${place}"]`);
  passage.open = true;
  passage.scrollIntoView({ block: "center" });
  passage.firstElementChild.focus({ preventScroll: true });
  for (const other of document.querySelectorAll(".passage.shown")) other.classList.remove("shown");
  passage.classList.add("shown");
}
