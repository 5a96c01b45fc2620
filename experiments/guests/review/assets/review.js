// One item a screen. Texts of the set are only ever text: every element is made by `el`.
"use strict";

const $ = (id) => document.getElementById(id);
const page = { reviewer: "", items: [], reasons: {}, at: 0, item: null, busy: false, marks: [], mark: 0, settled: 0 };

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return made;
}

const text = (words, kind) => el("div", { class: `text ${kind ?? ""}`.trim(), dir: "auto" }, words);
const count = (number) => number.toLocaleString("en");

async function ask(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new Error("The server does not respond. Start ragbed review again; saved reviews are kept.");
  }
  const content = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(content.error ?? `The server rejected the request (status ${reply.status}).`), { status: reply.status });
  return content;
}

// One request at a time, so that a key pressed meanwhile does not act on the next item.
async function once(work) {
  if (page.busy) return;
  page.busy = true;
  $("trouble").hidden = true;
  try {
    await work();
  } catch (error) {
    $("trouble").textContent = error.message;
    $("trouble").hidden = false;
  } finally {
    page.busy = false;
    document.documentElement.dataset.settled = String(++page.settled);
  }
}

const mine = () => `reviewer=${encodeURIComponent(page.reviewer)}`;

async function begin(name) {
  page.reviewer = name;
  const url = new URL(location.href);
  url.searchParams.set("reviewer", name);
  history.replaceState(null, "", url);
  const { name: set, items, reasons } = await ask(`items?${mine()}`);
  Object.assign(page, { items, reasons });
  $("name").textContent = set;
  document.title = `Review of ${set}`;
  $("who").textContent = name;
  await show(Math.max(items.findIndex((item) => !item.decision), 0));
}

async function show(at) {
  page.item = await ask(`items/${at}?${mine()}`);
  page.at = at;
  draw();
}

async function decide(review, words) {
  const { item, items, at, reviewer } = page;
  try {
    item.seen = (await ask("reviews", { reviewer, item: items[at].id, seen: item.seen, review })).seen;
  } catch (error) {
    if (error.status === 409) await show(at);
    throw error;
  }
  items[at].decision = review.decision;
  if (!review.decision) {
    item.review = review;
    draw();
    return announce(words);
  }
  const after = items.findIndex((one, place) => place > at && !one.decision);
  const next = after >= 0 ? after : items.findIndex((one) => !one.decision);
  await show(next >= 0 ? next : at);
  announce(next >= 0 ? `${words} Item ${next + 1} of ${items.length}.` : `${words} All ${items.length} items are reviewed.`);
}

function draw() {
  const { item, items, at } = page;
  const done = items.filter((one) => one.decision).length;
  $("bar").max = items.length;
  $("bar").value = done;
  $("done").textContent = `${count(done)} of ${count(items.length)} reviewed`;
  $("place").textContent = `${count(at + 1)} / ${count(items.length)}`;
  $("previous").disabled = at === 0;
  $("next").disabled = at === items.length - 1;
  $("asked").replaceChildren(...asked(item));
  $("shown").replaceChildren(...shown(item));
  for (const id of ["accept", "reject"]) $(id).setAttribute("aria-pressed", String(item.review.decision === id));
  page.marks = [...document.querySelectorAll("#shown mark")];
  page.mark = 0;
  for (const box of document.querySelectorAll(".document > .text")) toMark(box.querySelector("mark"));
  scrollTo(0, 0);
}

