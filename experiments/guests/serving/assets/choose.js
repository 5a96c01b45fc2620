// Choose the configuration that answers, and a second one to compare with; each is shown with its score.
import { $, drawing, el, icon } from "./dom.js";

// chosen: null lets the server choose: the first one, or in an A/B test a random one, where `explore` is the share of
// conversations that go to other configurations than the first.
export const choice = { all: [], explore: 0, chosen: null, beside: null };

const two = (number) => number.toFixed(2);
export const scoreOf = ({ measured }) => (measured && measured.mean !== null ? `${measured.words} ${two(measured.mean)}` : "");
export const named = (name) => choice.all.find((one) => one.name === name);

const first = () => choice.chosen ?? (choice.explore ? null : choice.all[0].name);
export const lanes = () => (choice.beside ? [first() ?? choice.all[0].name, choice.beside] : [choice.chosen]);

// changed: called with true if the comparison has changed.
export function drawChoice(changed) {
  const names = lanes().map((name) => name ?? first());
  if (choice.all.length === 1) $("which").replaceChildren(icon("info"), el("span", { class: "soft" }, "About these answers"));
  else $("which").replaceChildren(el("span", { class: "unseen" }, "Answered by"), el("bdi", null, names.map((name) => name ?? "A/B test").join(" and ")),
    names.length > 1 || !names[0] ? "" : el("span", { class: "soft" }, scoreOf(named(names[0]))), icon("down_small"));
  $("choose").replaceChildren(...cards("chosen-above", changed));
  $("cards")?.replaceChildren(...cards("chosen", changed));
}

function cards(group, changed) {
  const [now] = choice.beside ? lanes() : [first()];
  const live = { name: null, description: `Assigns ${Math.round(100 * choice.explore)} % of conversations at random to configurations other than ${choice.all[0].name}.` };
  return [...(choice.explore ? [live] : []), ...choice.all].map((one) => {
    const radio = el("input", { type: "radio", name: group, value: one.name ?? "", checked: one.name === now, onchange: () => {
      choice.chosen = one.name;
      const ended = choice.beside !== null && (one.name === null || choice.beside === one.name);
      if (ended) choice.beside = null;
      changed(ended);
      document.querySelector(`#${group === "chosen" ? "cards" : "choose"} input:checked`)?.focus();
    } });
    const beside = one.name === (now ?? choice.all[0].name) || one.name === null ? null : el("button", {
      type: "button", class: "compare", "aria-pressed": String(choice.beside === one.name),
      onclick: () => {
        choice.beside = choice.beside === one.name ? null : one.name;
        changed(true);
      } }, "Side by side");
    return el("div", { class: one.name === now ? "card chosen" : "card" }, el("label", null, radio, el("span", { class: "about" },
      el("strong", { dir: "auto" }, one.name ?? "A/B test"), el("span", { class: "soft", dir: "auto" }, one.description),
      one.name === null ? null : figures(one.measured))), beside);
  });
}

function figures(measured) {
  if (!measured || measured.mean === null) return el("span", { class: "figures soft" }, "Not measured");
  const { words, mean, low, high, n, run, date, changed } = measured, known = low !== null && high !== null;
  return el("span", { class: "figures" },
    el("span", { class: "mean" }, two(mean)), known ? span(mean, low, high) : null,
    el("span", { class: "soft" }, words, known ? ` [${two(low)}, ${two(high)}]` : "", ` on ${n.toLocaleString("en")} questions, run `, el("bdi", null, run), ` of ${date}`,
      changed ? "; prompts or strategies have changed since" : ""));
}

// Draw a mean with its interval, between 0 and 1.
function span(mean, low, high) {
  if (low < 0 || high > 1) return null;
  return drawing("0 0 100 8", ["path", { class: "axis", d: "M0 4H100" }], ["path", { class: "reach", d: `M${100 * low} 4H${100 * high}` }],
    ["circle", { class: "dot", cx: String(100 * mean), cy: "4", r: "3" }]);
}
