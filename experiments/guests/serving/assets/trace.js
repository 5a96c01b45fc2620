// The trace of an answer: each search, call of a tool, call of the model and decision, and the cost.
import { el, plural } from "./dom.js";

const count = (steps, kind) => steps.filter((step) => step.kind === kind).length;

export function summary({ steps, usage, seconds, notes = [] }) {
  const parts = [["cached", "stored answer"], ["fallback", "second model"]].filter(([note]) => notes.includes(note)).map(([, shown]) => shown);
  if (count(steps, "search")) parts.push(plural(count(steps, "search"), "search", "searches"));
  if (count(steps, "tool")) parts.push(plural(count(steps, "tool"), "tool call"));
  if (usage.calls) parts.push(plural(usage.calls, "call"));
  parts.push(`${seconds.toFixed(1)} s`);
  return parts.join(" · ");
}

export function traceParts(answer, passages, chip) {
  const { question, standalone, steps, reasoning, usage, seconds, configuration } = answer;
  const facts = [
    ["Configuration", configuration], ["Outcome", answer.outcome], ["Seconds", seconds.toFixed(1)], ["Calls", usage.calls],
    ["Prompt tokens", usage.prompt_tokens], ["Cached prompt tokens", usage.cached_tokens], ["Reply tokens", usage.completion_tokens],
    ["Price", usage.price ? `$${usage.price.toPrecision(2)}` : null]];
  return [el("div", { class: "trace" },
    el("p", { class: "asked", dir: "auto" }, question),
    standalone && standalone !== question ? part("Rewritten question", el("p", { dir: "auto" }, standalone)) : null,
    el("ol", { class: "path" }, steps.map((step) => el("li", { class: step.failure ? "failed" : step.kind }, stepOf(step, passages, chip)))),
    reasoning ? el("details", null, el("summary", null, "Reasoning"), el("p", { class: "long", dir: "auto" }, reasoning)) : null,
    part("Cost", el("dl", { class: "facts" }, facts.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) =>
      el("div", null, el("dt", null, name), el("dd", null, typeof value === "number" ? value.toLocaleString("en") : value))))))];
}

const part = (title, ...parts) => el("section", null, el("h3", null, title), ...parts);

function stepOf(step, passages, chip) {
  if (step.kind === "decision") return [el("b", { dir: "auto" }, step.what), step.why ? el("p", { dir: "auto" }, step.why) : null];
  if (step.kind === "search") {
    return [el("b", null, "Search"), el("p", { class: "query", dir: "auto" }, step.query), failure(step),
      el("p", { class: "found" }, step.found.length ? step.found.map((n) => chipOr(n, passages, chip)) : "nothing found")];
  }
  if (step.kind === "tool") {
    return [el("b", { dir: "auto" }, step.tool), el("p", { class: "query", dir: "auto" }, argued(step.arguments)), failure(step),
      step.found.length ? el("p", { class: "found" }, step.found.map((n) => chipOr(n, passages, chip))) : null,
      step.text ? el("details", null, el("summary", null, "Result"), el("p", { class: "long", dir: "auto" }, step.text)) : null];
  }
  const { prompt_tokens: sent, completion_tokens: said } = step;
  return [el("b", null, purpose(step.purpose)), failure(step),
    sent || said ? el("p", { class: "soft" }, `${plural(sent, "token")} read, ${said.toLocaleString("en")} written`) : null,
    step.text ? el("details", null, el("summary", null, "Reply"), el("p", { class: "long", dir: "auto" }, step.text)) : null];
}

const failure = ({ failure: why }) => (why ? el("p", { class: "why", dir: "auto" }, why) : null);
const chipOr = (n, passages, chip) => (passages.has(n) ? chip([n]) : el("span", { class: "chip", title: "not shown to the model" }, String(n)));

// Return the arguments of a tool's call for people: the value of a single one, or names and values.
export function argued(text) {
  const read = Object.entries(JSON.parse(text));
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return read.length === 1 ? shown(read[0][1]) : read.map(([name, value]) => `${name}: ${shown(value)}`).join(", ");
}

// Return a call's purpose for people.
export const purpose = (name) => { const words = name.replaceAll("_", " "); return words[0]?.toUpperCase() + words.slice(1); };