function asked({ question, answers, answerable, options, steps, tags, measured, review }) {
  const key = review.answers.length ? review.answers : answers;
  return [
    verdict(review),
    el("h2", { id: "question", class: "text", dir: "auto" }, review.question || question),
    review.question ? was(question) : null,
    options.length ? el("ol", { class: "options", type: "A", "aria-label": "Options" }, options.map((option) => {
      const right = review.answers.length ? option.text === key[0] : option.key;
      return el("li", { class: right ? "key" : null, dir: "auto" }, right ? el("span", { class: "sign" }, "key") : null, option.text);
    })) : null,
    answerable ? (options.length ? null : answerList(key)) : el("p", { class: "refusal" },
      "Unanswerable from the documents. The correct reply is a refusal."),
    review.answers.length && answers.length ? was(answers.join(" / ")) : null,
    review.note ? el("div", { class: "own-note" }, el("h3", null, "Your note"), text(review.note)) : null,
    steps.length ? el("div", null, el("h3", null, "Steps"), el("ol", { class: "steps" }, steps.map((step) => el("li", { dir: "auto" }, step)))) : null,
    pairs("Measured by solvers", measured), pairs("Tags", tags),
  ].filter(Boolean);
}

const was = (words) => el("p", { class: "was" }, "Before your edit: ", el("del", { dir: "auto" }, words));

function answerList(answers) {
  const [key, ...others] = answers;
  return el("div", { class: "answers" }, el("h3", null, "Answer"), text(key ?? "none", "key"),
    others.length ? el("p", { class: "others" }, "Also accepted: ", others.map((one, at) => [at ? " · " : "", el("bdi", null, one)])) : null);
}

function verdict({ decision, reason, question, answers }) {
  if (!decision) return el("p", { class: "verdict open" }, "Not reviewed by you yet");
  const words = decision === "reject" ? ["You rejected it: ", el("bdi", null, reason)]
    : question || answers.length ? "You accepted it with edits" : "You accepted it";
  return el("p", { class: `verdict ${decision}` }, words);
}

function pairs(title, found) {
  if (!found.length) return null;
  return el("div", { class: "pairs" }, el("h3", null, title), el("dl", null, found.map(([name, value]) =>
    el("div", null, el("dt", null, name), el("dd", null, value)))));
}

function shown({ documents, chunks, candidates, review, answerable }) {
  const boxes = documents.map((one, at) => el("article", { class: "document" },
    el("h3", null, el("bdi", null, one.title), el("span", { class: "where" },
      [one.source !== one.title && one.source, one.page].filter(Boolean).join(", "))),
    one.note ? el("p", { class: "note", dir: "auto" }, one.note) : null,
    one.pieces.length ? el("div", { class: "text", dir: "auto", tabindex: "0", role: "region", "aria-label": `Document ${at + 1}` },
      one.pieces.map(piece)) : null));
  const list = chunks.map((one, at) => el("details", { class: one.holds ? "chunk holds" : "chunk", open: !documents.length },
    el("summary", null, el("span", { class: "number" }, String(at + 1)), " ", el("bdi", null, one.source), one.page ? `, ${one.page}` : "",
      one.holds ? el("span", { class: "sign" }, "evidence") : null),
    el("div", { class: "text", dir: "auto" }, one.pieces.map(piece))));
  const possible = candidates.map((one, at) => el("details", { class: "chunk", open: !documents.length },
    el("summary", null, candidate(one, at), review.evidence.includes(at + 1) ? el("span", { class: "sign" }, "evidence") : null),
    one.text ? el("div", { class: "text", dir: "auto" }, one.text) : el("p", { class: "note" }, "This document is not available.")));
  const none = answerable ? "This item has no evidence." : "An unanswerable item has no evidence.";
  return [boxes.length || !candidates.length ? el("h2", null, "Evidence") : null, ...(boxes.length ? boxes : candidates.length ? [] : [el("p", { class: "none" }, none)]),
    candidates.length ? el("h2", null, `Passages that a served answer cited (${candidates.length})`) : null,
    candidates.length ? el("p", { class: "hint" }, "They are not evidence until you choose them: ", el("kbd", null, "e")) : null, ...possible,
    chunks.length ? el("h2", null, `Chunks shown with the question (${chunks.length})`) : null, ...list].filter(Boolean);
}

const candidate = (one, at) => [el("span", { class: "number" }, String(at + 1)), " ", el("bdi", null, one.source), one.page ? `, ${one.page}` : ""];

function piece({ text: words, mark, gap }) {
  if (gap) return el("span", { class: "gap" }, `${count(gap)} characters left out`);
  return mark ? el("mark", { tabindex: "-1" }, words) : words;
}

