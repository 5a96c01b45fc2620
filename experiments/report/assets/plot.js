// The figure comes from Python; only its colours are chosen here, because they follow the reader's scheme.
const THEMES = {
  light: { ink: "#1b2430", grid: "#d9dee5", line: "#8a94a3", sheet: "#ffffff" },
  dark: { ink: "#e6eaf0", grid: "#343c48", line: "#7f8a9a", sheet: "#1b2028" },
};
const darkScheme = matchMedia("(prefers-color-scheme: dark)");

function themed(print) {
  const theme = THEMES[darkScheme.matches && !print ? "dark" : "light"];
  const axis = (name) => ({ [`${name}.gridcolor`]: theme.grid, [`${name}.linecolor`]: theme.line, [`${name}.tickcolor`]: theme.line });
  return {
    "font.color": theme.ink, "font.family": "system-ui, sans-serif", "font.size": 13, "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
    "hoverlabel.bgcolor": theme.sheet, "hoverlabel.bordercolor": theme.line, "hoverlabel.font.color": theme.ink,
    ...axis("xaxis"), ...axis("yaxis"),
  };
}

async function drawPlot(chart) {
  const library = document.createElement("script");
  library.textContent = await unpack(document.getElementById("library"));
  document.head.append(library);
  const figure = JSON.parse(document.getElementById("figure").textContent);
  const config = { displayModeBar: false, responsive: true, showTips: false, scrollZoom: false, doubleClick: false };
  await Plotly.newPlot(chart, figure.data, figure.layout, config);
  await Plotly.relayout(chart, themed(false));
  darkScheme.addEventListener("change", () => Plotly.relayout(chart, themed(false)));
  addEventListener("beforeprint", () => Plotly.relayout(chart, { ...themed(true), width: 680 }));
  addEventListener("afterprint", () => Plotly.relayout(chart, { ...themed(false), width: null, autosize: true }));
}

const chart = document.getElementById("chart");
if (chart) {
  drawPlot(chart).catch((error) => {
    chart.textContent = `This browser could not draw the plot (${error.name}). The table above has the same figures.`;
  });
}
