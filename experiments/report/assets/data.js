// The index is opened at once; the blocks that hold everything else when they are asked for, each once.
let index = null;
const opened = new Map();
const arrived = new Map();

const parsed = new Promise((resolve) => {
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", resolve);
  else resolve();
});

function blockOf(kind, number) {
  const { firsts, kept } = index.kinds[kind];
  if (number >= kept) return null;
  let low = 0;
  for (let high = firsts.length - 1; low < high;) {
    const middle = (low + high + 1) >> 1;
    if (firsts[middle] <= number) low = middle;
    else high = middle - 1;
  }
  return low;
}

function openBlock(kind, block) {
  const key = `${kind} ${block}`;
  if (!opened.has(key)) {
    opened.set(key, parsed.then(() => unpack(document.getElementById(`${kind}-${block}`))).then((text) => {
      arrived.set(key, JSON.parse(text));
    }));
  }
  return opened.get(key);
}

// Opens the blocks of these items, so that `item` has them.
function openItems(kind, numbers) {
  const blocks = new Set(numbers.map((number) => blockOf(kind, number)));
  blocks.delete(null);
  return Promise.all([...blocks].map((block) => openBlock(kind, block)));
}

// The item, or undefined where the page does not hold it.
function item(kind, number) {
  const block = blockOf(kind, number);
  return block === null ? undefined : arrived.get(`${kind} ${block}`)[number - index.kinds[kind].firsts[block]];
}

function isHere(kind, number) {
  const block = blockOf(kind, number);
  return block === null || arrived.has(`${kind} ${block}`);
}

function openAll(kind) {
  return Promise.all(index.kinds[kind].firsts.map((_, block) => openBlock(kind, block)));
}

// A question with the texts of its passages.
async function openQuestion(question) {
  await openItems("questions", [index.items[question]]);
  await openItems("evidence", passagesOf(question).map((passage) => passage.text));
  return item("questions", index.items[question]);
}

const passagesOf = (question) => item("questions", index.items[question]).passages ?? [];

function questionIsHere(question) {
  return isHere("questions", index.items[question]) && passagesOf(question).every((passage) => isHere("evidence", passage.text));
}

// What became of the answer of a cell to a question, out of the index.
const FAILED = new Set(["malformed", "too_long", "budget", "timeout", "error"]);
const MARKS = {
  right: ["✓", "right"], part: ["½", "partly right"], wrong: ["✗", "wrong"], refused: ["–", "refused"], failed: ["!", "failed"],
  none: ["○", "answered, not scored"], missing: ["·", "no record"],
};
const at = (question, cell) => question * index.cells.length + cell;
const wordAt = (column, question, cell) => index.words[column][index[column][at(question, cell)]];
const scoreAt = (question, cell) => index.score[at(question, cell)];
const isRight = (question, cell) => scoreAt(question, cell) === 1;
const isWrong = (question, cell) => scoreAt(question, cell) !== null && scoreAt(question, cell) < 1;

function markAt(question, cell) {
  const outcome = wordAt("outcome", question, cell);
  const score = scoreAt(question, cell);
  if (outcome === "missing") return "missing";
  if (score === 1) return "right";
  if (FAILED.has(outcome)) return "failed";
  if (outcome === "refused") return "refused";
  return score === null ? "none" : score > 0 ? "part" : "wrong";
}

function mark(kind) {
  const [sign, words] = MARKS[kind];
  return el("span", { class: `mark-${kind}`, title: words, "aria-hidden": "true" }, sign);
}

const causeWords = (name) => index.causes[name]?.[0] ?? name.replaceAll("_", " ");
