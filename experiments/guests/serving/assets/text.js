// Render the text of an answer: a subset of Markdown, with citations as chips. Spans count code points.
import { el } from "./dom.js";

const OPEN = "\uE000", SHUT = "\uE001"; // around the number of a chip; removed from the model's text
const BARE = /[\[【［]\^?(?:(?:document|doc|source) )?(\d{1,4}(?:\s*[,;，]\s*\d{1,4})*)(?:†[^\]】\n]{0,80})?[\]】］]/gi;
const INLINE = /`([^`\n]+)`|\*\*(?=\S)([^\n]{0,2000}?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]{0,2000}?[^\s*])\*(?![\w*])|\uE000(\d+)\uE001/;
const ITEM = /^(\s*)(?:[-*+•]|(\d{1,4})[.)])\s+(.*)$/;

// citations: [{start, end, n}] of a complete text; null while it is written, when marks such as [1] are matched.
// chip: creates the element for some numbers, or returns null if there are no such passages.
export function rendered(text, citations, chip) {
  const chips = [];
  const keep = (numbers) => {
    const made = chip(numbers);
    return made ? `${OPEN}${chips.push(made) - 1}${SHUT}` : null;
  };
  const clean = (words) => words.replace(/[\uE000\uE001]/g, "");
  const marked = citations ? withMarks(text, citations, keep, clean)
    : clean(text).replace(BARE, (mark, numbers) => keep(numbers.split(/[,;，]/).map(Number)) ?? mark);
  return blocks(marked.split("\n"), (words) => inline(words, chips));
}

function withMarks(text, citations, keep, clean) {
  const points = Array.from(text), spans = new Map();
  for (const { start, end, n } of citations) spans.set(`${start}-${end}`, { start, end, numbers: [...(spans.get(`${start}-${end}`)?.numbers ?? []), n] });
  let made = "", at = 0;
  for (const { start, end, numbers } of [...spans.values()].sort((one, other) => one.start - other.start)) {
    if (start < at) continue;
    const mark = points.slice(start, end).join("");
    made += clean(points.slice(at, start).join("")) + (keep(numbers) ?? clean(mark));
    at = end;
  }
  return made + clean(points.slice(at).join(""));
}

function blocks(lines, inside) {
  const made = [];
  let at = 0;
  const taken = (fits) => {
    const begun = at;
    while (at < lines.length && fits(lines[at])) at += 1;
    return lines.slice(begun, at);
  };
  while (at < lines.length) {
    const line = lines[at], heading = /^#{1,6}\s+(.*)$/.exec(line);
    if (!line.trim()) at += 1;
    else if (line.trimStart().startsWith("```")) {
      at += 1;
      made.push(el("pre", null, el("code", null, taken((one) => !one.trimStart().startsWith("```")).join("\n"))));
      at += 1;
    } else if (heading) {
      made.push(el("h3", { dir: "auto" }, inside(heading[1])));
      at += 1;
    } else if (ITEM.test(line)) made.push(...lists(taken((one) => ITEM.test(one) || /^\s+\S/.test(one)), inside));
    else if (/^\s*\|.*\|\s*$/.test(line)) made.push(table(taken((one) => /^\s*\|/.test(one)), inside));
    else {
      const words = taken((one) => one.trim() && !ITEM.test(one) && !/^(#{1,6}\s|\s*```|\s*\|.*\|\s*$)/.test(one));
      made.push(el("p", { dir: "auto" }, words.map((one, place) => [place ? el("br") : "", inside(one)])));
    }
  }
  return made;
}

// Lists, nested by indentation; a line without a bullet continues the last item.
function lists(lines, inside) {
  const tops = [], open = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (!item) {
      open.at(-1).last.append(el("br"), ...inside(line.trim()));
      continue;
    }
    const [, space, number, words] = item, tag = number ? "ol" : "ul";
    while (open.length > 1 && open.at(-1).deep > space.length) open.pop();
    let list = open.at(-1);
    if (!list || space.length > list.deep + 1 || list.tag !== tag) {
      const made = el(tag, { start: number !== undefined && number !== "1" ? number : null });
      if (list && space.length > list.deep + 1) list.last.append(made);
      else {
        if (list) open.pop();
        (open.length ? open.at(-1).last : { append: (one) => tops.push(one) }).append(made);
      }
      open.push(list = { made, tag, deep: space.length, last: null });
    }
    list.last = el("li", { dir: "auto" }, inside(words));
    list.made.append(list.last);
  }
  return tops;
}

function table(lines, inside) {
  const rows = lines.map((line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim()));
  const rule = rows.findIndex((row) => row.every((cell) => /^:?-+:?$/.test(cell)));
  const row = (cells, tag) => el("tr", null, cells.map((cell) => el(tag, { dir: "auto" }, inside(cell))));
  return el("div", { class: "wide" }, el("table", null, rows.map((cells, place) =>
    (place === rule ? null : row(cells, place < rule ? "th" : "td")))));
}

function inline(words, chips) {
  const made = [];
  for (let found; (found = INLINE.exec(words)); words = words.slice(found.index + found[0].length)) {
    const [whole, code, strong, em, chip] = found;
    const before = words.slice(0, found.index), [tail] = /\S{0,30} ?$/.exec(before);
    made.push(chip === undefined ? before : before.slice(0, before.length - tail.length));
    if (code !== undefined) made.push(el("code", null, code.replace(/\uE000\d+\uE001/g, "")));
    else if (strong !== undefined) made.push(el("strong", null, inline(strong, chips)));
    else if (em !== undefined) made.push(el("em", null, inline(em, chips)));
    else made.push(el("span", { class: "held" }, tail, chips[Number(chip)] ?? whole));
  }
  return [...made, words];
}