function toMark(mark, focus) {
  if (!mark) return;
  const box = mark.closest(".text");
  box.scrollTop += mark.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  if (focus) mark.focus();
}

const announce = (words) => { $("said").textContent = words; };

function open(title, parts) {
  $("dialog-title").textContent = title;
  $("form").onsubmit = $("form").onkeydown = null;
  $("form").replaceChildren(...parts);
  $("dialog").showModal();
}

const close = () => $("dialog").close();
const buttons = (words) => el("div", { class: "buttons" }, el("button", { type: "submit" }, words), cancel());
function cancel(words = "Cancel ") {
  const made = el("button", { type: "button" }, words, el("kbd", null, "Esc"));
  made.onclick = close;
  return made;
}

function onSubmit(act, quick) {
  $("form").onsubmit = (event) => { event.preventDefault(); act(); };
  if (quick) $("form").onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) act(); };
}

function askName() {
  const field = el("input", { id: "field", required: true, maxlength: "60", autocomplete: "name", autofocus: true });
  open("Who is reviewing?", [el("label", { for: "field" }, "Your name, to save your reviews under"), field, el("div", { class: "buttons" }, el("button", { type: "submit" }, "Start"))]);
  $("dialog").oncancel = (event) => { if (!page.reviewer) event.preventDefault(); };
  onSubmit(() => { const name = field.value.trim(); if (name) { close(); once(() => begin(name)); } });
}

function reject() {
  const reasons = Object.entries(page.reasons);
  const choose = (reason) => { close(); once(() => decide({ decision: "reject", reason, note: page.item.review.note }, "Rejected.")); };
  const list = el("ol", { class: "reasons" }, reasons.map(([reason, meaning], at) => {
    const made = el("button", { type: "button", autofocus: at === 0 }, el("kbd", null, String(at + 1)), el("span", null, el("b", null, reason), " ", meaning));
    made.onclick = () => choose(reason);
    return el("li", null, made);
  }));
  const field = el("input", { id: "field", maxlength: "500", placeholder: "Another reason" });
  open("Why do you reject it?", [list, el("label", { for: "field" }, el("kbd", null, String(reasons.length + 1)), " or in your own words"), field, buttons("Reject")]);
  onSubmit(() => { if (field.value.trim()) choose(field.value.trim()); else field.focus(); });
  $("form").onkeydown = (event) => {
    if (event.target === field || event.ctrlKey || event.altKey || event.metaKey) return;
    const every = [...list.querySelectorAll("button")], place = every.indexOf(document.activeElement);
    if (/^[1-9]$/.test(event.key)) {
      event.preventDefault();
      (every[event.key - 1] ? () => every[event.key - 1].click() : () => field.focus())();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      (every[place + (event.key === "ArrowDown" ? 1 : -1)] ?? field).focus();
    }
  };
}

function edit() {
  const { question, answers, answerable, options, candidates, review } = page.item;
  const area = (words, label) => el("textarea", { rows: Math.min(8, Math.ceil(words.length / 60) || 1), "aria-label": label, dir: "auto" }, words);
  const asked = area(review.question || question, "Question");
  const known = review.answers.length ? review.answers : answers;
  let fields = [];
  if (options.length) {
    fields = [el("select", { "aria-label": "Answer" }, options.map(({ text: words }) => el("option", { value: words, selected: words === known[0] }, words)))];
  } else if (answerable) {
    fields = [...known, ""].map((words, at) => area(words, at ? "Another accepted answer" : "Answer"));
  }
  const boxes = candidates.map((one, at) => el("input", { type: "checkbox", checked: review.evidence.includes(at + 1) }));
  const choices = boxes.map((box, at) => el("label", { class: "candidate" }, box, " ", candidate(candidates[at], at),
    el("span", { class: "text", dir: "auto" }, candidates[at].text.slice(0, 300))));
  open("Edit", [el("h3", null, "Question"), asked, fields.length ? el("h3", null, fields.length > 1 ? "Answers (the first is the key)" : "Answer") : null,
    ...fields, choices.length ? el("fieldset", null, el("legend", null, "Passages that hold the answer"), choices) : null,
    el("p", { class: "hint" }, el("kbd", null, "Ctrl"), " ", el("kbd", null, "Enter"), " saves"), buttons("Save and accept")].filter(Boolean));
  asked.focus();
  onSubmit(() => {
    const given = fields.map((field) => field.value.trim()).filter(Boolean);
    const words = asked.value.trim() === question.trim() ? "" : asked.value.trim();
    const same = !given.length || JSON.stringify(given) === JSON.stringify(answers);
    const evidence = boxes.flatMap((box, at) => box.checked ? [at + 1] : []);
    close();
    once(() => decide({ decision: "accept", note: review.note, question: words, answers: same ? [] : given, evidence },
      words || !same ? "Accepted with edits." : "Accepted."));
  }, true);
}

