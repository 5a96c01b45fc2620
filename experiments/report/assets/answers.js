// One cell's answer to a question, as a card.
function answerOf(question, cell, data, chosen) {
  const answer = data.answers[cell];
  const card = el("article", { class: `card key-${chosen.indexOf(cell) % 6}`, "data-cell": index.cells[cell].number, tabindex: "-1",
    "aria-label": `Answer of ${index.cells[cell].label}` }, el("h4", null, number(index.cells[cell].number), " ", index.cells[cell].label),
  el("div", { class: "badges" }, badgesOf(question, cell, answer)));
  if (!answer) card.append(el("p", { class: "failure" }, "The run has no record of this question in this cell."));
  else card.append(...contentOf(question, cell, data, answer).flat(3).filter(Boolean));
  return card;
}

// The grades that say no more than the sign.
const SAME = { right: "Correct", part: "Partially Correct", wrong: "Wrong" };

function badgesOf(question, cell, answer) {
  const outcome = wordAt("outcome", question, cell);
  const grade = wordAt("grade", question, cell);
  const kind = markAt(question, cell);
  const signed = index.correctness_metrics && answer;
  return [signed ? [badge([mark(kind), ` ${MARKS[kind][1]}`], `m-${kind}`), " "] : null,
    signed && ["answered", MARKS[kind][1]].includes(outcome) ? null : [badge(outcome, `o-${outcome}`), " "],
    !grade || (signed && SAME[kind] === grade) ? null
      : [badge(grade, `g-${grade.split(" ")[0].toLowerCase()}`), answer.judge ? el("span", { class: "n" }, ` by ${answer.judge}`) : null, " "],
    causeOf(wordAt("cause", question, cell))];
}

// The cause's name, which opens what it means.
function causeOf(cause) {
  if (!cause || cause === "right") return null;
  const means = index.causes[cause]?.[1];
  if (!means) return badge(causeWords(cause), "cause");
  return el("details", { class: "why" }, el("summary", { class: "badge cause", title: means }, causeWords(cause)), el("p", { class: "n" }, means));
}

function contentOf(question, cell, data, answer) {
  const needles = [[state.text.trim(), "hit"]];
  return [
    answer.failure ? el("p", { class: "failure" }, el("strong", null, "Failure "), wordsOf(answer.failure), cut(leftOf(answer.failure))) : null,
    answer.text ? el("div", { class: "text answer", dir: "auto", tabindex: answer.text.join("").length > 1500 ? "0" : null },
      answer.text.map((piece) => (typeof piece === "number" ? citation(question, cell, data, piece) : marked(piece, needles)))) : null,
    answer.text || answer.failure ? cut(answer.left_out) : el("p", { class: "none" }, "No answer text."),
    citesOf(question, cell, data, answer), askedOf(answer, needles), heldOf(data, answer), supportOf(answer),
    answer.said ? el("p", { class: "n", dir: "auto" }, wordsOf(answer.said)) : null,
    scoresOf(answer), costOf(answer),
  ];
}

// The places of a cell's passages in the question's list, by their numbers.
function numbered(answer) {
  const [places, numbers] = answer.evidence ?? [[]];
  return new Map(places.map((place, at) => [numbers ? numbers[at] : at + 1, place]));
}

function citation(question, cell, data, cited, words) {
  const place = numbered(data.answers[cell]).get(cited);
  if (place === undefined) return el("span", { class: "unshown", title: "no passage with this number was shown" }, words ?? String(cited));
  const { source, gold } = data.passages[place];
  const named = `passage ${cited}, ${source}${gold ? ", gold" : ""}`;
  return button(words ?? String(cited), { class: "cite", title: named, "aria-label": named }, () => showPassage(question, place));
}

// What the answer cites without naming it in its text, and what was never shown.
function citesOf(question, cell, data, answer) {
  const apart = (answer.cited ?? []).filter((cited) => !(answer.text ?? []).includes(cited));
  if (!apart.length && !answer.invalid) return null;
  return el("p", { class: "cites" }, el("span", { class: "n" }, "cites "),
    apart.map((cited) => [citation(question, cell, data, cited, `[${cited}]`), " "]),
    (answer.invalid ?? []).map((cited) => [el("span", { class: "unshown" }, `[${cited}] not shown`), " "]));
}

function askedOf(answer, needles) {
  if (!answer.asked) return null;
  const lines = answer.asked.map(([asked, said, outcome, right]) => el("li", null, textOf(asked, needles),
    wordsOf(said) ? textOf(said, needles, "sub-answer") : null, outcome === "answered" ? null : badge(outcome, `o-${outcome}`),
    right === null ? null : badge(right ? "right" : "wrong", right ? "m-right" : "m-wrong")));
  return el("details", { class: "asked" }, el("summary", null, `Sub-questions, ${lines.length} asked`), el("ol", { class: "parts" }, lines));
}

function heldOf(data, answer) {
  if (!answer.held || !data.references) return null;
  const lines = data.references.map(([words], place) => {
    const held = answer.held.includes(place);
    return el("li", null, badge(held ? "found" : "not found", held ? "m-right" : "m-wrong"), " ", textOf(words));
  });
  return el("details", { class: "held" }, el("summary", null, `Reference steps, ${answer.held.length} of ${lines.length} found`),
    el("ol", { class: "parts" }, lines));
}

const LEVELS = { full: "m-right", partial: "m-part", none: "m-wrong" };

function supportOf(answer) {
  if (!answer.support) return null;
  const lines = answer.support.map(([level, words, more]) => el("li", null, badge(level, LEVELS[level] ?? "cause"), " ", textOf(words),
    more ? el("span", { class: "n" }, ` ${more}`) : null));
  return el("details", { class: "support" }, el("summary", null, `Support, ${plural(lines.length, "sentence or nugget", "sentences and nuggets")} checked`),
    el("ol", { class: "parts" }, lines));
}

function scoresOf(answer) {
  const [metrics, values, decides] = answer.scores ?? [[], []];
  const shown = (value) => (value === null ? none("n/a") : value.toFixed(2));
  const notes = [...(answer.notes ?? []), answer.error ? `error type: ${answer.error}` : "", answer.no_gold ? "no gold evidence in view" : ""].filter(Boolean);
  const line = (name, value) => el("div", null, el("dt", null, name), el("dd", null, value));
  return el("details", { class: "scores" }, el("summary", null, plural(metrics.length, "score"),
    decides === undefined ? null : `; ✓ or ✗ is decided by ${index.metrics[metrics[decides]]}: ${values[decides].toFixed(2)}`), el("dl", { class: "small" },
    metrics.map((metric, place) => line(place === decides ? el("strong", null, index.metrics[metric]) : index.metrics[metric], shown(values[place])))),
  notes.length ? el("p", { class: "n" }, notes.join("; ")) : null);
}

function costOf(answer) {
  const price = answer.price ? `, $${answer.price.toFixed(4)}` : "";
  return el("p", { class: "n" }, `${plural(answer.tokens ?? 0, "token")}, ${plural(answer.calls ?? 0, "call")}${price}`);
}
