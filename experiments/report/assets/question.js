// A question as it is opened: what was asked, the answers side by side, the evidence below.
const FEW = 4;

function bodyOf(question) {
  const data = item("questions", index.items[question]);
  const chosen = chosenFor(question);
  return el("div", { class: "body" }, toolsOf(question), aboutOf(question, data), el("h3", null, "Answers"),
    index.cells.length > FEW ? glanceOf(question, data, chosen) : null,
    el("div", { class: "cards" }, chosen.map((cell) => answerOf(question, cell, data, chosen))),
    pathsOf(data, chosen),
    el("div", { class: "traces" }, chosen.map((cell) => traceOf(cell, data, chosen))), evidenceOf(question, data, chosen));
}

// The cells set side by side: those chosen, else those looked for, else two that came out differently.
function chosenFor(question) {
  const cells = index.cells.map((_, cell) => cell);
  if (cells.length <= FEW) return cells;
  const named = state.side ? state.side.split(",") : [state.right, state.wrong, state.cell].filter(Boolean);
  if (state.side || named.length > 1) return [...new Set(named.map(cellNumber))];
  const first = named.length ? cellNumber(named[0]) : cells.find((cell) => isRight(question, cell)) ?? 0;
  const other = cells.find((cell) => cell !== first && isRight(question, cell) !== isRight(question, first)) ?? cells.find((cell) => cell !== first);
  return [first, other].sort((one, two) => one - two);
}

function toolsOf(question) {
  const step = (by, words) => {
    const to = shownQuestions[shownQuestions.indexOf(question) + by];
    return button(words, { disabled: to === undefined }, () => goTo(to, question));
  };
  return el("div", { class: "tools" }, step(-1, "← Previous"), step(1, "Next →"),
    el("a", { href: addressOf({ ...state, open: index.ids[question] }) }, "Link to this view"));
}

function row(name, ...content) {
  return el("div", null, el("dt", null, name), el("dd", null, ...content));
}

function aboutOf(question, data) {
  const needles = [[state.text.trim(), "hit"]];
  const gold = data.gold ?? [];
  const answerable = Boolean(index.answerable[question]);
  const parts = (list) => el("ol", { class: "parts" }, list);
  return el("dl", { class: "gold" },
    row(["Question ", el("code", null, index.ids[question])], textOf(data.text, needles)),
    data.options && row("Options", data.options.map(([label, words]) => textOf([`${label}. ${wordsOf(words)}`, leftOf(words)], needles))),
    row(gold.length < 2 ? "Gold answer" : "Gold answers",
      gold.length ? gold.map((words) => textOf(words, needles)) : none(answerable ? "none given" : "none: the question is unanswerable"),
      gold.length && !answerable ? none("unanswerable: a refusal is right") : null),
    data.subs && row("Sub-questions", parts(data.subs.map(([asked, answer]) => el("li", null, textOf(asked, needles),
      el("span", { class: "n" }, " gold: "), textOf(answer, needles))))),
    data.references && row("Reference steps", parts(data.references.map(([words, place]) => el("li", null, textOf(words, needles),
      place ? el("span", { class: "n" }, ` ${place}`) : null)))),
    index.tags[question].length ? row("Tags", index.tags[question].map((tag) => index.words.tag[tag]).join("; ")) : null);
}

const none = (words) => el("span", { class: "none" }, words);

// Every cell in a line, to choose those that are set side by side.
function glanceOf(question, data, chosen) {
  const lines = index.cells.map((cell, place) => {
    const answer = data.answers[place];
    const box = el("input", { type: "checkbox", checked: chosen.includes(place), "data-cell": cell.number });
    box.addEventListener("change", () => chooseCell(question, place, box.checked));
    const kind = markAt(question, place);
    return el("tr", { class: chosen.includes(place) ? "chosen" : null },
      el("th", { scope: "row" }, el("label", null, box, number(cell.number), " ", el("span", null, cell.label))),
      el("td", { class: "nowrap" }, mark(kind), el("span", { class: "words" }, ` ${MARKS[kind][1]}`)),
      index.words.cause.some(Boolean) ? el("td", { class: "why" }, wordAt("cause", question, place) === "right" ? "" : causeWords(wordAt("cause", question, place))) : null,
      el("td", { class: "said" }, el("span", { dir: "auto" }, answer ? firstWords(question, place, data, answer) : "")));
  });
  return el("table", { class: "glance" }, el("caption", null, "Choose answers to compare side by side."), el("tbody", null, lines));
}

// Its citations lead to the passages that this cell means.
function firstWords(question, cell, data, answer) {
  let left = 160;
  const pieces = (answer.text ?? [wordsOf(answer.failure)]).map((piece) => {
    const words = String(piece).slice(0, Math.max(left, 0));
    left -= String(piece).length;
    return typeof piece === "number" && words ? citation(question, cell, data, piece) : words;
  });
  return [...pieces, left < 0 ? "…" : ""];
}

function chooseCell(question, cell, wanted) {
  const before = chosenFor(question);
  const after = wanted ? [...before, cell].sort((one, other) => one - other) : before.filter((one) => one !== cell);
  state.side = after.map((one) => index.cells[one].number).join(",");
  writeState(state);
  refillAll();
  rowOf(question).querySelector(`[data-cell="${index.cells[cell].number}"]`)?.focus();
}
