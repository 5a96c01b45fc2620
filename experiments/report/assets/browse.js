// The question browser: filter, open and close, links into closed details, print.
const questions = [...document.querySelectorAll("details.question")];
const form = document.getElementById("filter");
const haystacks = new Map();

function haystack(question) {
  if (!haystacks.has(question)) haystacks.set(question, question.textContent.toLowerCase());
  return haystacks.get(question);
}

function fits(question, wanted) {
  if (wanted.answerable && question.dataset.answerable !== wanted.answerable) return false;
  if (wanted.outcome || wanted.grade) {
    const cards = [...question.querySelectorAll(".card")];
    const fitting = (card) => (!wanted.outcome || card.dataset.outcome === wanted.outcome)
      && (!wanted.grade || card.dataset.grade === wanted.grade);
    if (!cards.some(fitting)) return false;
  }
  return !wanted.text || haystack(question).includes(wanted.text);
}

function applyFilter() {
  const wanted = Object.fromEntries(new FormData(form));
  wanted.text = wanted.text.trim().toLowerCase();
  let shown = 0;
  for (const question of questions) {
    question.hidden = !fits(question, wanted);
    shown += question.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${shown} of ${questions.length} shown`;
  document.getElementById("nothing").hidden = shown > 0 || questions.length === 0;
}

function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
    if (at.hidden && at.matches("details.question")) at.hidden = false;
  }
  target.scrollIntoView();
  const focusable = target.querySelector(":scope > summary");
  if (focusable) focusable.focus({ preventScroll: true });
}

form.hidden = questions.length === 0;
form.addEventListener("input", applyFilter);
form.addEventListener("submit", (event) => event.preventDefault());
const toggle = document.getElementById("toggle-all");
toggle.addEventListener("click", () => {
  const open = toggle.getAttribute("aria-pressed") !== "true";
  for (const question of questions) if (!question.hidden) question.open = open;
  toggle.setAttribute("aria-pressed", String(open));
  toggle.textContent = open ? "Close all" : "Open all";
});
addEventListener("hashchange", reveal);
// A link to where one already is changes no hash.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.hash === location.hash) reveal();
});

// On paper nothing can be opened, so a run small enough to print is printed with its questions open.
let closed = [];
addEventListener("beforeprint", () => {
  const shown = questions.filter((question) => !question.hidden);
  closed = shown.length <= 60 ? shown.filter((question) => !question.open) : [];
  for (const question of closed) question.open = true;
});
addEventListener("afterprint", () => {
  for (const question of closed) question.open = false;
});
applyFilter();
reveal();
