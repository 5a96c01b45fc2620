// On paper nothing can be opened: the first questions that fit are printed open, more as lines.
const PRINT_OPEN = 5;
const PRINT_LINES = 400;
let openedForPrint = [];

// What is printed has to be there before the browser asks for it.
async function prepareToPrint() {
  const mine = turn;
  for (const question of shownQuestions.slice(0, PRINT_OPEN)) {
    if (mine !== turn) return;
    await openQuestion(question);
  }
  document.documentElement.dataset.printable = String(mine);
}

function printing() {
  limit = Math.max(limit, PRINT_LINES);
  showList();
  const first = shownQuestions.slice(0, PRINT_OPEN).filter((question) => questionIsHere(question));
  openedForPrint = first.filter((question) => !rowOf(question).open);
  for (const question of openedForPrint) {
    const row = rowOf(question);
    if (row.childElementCount === 1) row.append(bodyOf(question));
    row.open = true;
  }
  const asked = Object.entries(state).filter(([name, value]) => value && !["open", "side"].includes(name)).map(([name, value]) => `${name}: ${value}`);
  document.getElementById("printed").textContent = `${told.textContent}${asked.length ? ` (${asked.join("; ")})` : ""}; ${
    shownQuestions.length > first.length ? `the first ${first.length} are printed open, ${Math.min(shownQuestions.length, limit)} as lines` : "all are printed open"}.`;
}

addEventListener("beforeprint", () => index && printing());
addEventListener("afterprint", () => {
  for (const question of openedForPrint) rowOf(question).open = false;
  openedForPrint = [];
});

// Last, for it uses what all files before it define.
async function start() {
  const packed = document.getElementById("index");
  if (!packed) return;
  try {
    index = JSON.parse(await unpack(packed));
  } catch (error) {
    list.append(broken(error));
    return;
  }
  if (!index.ids.length) return;
  makeForm();
  document.getElementById("rests")?.removeAttribute("hidden");
  document.getElementById("over").append(legend(), columnsHead());
  await takeAddress();
  addEventListener("hashchange", takeAddress);
}
start();
