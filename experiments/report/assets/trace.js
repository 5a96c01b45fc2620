// The steps of an answer: what was searched, the prompt as it was sent, what came back.
const LONG = 900;

// Below the cards, so that what is opened leaves them side by side.
function traceOf(cell, data, chosen) {
  const answer = data.answers[cell];
  if (answer?.trace === undefined) return null;
  return folded({ class: `trace key-${chosen.indexOf(cell) % 6}` }, ["Trace of ", number(index.cells[cell].number), " ", index.cells[cell].label,
    `: ${plural(answer.steps ?? 0, "step")}, with the prompts as sent`], () => openTrace(answer, data));
}

async function openTrace(answer, data) {
  await openItems("traces", [answer.trace]);
  const trace = item("traces", answer.trace);
  if (trace === undefined) return el("p", { class: "cut" }, "Steps were left out to keep this page small. The run folder has them.");
  const all = [trace.steps ?? [], ...(trace.subs ?? [])].flat();
  const parts = all.flatMap((step) => [...(step.result ?? []), ...(step.messages ?? []).flatMap((message) => message.slice(1))]).filter((part) => typeof part === "number");
  await openItems("prompts", parts);
  await openItems("evidence", parts.flatMap((part) => (item("prompts", part) ?? []).filter((piece) => typeof piece === "number")));
  const gold = new Map((data.passages ?? []).map((passage) => [passage.text, passage.gold]));
  const cited = new Set([...numbered(answer)].filter(([shownAs]) => (answer.cited ?? []).includes(shownAs)).map(([, place]) => data.passages[place].text));
  const kindOf = (text) => `piece${cited.has(text) ? " cited" : ""}${gold.get(text) ? " is-gold" : ""}`;
  return [stepsOf(trace.steps ?? [], kindOf),
    ...(trace.subs ?? []).map((steps, place) => folded({ class: "part" }, `Steps of sub-question ${place + 1}`, () => stepsOf(steps, kindOf)))];
}

// The calls of the chosen answers side by side, a line each, with the first that is not the same in all.
function pathsOf(data, chosen) {
  const shown = chosen.filter((cell) => data.answers[cell]?.trace !== undefined && data.answers[cell].found);
  if (!shown.some((cell) => data.answers[cell].found > 1)) return null;
  return folded({ class: "paths", open: true }, "Trajectories: what was called, what it brought (* gold), and tokens so far", async () => {
    await openItems("traces", shown.map((cell) => data.answers[cell].trace));
    const paths = shown.map((cell) => item("traces", data.answers[cell].trace)?.lines ?? []);
    const calls = paths.map((lines) => lines.filter((line) => line.tool).map((line) => `${line.tool} ${line.text}`));
    const most = Math.max(...calls.map((own) => own.length));
    const parts = [...Array(most).keys()].find((place) => calls.some((own) => own[place] !== calls[0][place]));
    return el("div", { class: "traces" }, shown.map((cell, place) => pathOf(cell, paths[place], parts, chosen)));
  });
}

function pathOf(cell, lines, parts, chosen) {
  const rows = lines.map((line, place) => el("tr", { class: place === parts ? "parts" : line.tool ? null : "end" },
    el("td", { class: "n" }, line.tool ? String(place + 1) : ""),
    el("td", { dir: "auto" }, place === parts ? el("span", { class: "parting" }, "they part here ") : null,
      line.tool ? el("strong", null, line.tool) : null, ` ${line.text}`),
    el("td", { dir: "auto" }, line.brought), el("td", { class: "n" }, line.gold), el("td", { class: "n" }, count(line.tokens))));
  return el("div", { class: `path trace key-${chosen.indexOf(cell) % 6}` },
    el("p", null, number(index.cells[cell].number), " ", index.cells[cell].label),
    lines.length ? el("table", null, el("thead", null, el("tr", null, ["", "call", "brought", "gold", "tokens"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", null, rows)) : el("p", { class: "cut" }, "Steps were left out to keep this page small. The run folder has them."));
}

const stepsOf = (steps, kindOf) => el("ol", { class: "steps" }, steps.map((step) => el("li", { class: "step" }, stepOf(step, kindOf),
  step.failure ? el("p", { class: "failure" }, el("strong", null, "Failure "), wordsOf(step.failure)) : null)));

function stepOf(step, kindOf) {
  if (step.query !== undefined) {
    return [el("p", null, el("strong", null, "search")), textOf(step.query),
      el("p", { class: "n" }, step.found ? `found ${step.found.map((shownAs) => `[${shownAs}]`).join(" ")}` : "found nothing")];
  }
  if (step.tool !== undefined) {
    return [el("p", null, el("strong", null, "tool "), el("code", { dir: "auto" }, step.tool)), (step.result ?? []).map((part) => partOf(part, kindOf)),
      step.found ? el("p", { class: "n" }, `found ${step.found.map((shownAs) => `[${shownAs}]`).join(" ")}`) : null];
  }
  if (step.decided !== undefined) return [el("p", null, el("strong", null, "decision"), " ", wordsOf(step.decided)), step.why ? textOf(step.why) : null];
  const [prompt, cached, completion] = step.tokens;
  const used = `${plural(prompt, "prompt token")}${cached ? ` (${count(cached)} of them cached)` : ""}, ${plural(completion, "completion token")}`;
  return [el("p", null, el("strong", null, step.purpose), " ", el("span", { class: "n" }, used, step.ended ? [", ended by ", el("code", null, step.ended)] : null)),
    (step.messages ?? []).map(([role, ...parts]) => el("div", { class: "message" }, el("p", { class: "role" }, role), parts.map((part) => partOf(part, kindOf)))),
    said("reasoning", step.reasoning), said("reply", step.reply), step.calls ? said("tool calls", step.calls.join("\n")) : null];
}

const said = (role, words) => (words ? el("div", { class: "message reply" }, el("p", { class: "role" }, role), textOf(words)) : null);

// A part of a prompt; one that is long, or that holds passages, is folded. Words stand for what is done with tools.
function partOf(part, kindOf) {
  if (typeof part === "string") return el("p", { class: "n", dir: "auto" }, part);
  const pieces = item("prompts", part);
  if (pieces === undefined) return el("p", { class: "cut" }, "This part of the prompt was left out to keep this page small. The run folder has it.");
  const passages = pieces.filter((piece) => typeof piece === "number");
  const size = pieces.reduce((sum, piece) => sum + sizeOf(piece), 0);
  const whole = () => el("div", { class: "text prompt", dir: "auto", tabindex: "0" }, pieces.map((piece) => pieceOf(piece, kindOf)));
  if (!passages.length && size <= LONG) return whole();
  const named = passages.length ? `${plural(passages.length, "passage")}, ${count(size)} characters` : `${count(size)} characters`;
  return folded({ class: "part" }, named, whole);
}

function sizeOf(piece) {
  if (typeof piece === "string") return piece.length;
  return typeof piece === "number" ? (item("evidence", piece)?.[0] ?? "").length : piece.left_out;
}

function pieceOf(piece, kindOf) {
  if (typeof piece === "string") return piece;
  if (typeof piece !== "number") return el("span", { class: "cut" }, ` ${count(piece.left_out)} further characters are left out here. `);
  const words = item("evidence", piece);
  return el("span", { class: kindOf(piece) }, words === undefined ? "(a passage that is not in this page)" : words[0] ?? "");
}
