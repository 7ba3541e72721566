"use strict";
// Draws every chart of the page from the specification that stands beside it. Colours are variables of the style
// sheet, so that light, dark and print need no second drawing.
(() => {
  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  const config = {
    background: null,
    font,
    padding: { top: 0, left: 0, right: 0, bottom: 5 },
    view: { stroke: null },
    axis: {
      domainColor: "var(--line)", gridColor: "var(--grid)", tickColor: "var(--line)",
      labelColor: "var(--ink-2)", titleColor: "var(--ink-2)",
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", titlePadding: 8,
    },
    text: { color: "var(--ink)", fontSize: 12 },
    rule: { color: "var(--ink)" },
  };

  async function draw(element) {
    const source = document.getElementById(`spec-${element.dataset.chart}`);
    try {
      await vegaEmbed(element, JSON.parse(source.textContent),
                      { mode: "vega-lite", renderer: "svg", actions: false, config });
      return 1;
    } catch (error) {
      element.textContent = `This chart could not be drawn: ${error.message}`;
      element.classList.add("failed");
      console.error(error);
      return 0;
    }
  }

  const charts = [...document.querySelectorAll("[data-chart]")];
  Promise.all(charts.map(draw)).then((drawn) => {
    document.documentElement.dataset.drawn = String(drawn.reduce((sum, one) => sum + one, 0));
  });
})();
