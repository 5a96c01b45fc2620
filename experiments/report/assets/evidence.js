// The passages that the chosen answers were shown: who cited each, and whether it is gold.
function evidenceOf(question, data, chosen) {
  const passages = data.passages ?? [];
  const shown = new Set(chosen.flatMap((cell) => [...(data.answers[cell] ? numbered(data.answers[cell]).values() : [])]));
  const places = passages.map((_, place) => place);
  const others = places.filter((place) => !shown.has(place));
  const called = calledIn(data);
  const box = el("div", { class: "evidence" }, el("h3", null, "Evidence"), hint(goldNote(data)),
    shown.size ? null : el("p", { class: "none" }, chosen.length ? "No passage was shown for the chosen answers." : "No answer chosen."),
    places.filter((place) => shown.has(place)).map((place) => passageOf(place, data, chosen, called)));
  if (others.length) {
    const more = button(`Show ${plural(others.length, "passage")} of the other cells`, { class: "others" }, () => {
      more.replaceWith(...others.map((place) => passageOf(place, data, chosen, called)));
    });
    box.append(more);
  }
  return box;
}

function goldNote(data) {
  const marked = (data.passages ?? []).filter((passage) => passage.gold).length;
  if (!data.gold_total) return "This question names no gold evidence.";
  return `Gold evidence: ${plural(data.gold_total, "item")}; ${plural(marked, "passage counts", "passages count")} as gold, over all cells.`;
}

// Of each passage, which cells call it by which number.
function calledIn(data) {
  const called = (data.passages ?? []).map(() => new Map());
  data.answers.forEach((answer, cell) => {
    for (const [shownAs, place] of answer ? numbered(answer) : []) called[place].set(shownAs, [...(called[place].get(shownAs) ?? []), cell]);
  });
  return called;
}

// The numbers of a passage; where cells differ in what a number means, with the cells that mean this one.
function numbersOf(place, called) {
  const plain = called[place].size === 1 && called.every((numbers, other) => other === place || ![...called[place].keys()].some((shownAs) => numbers.has(shownAs)));
  return [...called[place]].map(([shownAs, cells], nth) => [nth ? ", " : null, el("span", { class: "mark" }, `[${shownAs}]`),
    plain ? null : el("span", { class: "n", title: cells.map((cell) => `${index.cells[cell].number} ${index.cells[cell].label}`).join("; ") },
      ` in ${cells.length === 1 ? "cell" : "cells"} ${ranges(cells.map((cell) => index.cells[cell].number))}`)]);
}

// Ascending numbers as `1 to 5, 7`.
function ranges(numbers) {
  const runs = [];
  for (const each of numbers) {
    if (runs.at(-1)?.[1] === each - 1) runs.at(-1)[1] = each;
    else runs.push([each, each]);
  }
  return runs.map(([first, last]) => (first === last ? first : `${first}${last === first + 1 ? ", " : " to "}${last}`)).join(", ");
}

function passageOf(place, data, chosen, called) {
  const passage = data.passages[place];
  const citing = [...called[place]].flatMap(([shownAs, cells]) => cells.filter((cell) => (data.answers[cell].cited ?? []).includes(shownAs)));
  const cited = citing.filter((cell) => chosen.includes(cell));
  const by = citing.length - cited.length;
  const kinds = `passage${cited.length ? " cited" : ""}${passage.gold ? " is-gold" : ""}`;
  return el("details", { class: kinds, "data-place": place, open: Boolean(cited.length || passage.gold) },
    el("summary", null, numbersOf(place, called), " ",
      el("bdi", { class: "source-name", title: `${passage.format}, ${charactersOf(passage)}` }, passage.source), " ",
      el("span", { class: "n" }, whereOf(passage, data)), " ",
      passage.gold ? [badge(`gold by ${passage.gold}`, "gold-mark"), " "] : null,
      cited.length || by ? el("span", { class: "by" }, "cited by ", cited.map((cell) => [chip(cell, chosen), " "]),
        by ? el("span", { class: "n" }, cited.length ? `and ${by} more` : plural(by, "other cell")) : null) : null),
    contentOfPassage(passage, data));
}

const chip = (cell, chosen) => el("span", { class: `number key-${chosen.indexOf(cell) % 6}`, title: index.cells[cell].label }, String(index.cells[cell].number));

const charactersOf = (passage) => `characters ${count(passage.start)} to ${count(passage.end)}`;

// What tells the passage from others: its pages, its place where it is a later part, its rendering where there are two.
function whereOf(passage, data) {
  const [first, last] = passage.pages ?? [];
  return [data.passages.some((other) => other.format !== passage.format) ? passage.format : null,
    first === undefined ? null : first === last ? `page ${first}` : `pages ${first} to ${last}`,
    passage.start ? charactersOf(passage) : null].filter(Boolean).join(", ");
}

function contentOfPassage(passage, data) {
  const pieces = item("evidence", passage.text);
  if (pieces === undefined) return el("p", { class: "cut" }, "Left out to keep this page small. The run folder has it.");
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
