// The question browser: its form, its list, what is open, and the address that says so.
let state = { ...NOTHING };
let shownQuestions = [];
let limit = PAGE;
let turn = 0;

const MAIN = ["outcome", "cause", "cell"];  // what is always in view; the others are a click away

const form = document.getElementById("filter");
const list = document.getElementById("list");
const told = document.getElementById("count");
const more = document.getElementById("more");
const onlyRow = () => (state.open ? index.ids.indexOf(state.open) : -1);

// The choices of the form: name, label, the choices with their words.
function choices() {
  const cells = index.cells.map((cell) => [String(cell.number), `${cell.number} ${cell.label}`]);
  const words = (name, called) => index.words[name].filter(Boolean).map((word) => [word, called ? called(word) : word]);
  const answerable = new Set(index.answerable).size > 1;
  const several = index.correctness_metrics && cells.length > 1;
  return [
    ["outcome", "Outcome", words("outcome")], ["grade", "Grade", words("grade")], ["cause", "Cause", words("cause", causeWords)],
    ["cell", "In cell", cells.length > 1 ? cells : []], ["tag", "Tag", tagChoices()],
    ["answerable", "Answerable", answerable ? [["yes", "yes"], ["no", "no"]] : []],
    ["agree", "Cells", several ? Object.entries(AGREE).map(([key, [called]]) => [key, called]) : []],
    ["right", "Right in", several ? cells : []], ["wrong", "Wrong in", several ? cells : []],
  ].filter(([, , options]) => options.length > 1);
}

const MOST_VALUES = 60;

// A tag with more values says nothing of kinds of questions; the text filter finds it.
function tagChoices() {
  const nameOf = (tag) => tag.split(": ")[0];
  const values = new Map();
  for (const tag of index.words.tag) values.set(nameOf(tag), (values.get(nameOf(tag)) ?? 0) + 1);
  return index.words.tag.filter((tag) => values.get(nameOf(tag)) <= MOST_VALUES).sort().map((tag) => [tag, tag]);
}

function makeForm() {
  const selects = choices().map(([name, label, options]) => el("label", null, label, el("select", { name },
    el("option", { value: "" }, "any"), options.map(([value, words]) => el("option", { value, "data-words": words }, words)))));
  const order = el("label", null, "Order", el("select", { name: "order" }, el("option", { value: "" }, "as asked"),
    Object.entries(ORDERS).map(([key, [words]]) => el("option", { value: key }, words))));
  const main = selects.filter((label) => MAIN.includes(label.lastElementChild.name));
  const others = [...selects.filter((label) => !main.includes(label)), ...(index.correctness_metrics && index.cells.length > 1 ? [order] : [])];
  document.getElementById("choices").append(...main);
  document.getElementById("others").append(...others);
  document.getElementById("more-filters").hidden = !others.length;
  form.hidden = false;
}

function showCounts(holding) {
  for (const select of form.querySelectorAll("select")) {
    if (select.name === "order") continue;
    const counts = countsOf(select.name, state, holding);
    for (const option of select.options) {
      if (!option.value) continue;
      const found = counts.get(option.value) ?? 0;
      option.textContent = `${option.dataset.words} (${count(found)})`;
      option.disabled = !found && option.value !== state[select.name];
    }
  }
}

// Finds what fits and shows it. A later call overtakes one that still reads texts.
async function apply() {
  turn += 1;
  const mine = turn;
  if (state.text.trim() && !reading) told.textContent = "Reading the texts …";
  const holding = await searchFor(state.text);
  if (mine !== turn) return;
  shownQuestions = fitting(state, holding);
  refillAll();
  showList();
  showCounts(holding);
  told.textContent = `${count(shownQuestions.length)} of ${plural(index.ids.length, "question")}`;
  document.querySelector("#more-filters > summary").textContent = `More filters${usedOthers() ? `, ${usedOthers()} in use` : ""}`;
  document.getElementById("nothing").hidden = shownQuestions.length > 0 || index.ids.length === 0;
  document.getElementById("clear").disabled = !Object.keys(state).some((name) => state[name] && name !== "open" && name !== "side");
  document.documentElement.dataset.settled = String(turn);
  setTimeout(prepareToPrint, 300);
}

// The question of the address is there even where the filter leaves it out.
function showList() {
  const only = onlyRow();
  const first = shownQuestions.slice(0, Math.max(limit, shownQuestions.indexOf(only) + 1));
  const apart = only >= 0 && !shownQuestions.includes(only);
  list.replaceChildren(...[...(apart ? [only] : []), ...first].map(rowOf));
  for (const row of list.querySelectorAll(".apart")) row.classList.remove("apart");
  if (apart) rowOf(only).classList.add("apart");
  const left = shownQuestions.length - first.length;
  more.hidden = left === 0;
  more.textContent = `Show ${count(Math.min(left, PAGE))} more of ${count(left)}`;
  const part = document.getElementById("part");
  part.hidden = left === 0;
  part.textContent = `The first ${count(first.length)} are listed. The browser's own search (Ctrl-F) sees only these; the field Text searches all.`;
}

function setState(changed) {
  state = { ...state, ...changed };
  writeState(state);
}

function takeForm() {
  setState(Object.fromEntries(new FormData(form)));
  limit = PAGE;
  return apply();
}

const usedOthers = () => document.querySelectorAll("#others option:checked:not([value=''])").length;

function fillForm() {
  for (const field of form.elements) if (field.name) field.value = state[field.name] ?? "";
  if (usedOthers()) document.getElementById("more-filters").open = true;
}

function refillAll() {
  for (const question of rows.keys()) refill(question);
}

function changedOpen(question, isOpen) {
  if (isOpen) setState({ open: index.ids[question] });
  else if (state.open === index.ids[question]) setState({ open: "" });
}

// Opens another question in the place of one.
function goTo(question, from) {
  rowOf(from).open = false;
  setState({ open: index.ids[question] });
  showList();
  reveal(question);
}

function reveal(question) {
  const row = rowOf(question);
  row.open = true;
  fillRow(row, question).then(() => row.scrollIntoView({ block: "start" }));
  row.firstElementChild.focus({ preventScroll: true });
}

// What the address says, at the start and where a link changes it.
async function takeAddress() {
  if (turn && !isState()) return;
  state = isState() ? readState() : { ...NOTHING };
  fillForm();
  limit = PAGE;
  await apply();
  if (onlyRow() >= 0) reveal(onlyRow());
  else if (isState()) focusOn(targetOf("#questions"));
}

let typing = 0;
form.addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(takeForm, event.target.name === "text" ? 150 : 0);
});
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("clear").addEventListener("click", () => {
  form.reset();
  setState({ ...NOTHING, open: state.open, side: state.side });
  fillForm();
  apply();
  form.elements.text.focus();
});
more.addEventListener("click", () => {
  const before = list.childElementCount;
  limit += PAGE;
  showList();
  list.children[before]?.firstElementChild.focus();
});
list.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !event.target.matches(".question > summary")) return;
  const { parentElement } = event.target;
  const next = (by > 0 ? parentElement.nextElementSibling : parentElement.previousElementSibling)?.firstElementChild
    ?? (by > 0 && !more.hidden ? more : null);
  if (!next) return;
  event.preventDefault();
  next.focus();
});
