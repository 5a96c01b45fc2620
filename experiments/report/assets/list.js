// The list: light rows, made when they come into view; a question's content when it is opened.
const PAGE = 60;
const rows = new Map();

function rowOf(question) {
  if (!rows.has(question)) rows.set(question, makeRow(question));
  return rows.get(question);
}

function makeRow(question) {
  const text = el("span", { class: "ask", dir: "auto" }, index.texts[question]);
  const head = el("summary", null, el("span", { class: "head" }, number(question + 1), " ", text,
    index.answerable[question] ? null : [" ", badge("unanswerable", "plain")]), " ", strip(question));
  const row = el("details", { class: "question", "data-question": question }, head);
  row.addEventListener("toggle", () => {
    if (row.open) fillRow(row, question);
    changedOpen(question, row.open);
  });
  return row;
}

// One sign for each cell, in the cells' order.
function strip(question) {
  const marks = index.cells.map((_, cell) => markAt(question, cell));
  const right = marks.filter((kind) => kind === "right").length;
  const words = index.correctness_metrics ? `right in ${right} of ${plural(marks.length, "cell")}` : plural(marks.length, "answer");
  const signs = marks.map((kind, cell) => {
    const sign = mark(kind);
    sign.title = `${index.cells[cell].number} ${index.cells[cell].label}: ${MARKS[kind][1]}`;
    return sign;
  });
  return el("span", { class: "strip", role: "img", "aria-label": words }, signs,
    index.correctness_metrics && marks.length > 1 ? el("span", { class: "share" }, `${right}/${marks.length}`) : null);
}

async function fillRow(row, question) {
  if (row.childElementCount > 1) return;
  try {
    await openQuestion(question);
    if (row.childElementCount === 1) row.append(bodyOf(question));
  } catch (error) {
    row.append(broken(error));
  }
}

// A question that is open already gets its content anew, as when other cells are chosen.
function refill(question) {
  const row = rows.get(question);
  if (!row || row.childElementCount < 2) return;
  if (row.open) row.lastElementChild.replaceWith(bodyOf(question));
  else row.lastElementChild.remove();
}

// The numbers above the signs.
function columnsHead() {
  const numbers = index.cells.map((cell) => el("span", { title: cell.label }, String(cell.number)));
  return el("div", { class: "columns", "aria-hidden": "true" }, el("span", { class: "strip" }, numbers,
    index.correctness_metrics && numbers.length > 1 ? el("span", { class: "share" }, "right") : null));
}

function legend() {
  const seen = new Set();
  index.ids.forEach((_, question) => index.cells.forEach((__, cell) => seen.add(markAt(question, cell))));
  return el("p", { class: "legend" }, Object.keys(MARKS).filter((kind) => seen.has(kind))
    .map((kind) => el("span", { class: "nowrap" }, mark(kind), ` ${MARKS[kind][1]}`)));
}
