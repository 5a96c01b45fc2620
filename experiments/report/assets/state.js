// What is looked for and what is open stands in the address, so that a link opens the same view.
const PREFIX = "#questions?";

function readState() {
  const given = new URLSearchParams(location.hash.slice(PREFIX.length));
  const state = { ...NOTHING };
  for (const name of Object.keys(NOTHING)) state[name] = given.get(name) ?? "";
  for (const name of [...OF_ANSWERS, "tag"]) if (!index.words[name].includes(state[name])) state[name] = "";
  if (!["yes", "no"].includes(state.answerable)) state.answerable = "";
  const cells = new Set(index.cells.map((cell) => String(cell.number)));
  for (const name of ["cell", "right", "wrong"]) if (!cells.has(state[name])) state[name] = "";
  for (const [name, known] of [["agree", AGREE], ["order", ORDERS]]) if (!Object.hasOwn(known, state[name])) state[name] = "";
  state.side = state.side.split(",").filter((cell) => cells.has(cell)).join(",");
  return state;
}

const isState = () => location.hash.startsWith(PREFIX);

function addressOf(state) {
  const given = Object.entries(state).filter(([, value]) => value);
  return given.length ? PREFIX + new URLSearchParams(given) : "#questions";
}

function writeState(state) {
  if (addressOf(state) !== location.hash && (isState() || addressOf(state) !== "#questions")) history.replaceState(null, "", addressOf(state));
}
