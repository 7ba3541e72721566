"use strict";
// The forecast's numbers, and two pinned plans beside them.

const kRows = [
  ["Time", (f) => inRange(f.time_seconds, inTime), (f) => f.time_seconds],
  ["Cost", (f) => inRange(f.cost_usd, inMoney), (f) => f.cost_usd],
  ["Goodput", (f) => inPercent(f.goodput), null],
  ["Step", (f) => inTime(f.step.seconds), null],
  ["Accelerators", (f) => String(f.accelerators), null],
  ["Memory", (f) => `${(f.memory.required_bytes / 2 ** 30).toPrecision(3)} of ` +
    `${(f.memory.available_bytes / 2 ** 30).toPrecision(3)} GiB`, null],
];

function showFacts(f) {
  const fact = (name, value, range) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, make("b", {}, value), range));
  if (!f.feasible) {
    byId("facts").replaceChildren(fact("Not feasible", "does not fit in memory", kRows[5][1](f)));
    return "does not fit in memory";
  }
  const parts = (quantiles, text) => {
    const [middle, range] = inRange(quantiles, text).split(" (");
    return [middle, range ? `${range.slice(0, -1)} in nine of ten runs` : "a price is missing"];
  };
  const time = parts(f.time_seconds, inTime), cost = parts(f.cost_usd, inMoney);
  byId("facts").replaceChildren(
    fact("Time, median", ...time), fact("Cost, median", ...cost),
    fact("Goodput, mean", inPercent(f.goodput), `${f.accelerators} accelerators, ${inTime(f.step.seconds)} a step`));
  return `time ${time[0]}, ${time[1]}; cost ${cost[0]}`;
}

/** Sentences: is each limit kept? Of a probability that is no quantile of the answer nobody says. */
function limitSentences(f, controls) {
  const of = { deadline: ["time_seconds", inTime], budget: ["cost_usd", inMoney] };
  return controls.filter((c) => c.limit && of[c.name] && f.feasible && f[of[c.name][0]]).map((c) => {
    const [field, text] = of[c.name], { value, probability } = c.limit;
    const name = probability === null ? "mean" : `p${Math.round(100 * probability)}`;
    const held = f[field][name];
    if (held === undefined) return `${c.label} ${c.value}: see the points of the front.`;
    const kept = held !== null && held <= value;
    return `${c.label} ${c.value}: ${name} is ${text(held ?? Infinity)}, ${kept ? "kept" : "missed"}.`;
  });
}

/** A bar from p5 to p95 with a tick at the median; the cell's text says the same. */
function rangeBar(quantiles, most) {
  const svg = drawing("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  if (!quantiles || [quantiles.p5, quantiles.p50, quantiles.p95].includes(null)) return svg;
  const at = (value) => (97 * value) / most;
  svg.append(
    drawing("line", { class: "bar", x1: at(quantiles.p5), x2: at(quantiles.p95), y1: 5, y2: 5 }),
    drawing("line", {
      class: "tick", x1: at(quantiles.p50), x2: at(quantiles.p50), y1: 1, y2: 9, "vector-effect": "non-scaling-stroke",
    }));
  return svg;
}

class Pins {
  constructor(onUse) {
    this.onUse = onUse;
    this.pinned = new Map(); // "A" -> {forecast, entries}
    this.now = null;
  }
  pin(name) {
    if (!this.now) return;
    this.pinned.set(name, { forecast: this.now.forecast, entries: this.now.entries });
    this.draw();
  }
  show(forecast, entries) {
    this.now = { forecast, entries };
    this.draw();
  }
  draw() {
    const columns = [["now", this.now], ...[...this.pinned].sort()].filter(([, plan]) => plan);
    byId("compare-note").hidden = this.pinned.size > 0;
    if (this.pinned.size === 0) return byId("compare").replaceChildren();
    const head = make("tr", {}, make("td", {}), ...columns.map(([name]) => make("th", { scope: "col" }, name)));
    const rows = kRows.map(([name, text, range]) => {
      const ranges = range ? columns.map(([, plan]) => range(plan.forecast)) : [];
      const most = Math.max(0, ...ranges.map((r) => r?.p95 ?? 0));
      return make("tr", {}, make("th", { scope: "row" }, name), ...columns.map(([, plan]) => {
        const said = plan.forecast.feasible || name === "Memory" ? text(plan.forecast) : "not feasible";
        return make("td", {}, said, ...(range && most > 0 ? [rangeBar(range(plan.forecast), most)] : []));
      }));
    });
    const chosen = make("tr", {}, make("th", { scope: "row" }, "Chosen"), ...columns.map(([name, plan]) => {
      const words = plan.entries.map((e) => e.word).join("\n") || "as in the file";
      const use = make("button", { type: "button" }, `Use ${name} again`);
      use.addEventListener("click", () => this.onUse(plan.entries));
      return make("td", {}, make("details", {}, make("summary", {}, "words of --set"), words),
        ...(name === "now" ? [] : [use]));
    }));
    byId("compare").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows, chosen));
  }
}
