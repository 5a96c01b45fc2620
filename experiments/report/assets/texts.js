// Prompts and the rest of long passages are put in place when the details around them open.
const blocks = [...document.querySelectorAll("script.texts")];
const opened = new Map();

function block(number) {
  if (!opened.has(number)) opened.set(number, unpack(blocks[number]).then(JSON.parse));
  return opened.get(number);
}

async function fill(element) {
  const [number, item] = element.dataset.text.split(":").map(Number);
  delete element.dataset.text;
  try {
    element.textContent = (await block(number))[item];
  } catch (error) {
    element.textContent = `This browser could not unpack the text (${error.name}).`;
  }
}

document.addEventListener("toggle", (event) => {
  if (!event.target.open) return;
  for (const element of event.target.querySelectorAll("[data-text]")) {
    if (element.closest("details") === event.target) fill(element);
  }
}, true);
