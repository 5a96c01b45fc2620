// What is looked for, and which questions fit it, by the index alone; a text by the questions that hold it.
const NOTHING = Object.freeze({ text: "", cell: "", outcome: "", grade: "", cause: "", tag: "", answerable: "", agree: "", right: "", wrong: "",
  order: "", side: "", open: "" });
const OF_ANSWERS = ["outcome", "grade", "cause"];
const AGREE = {
  differ: ["cells differ: right in some, wrong in others", (right, wrong) => right > 0 && wrong > 0],
  right: ["right in every cell", (right) => right === index.cells.length],
  wrong: ["right in no cell", (right, wrong) => right === 0 && wrong > 0],
};

const cellNumber = (value) => Number(value) - 1;

// Whether an answer is of the kind that is looked for, leaving out one of the conditions.
function answerFits(question, cell, wanted, but) {
  return OF_ANSWERS.every((name) => name === but || !wanted[name] || wordAt(name, question, cell) === wanted[name]);
}

function cellsOf(wanted, but) {
  return wanted.cell && but !== "cell" ? [cellNumber(wanted.cell)] : index.cells.map((_, cell) => cell);
}

function verdictsOn(question) {
  let right = 0;
  let wrong = 0;
  for (let cell = 0; cell < index.cells.length; cell += 1) {
    if (isRight(question, cell)) right += 1;
    else if (isWrong(question, cell)) wrong += 1;
  }
  return [right, wrong];
}

// Whether a question is what is looked for, leaving out one of the conditions.
function fits(question, wanted, holding, but) {
  if (holding && !holding[question]) return false;
  if (wanted.answerable && but !== "answerable" && (wanted.answerable === "yes") !== Boolean(index.answerable[question])) return false;
  if (wanted.tag && but !== "tag" && !index.tags[question].some((tag) => index.words.tag[tag] === wanted.tag)) return false;
  if (wanted.right && but !== "right" && !isRight(question, cellNumber(wanted.right))) return false;
  if (wanted.wrong && but !== "wrong" && !isWrong(question, cellNumber(wanted.wrong))) return false;
  if (wanted.agree && but !== "agree" && !AGREE[wanted.agree][1](...verdictsOn(question))) return false;
  const asked = OF_ANSWERS.some((name) => name !== but && wanted[name]);
  return !(asked || (wanted.cell && but !== "cell"))
    || cellsOf(wanted, but).some((cell) => wordAt("outcome", question, cell) !== "missing" && answerFits(question, cell, wanted, but));
}

const ORDERS = {
  hardest: ["right in fewest cells first", (question) => verdictsOn(question)[0]],
  easiest: ["right in most cells first", (question) => -verdictsOn(question)[0]],
};

// The questions that fit, in the order that is asked for.
function fitting(wanted, holding) {
  const found = index.ids.map((_, question) => question).filter((question) => fits(question, wanted, holding));
  if (!wanted.order) return found;
  const key = new Map(found.map((question) => [question, ORDERS[wanted.order][1](question)]));
  return found.sort((one, other) => key.get(one) - key.get(other) || one - other);
}

// How many questions each choice of a condition would leave, all other conditions as they are.
function countsOf(name, wanted, holding) {
  const counts = new Map();
  index.ids.forEach((_, question) => {
    if (!fits(question, wanted, holding, name)) return;
    for (const value of new Set(valuesOf(name, question, wanted))) counts.set(value, (counts.get(value) ?? 0) + 1);
  });
  return counts;
}

function valuesOf(name, question, wanted) {
  if (name === "answerable") return [index.answerable[question] ? "yes" : "no"];
  if (name === "tag") return index.tags[question].map((tag) => index.words.tag[tag]);
  if (name === "agree") return Object.keys(AGREE).filter((key) => AGREE[key][1](...verdictsOn(question)));
  const cells = index.cells.map((_, cell) => cell);
  const numbers = (chosen) => chosen.map((cell) => String(index.cells[cell].number));
  if (name === "right") return numbers(cells.filter((cell) => isRight(question, cell)));
  if (name === "wrong") return numbers(cells.filter((cell) => isWrong(question, cell)));
  if (name === "cell") return numbers(cells.filter((cell) => wordAt("outcome", question, cell) !== "missing" && answerFits(question, cell, wanted)));
  return cellsOf(wanted).filter((cell) => answerFits(question, cell, wanted, name)).map((cell) => wordAt(name, question, cell));
}
