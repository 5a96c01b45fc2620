// One answer: its steps and text while it is written, then its sources, its trace, and feedback.
import { post } from "./api.js";
import { el, icon, plural, settle, tell, tool } from "./dom.js";
import { chipOf, openParts } from "./pane.js";
import { rendered } from "./text.js";
import { argued, purpose, summary, traceParts } from "./trace.js";

const REFUSED = "Not in the documents";
const LONG = 200; // characters of a tool's arguments or result while the answer is written; the trace has the rest
const FAILED = { timeout: "Timed out", budget: "Limit reached", too_long: "Too much text for the model", malformed: "The model's reply could not be read", stopped: "Stopped" };

const cut = (text) => (text.length > LONG ? `${text.slice(0, LONG)}…` : text);
const keyOf = ({ tool: name, arguments: given }) => `${name} ${given}`;

// The text of an answer, and a line for each source that it cites.
function withSources({ text, sources }) {
  const cited = sources.filter((source) => source.cited).map(({ n, title, url }) => `[${n}] ${title}: ${new URL(url.slice(1), location.href)}`);
  return [text.trim(), cited.join("\n")].filter(Boolean).join("\n\n");
}

export class Answer {
  // again: asks the question again. label: the configuration, if there are several. labelOf: returns the label of a
  // configuration that a rating reveals.
  constructor(again, label, labelOf) {
    Object.assign(this, { again, labelOf });
    this.passages = new Map();
    this.steps = [];
    this.text = "";
    this.label = el("p", { class: "label", dir: "auto" }, label);
    this.progress = el("ol", { class: "progress" });
    this.words = el("div", { class: "words" });
    this.end = el("div", { class: "end" });
    this.element = el("article", { class: "answer", "aria-busy": "true" }, this.label, this.progress, this.words, this.end);
    this.begin("Starting");
  }

  take(event) {
    const { event: kind } = event;
    if (kind === "begun") this.record = event.record;
    else if (kind === "searching") this.begin("Searching for", event.query);
    else if (kind === "search") this.searched(event);
    else if (kind === "calling") this.begin(`Calling ${event.tool}`, cut(argued(event.arguments)), keyOf(event));
    else if (kind === "tool") this.called(event);
    else if (kind === "asking") this.begin(purpose(event.purpose), "", event.call);
    else if (kind === "reply") this.finish(this.steps.find((step) => step.call === event.call), event.failure);
    else if (kind === "decision") this.finish(this.begin(event.what));
    else if (kind === "text") this.write(event.text);
    else if (kind === "answer") this.show(event);
  }

  begin(words, query, call) {
    const own = el("li", { class: "under-way" }, words, query ? el("q", { dir: "auto" }, query) : null);
    const step = { own, query, call };
    this.steps.push(step);
    this.progress.append(own);
    if (this.steps.length === 2) this.steps[0].own.remove();
    return step;
  }

  finish(step, failure) {
    step?.own.classList.remove("under-way");
    if (failure) step?.own.classList.add("failed");
  }

  searched({ query, found, failure, passages }) {
    const step = this.steps.find((one) => one.query === query && one.own.classList.contains("under-way")) ?? this.begin("Searching for", query);
    this.finish(step, failure);
    step.own.firstChild.data = "Searched for";
    step.own.append(el("span", { class: "soft" }, failure ?? this.foundWords(found, passages)));
  }

  called(event) {
    const { tool: name, found, failure, passages, text } = event;
    const step = this.steps.find((one) => one.call === keyOf(event) && one.own.classList.contains("under-way"))
      ?? this.begin("", cut(argued(event.arguments)));
    this.finish(step, failure);
    step.own.firstChild.data = `Called ${name}`;
    const words = this.foundWords(found, passages);
    step.own.append(el("span", { class: "soft", dir: "auto" }, cut(failure ?? (found.length ? words : text || words))));
  }

  foundWords(found, passages = []) {
    for (const one of passages) this.passages.set(one.n, one);
    const documents = new Set(passages.map((one) => one.document)).size;
    return found.length ? `${plural(found.length, "passage")}${documents ? ` in ${plural(documents, "document")}` : ""}` : "nothing found";
  }