function note() {
  const field = el("textarea", { rows: "4", maxlength: "10000", dir: "auto", "aria-label": "Note" }, page.item.review.note);
  open("Note", [field, el("p", { class: "hint" }, el("kbd", null, "Ctrl"), " ", el("kbd", null, "Enter"), " saves"), buttons("Save")]);
  field.focus();
  onSubmit(() => { close(); once(() => decide({ ...page.item.review, note: field.value.trim() }, "Note saved.")); }, true);
}

function help() {
  const keys = [["a", "accept, and go to the next item"], ["d", "reject; 1 to 6 choose the reason, 7 lets you type one"], ["e", "edit the question and the answer, choose evidence, and accept"],
    ["n", "write a note"], ["← →", "previous and next item, without deciding"], ["s", "next piece of evidence"], ["u", "undo your last review"], ["Esc", "close a dialog"]];
  open("Keys", [el("dl", { class: "keys" }, keys.map(([key, words]) => el("div", null, el("dt", null, el("kbd", null, key)), el("dd", null, words)))),
    el("p", { class: "hint" }, "Items come in random order, the same for everyone. You do not see what others decided. Each review is saved at once."),
    el("div", { class: "buttons" }, cancel("Close "))]);
}

const acts = {
  // What nobody has chosen evidence for is not accepted with one key.
  a: () => page.item.candidates.length && !page.item.review.evidence.length ? edit() : once(() => decide({ ...page.item.review, decision: "accept", reason: "" }, "Accepted.")),
  d: reject, e: edit, n: note, "?": help,
  u: () => once(async () => {
    const { undone, place } = await ask("undo", { reviewer: page.reviewer });
    if (!undone) return announce("There is nothing to undo.");
    page.items = (await ask(`items?${mine()}`)).items;
    await show(place ?? page.at);
    announce("Undone.");
  }),
  s: () => { toMark(page.marks[page.mark % page.marks.length], true); page.mark += 1; },
  arrowleft: () => page.at > 0 && once(() => show(page.at - 1)),
  arrowright: () => page.at < page.items.length - 1 && once(() => show(page.at + 1)),
};

// With a Korean or Greek keyboard layout, the key's position gives the letter.
function named(event) {
  if (/^[ -~]$/.test(event.key) || event.key.startsWith("Arrow")) return event.key.toLowerCase();
  return event.code === "Slash" && event.shiftKey ? "?" : event.code.replace("Key", "").toLowerCase();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || $("dialog").open || !page.item) return;
  if (event.target.closest("input, textarea, select")) return;
  const act = acts[named(event)];
  if (act) { event.preventDefault(); act(); }
});

for (const [id, key] of [["accept", "a"], ["reject", "d"], ["edit", "e"], ["note", "n"], ["undo", "u"], ["help", "?"], ["previous", "arrowleft"], ["next", "arrowright"]]) {
  $(id).addEventListener("click", () => page.item && acts[key]());
}

const given = new URLSearchParams(location.search).get("reviewer")?.trim();
if (given) once(() => begin(given)); else askName();
