// Create elements. Text of models and documents is only ever inserted as text, never as HTML.
export const $ = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  up: "M7 11v9H4v-9zM7 11l4-8c1.7 0 2.6 1.2 2.3 2.8L12.7 9H18a2 2 0 0 1 2 2.4l-1.3 7A2 2 0 0 1 16.7 20H7",
  down: "M17 13V4h3v9zM17 13l-4 8c-1.7 0-2.600-1.2-2.3-2.800l.6-3.2H6a2 2 0 0 1-2-2.4l1.3-7A2 2 0 0 1 7.3 4H17",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  again: "M4 12a8 8 0 1 0 2.5-5.800M4 4v5h5",
  out: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  down_small: "M7 10l5 5 5-5",
  edit: "M4 20h4L19 9l-4-4L4 16zM14 6l4 4",
  bin: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  leave: "M10 4H5v16h5M15 8l4 4-4 4M19 12H9",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 7.500v.5",
  filter: "M4 5h16l-6 8v6l-4-2v-4z",
  none: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM6 18L18 6",
  trouble: "M12 4l9 16H3zM12 10v4M12 17v.5",
};

export function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return made;
}

export function drawing(box, ...parts) {
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("viewBox", box);
  made.setAttribute("aria-hidden", "true");
  for (const [tag, attributes] of parts) {
    const part = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    made.append(part);
  }
  return made;
}

export const icon = (name) => drawing("0 0 24 24", ["path", { d: PATHS[name] }]);

// Create an icon button; its label is read by screen readers and shown on hover.
export const tool = (name, words, act, more) =>
  el("button", { type: "button", class: "quiet", "aria-label": words, title: words, onclick: act, ...more }, icon(name));

export const plural = (count, word, words) => `${count.toLocaleString("en")} ${count === 1 ? word : words ?? `${word}s`}`;
export const tell = (words) => { $("said").textContent = words; };

// Count completed answers; tests wait for it.
export function settle() {
  const { dataset } = document.documentElement;
  dataset.settled = String(Number(dataset.settled ?? 0) + 1);
}