  write(text) {
    this.text += text;
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = null;
      if (!this.whole) this.draw(this.text, null);
    });
  }

  draw(text, citations) {
    this.progress.hidden = Boolean(text.trim());
    this.words.replaceChildren(...rendered(text, citations, (numbers) => this.chip(numbers)));
  }

  chip(numbers) {
    const sources = numbers.map((n) => this.passages.get(n)).filter(Boolean);
    return sources.length ? chipOf(sources) : null;
  }

  // Show a complete answer, with its feedback if it is from an earlier thread.
  show(answer, feedback) {
    this.whole = answer;
    for (const one of answer.sources) this.passages.set(one.n, one);
    const { outcome, failure } = answer, stopped = failure?.kind === "stopped";
    if (outcome === "answered" && !stopped) this.draw(answer.text, answer.citations);
    else if (outcome === "refused" && !stopped) this.notice("refused", "none", REFUSED, answer.text);
    else if (failure?.kind === "withheld") this.notice("failed", "trouble", "Answer withheld", answer.text);
    else this.notice("failed", "trouble", FAILED[stopped ? "stopped" : outcome] ?? "Error", failure?.message ?? answer.text);
    this.close(answer, feedback);
    const cited = answer.sources.filter((source) => source.cited).length;
    tell(outcome === "answered" ? `Answer complete, with ${plural(cited, "source")}.` : this.notified);
  }

  notice(kind, picture, title, words) {
    this.element.classList.add(kind);
    this.notified = `${title}. ${words}`; // for screen readers
    this.progress.hidden = true;
    this.words.replaceChildren(icon(picture), el("div", null, el("strong", null, title), el("p", { dir: "auto" }, words)));
  }

  // Show an answer that was interrupted: the reason, and the text so far.
  fail(title, why) {
    if (this.whole) return;
    const before = this.text ? rendered(this.text, null, (numbers) => this.chip(numbers)) : [];
    this.notice("failed", "trouble", title, why);
    this.words.after(...before.map((one) => { one.classList.add("soft"); return one; }));
    this.close(null);
    tell(`${title}. ${why}`);
  }

  close(answer, feedback) {
    this.element.setAttribute("aria-busy", "false");
    this.progress.hidden = true;
    if (answer?.failure?.kind === "withheld") { // asking again in this conversation would fail, and there is no trace
      settle();
      return;
    }
    const failed = this.element.classList.contains("failed");
    const tools = el("div", { class: "tools" });
    if (failed) tools.append(el("button", { type: "button", class: "again", onclick: this.again }, icon("again"), "Try again"));
    if (answer) {
      this.end.append(...this.sources(answer));
      if (!failed) tools.append(...this.opinion(answer, feedback));
      if (!failed && navigator.clipboard) tools.append(tool("copy", "Copy with sources", () => navigator.clipboard.writeText(withSources(answer)).then(() => tell("Copied."))));
      if (!failed) tools.append(tool("again", "Ask again", this.again));
      tools.append(el("button", {
        type: "button", class: "quiet took", title: "Show the trace",
        onclick: ({ currentTarget }) => openParts("Trace", traceParts(answer, this.passages, (numbers) => this.chip(numbers)), currentTarget),
      }, summary(answer)));
    }
    this.end.append(tools, ...(this.comment ? [this.comment] : []));
    settle();
  }

  sources({ sources, outcome }) {
    const cited = sources.filter((source) => source.cited);
    if (outcome === "answered" && !cited.length) return [el("p", { class: "uncited" }, "This answer cites no source.")];
    return cited.length ? [el("ol", { class: "sources", "aria-label": "Sources" }, cited.map((source) => {
      const one = chipOf([source]);
      one.className = "source";
      one.removeAttribute("aria-label"); // its text is its name
      one.replaceChildren(el("span", { class: "unseen" }, "Source "), el("span", { class: "number" }, String(source.n)), el("bdi", null, source.title));
      return el("li", null, one);
    }))] : [];
  }

  opinion({ record }, feedback) {
    const kept = { thumb: feedback?.thumb ?? null, comment: feedback?.comment ?? "" };
    const thumbs = [["up", "Good answer"], ["down", "Bad answer"]].map(([name, words]) =>
      tool(name, words, () => rate({ thumb: kept.thumb === name ? null : name }), { "aria-pressed": "false", "data-thumb": name }));
    const field = el("textarea", { rows: "2", dir: "auto", maxlength: "10000", placeholder: "What is wrong? What would be the correct answer?", "aria-label": "Comment" }, kept.comment);
    const said = el("span", { class: "soft" });
    this.comment = el("form", { class: "comment", hidden: !kept.comment }, field, el("div", null, said, el("button", { type: "submit" }, "Save")));
    const draw = () => thumbs.forEach((one) => one.setAttribute("aria-pressed", String(kept.thumb === one.dataset.thumb)));
    const rate = async (change) => {
      try {
        const { thumb, comment } = { ...kept, ...change };
        const { configuration } = await post("/api/feedback", { record, thumb, comment });
        if (configuration && this.labelOf) {
          this.whole.configuration = configuration;
          this.label.replaceChildren(...[this.labelOf(configuration)].flat());
        }
        Object.assign(kept, change);
        said.textContent = "Saved";
        if (thumb === "down" && this.comment.hidden) { this.comment.hidden = false; field.focus(); }
        if (thumb !== "down" && !kept.comment) this.comment.hidden = true;
      } catch (error) {
        this.comment.hidden = false;
        said.textContent = error.message;
      }
      draw();
      tell(said.textContent);
    };
    this.comment.onsubmit = (event) => { event.preventDefault(); rate({ comment: field.value.trim() }); };
    field.oninput = () => { said.textContent = ""; };
    field.onkeydown = (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.comment.requestSubmit(); };
    draw();
    return thumbs;
  }
}
