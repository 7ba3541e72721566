"use strict";
// Time against cost of the plans that no other beats in both: each point is a button.

/** Four to eight round numbers from 0 to beyond `most`. */
function ticks(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((s) => most / s <= 8);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, k) => k * step);
}

function planText({ plan }) {
  const node = plan.machine ?? plan.slice;
  return `${plan.nodes} x ${node} (${plan.accelerators_per_node} ${plan.accelerator ?? "CPU"}) in ${plan.region}, ` +
    `${plan.bought}, ${plan.strategy}`;
}

class Front {
  constructor(onPick) {
    this.onPick = onPick;
    this.points = []; // {plan, time_seconds, cost_usd, meets_all_limits}
    this.buttons = []; // of the points
    this.here = null;
    this.cross = make("span", { class: "here", "aria-hidden": "true" }, "✕ now");
    this.axes = make("div");
  }

  show(answer) {
    this.points = answer.pareto;
    const limits = ["deadline", "budget"].filter((l) => answer[l]).map((l) => `${l} ${answer[l].text}`).join(", ");
    byId("front-note").textContent = answer.infeasible
      ? `No plan fits: ${answer.infeasible.reason}`
      : `${answer.pareto.length} of ${answer.candidates_considered.toLocaleString("en-US")} plans considered` +
        `${limits ? `; ${limits}: a filled point meets it` : ""}. Means of ${answer.replications} replications.`;
    this.buttons = this.points.map((point) => this.button(point));
    byId("front").replaceChildren(...(this.points.length > 0 ? [this.axes, ...this.buttons, this.cross] : []));
    this.drawTable();
    this.place();
  }
  /** Marks what is chosen now. */
  mark(forecast) {
    this.here = forecast.feasible && forecast.cost_usd ? forecast : null;
    this.place();
  }
  /** What is chosen is no longer a point. */
  leave() {
    for (const button of this.buttons) button.setAttribute("aria-pressed", "false");
  }

  button(p) {
    const meets = p.meets_all_limits ? "" : ", misses a limit";
    const text = `${planText(p)}: ${inTime(p.time_seconds.mean)}, ${inMoney(p.cost_usd.mean)}${meets}`;
    const button = make("button", {
      type: "button", title: text, "aria-label": text, "aria-pressed": "false", class: p.meets_all_limits ? "" : "misses",
    });
    button.addEventListener("click", () => {
      this.onPick(p.plan.overrides);
      button.setAttribute("aria-pressed", "true");
    });
    return button;
  }

  /** The same buttons at their places: axes grow where what is chosen lies beyond the points. */
  place() {
    if (this.points.length === 0) return;
    const shown = this.here ? [...this.points, this.here] : this.points;
    const mostTime = 1.05 * Math.max(...shown.map((p) => p.time_seconds.mean ?? 0));
    const mostCost = 1.05 * Math.max(...shown.map((p) => p.cost_usd.mean ?? 0));
    this.axes.replaceChildren();
    this.drawAxes(mostTime, mostCost);
    const put = (element, p) => {
      element.style.left = `${(100 * p.time_seconds.mean) / mostTime}%`;
      element.style.top = `${100 - (100 * p.cost_usd.mean) / mostCost}%`;
    };
    this.points.forEach((point, k) => put(this.buttons[k], point));
    this.cross.hidden = !this.here;
    if (this.here) put(this.cross, this.here);
  }

  drawAxes(mostTime, mostCost) {
    const svg = drawing("svg", { "aria-hidden": "true" });
    this.axes.append(svg);
    const unit = mostTime > 2 * 86400 ? [86400, "d"] : mostTime > 2 * 3600 ? [3600, "h"] : [60, "min"];
    for (const t of ticks(mostTime / unit[0])) {
      const x = `${(100 * t * unit[0]) / mostTime}%`;
      svg.append(drawing("line", { x1: x, x2: x, y1: "0%", y2: "100%" }));
      const label = make("span", { class: "label below" }, `${Number(t.toPrecision(3))} ${unit[1]}`);
      label.style.left = x;
      this.axes.append(label);
    }
    for (const c of ticks(mostCost)) {
      const y = `${100 - (100 * c) / mostCost}%`;
      svg.append(drawing("line", { x1: "0%", x2: "100%", y1: y, y2: y }));
      const label = make("span", { class: "label beside" }, inMoney(c));
      label.style.top = y;
      this.axes.append(label);
    }
  }

  drawTable() {
    const head = ["plan", "mean time", "mean cost", "meets all limits"];
    byId("front-table").replaceChildren(
      make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { scope: "col" }, h)))),
      make("tbody", {}, ...this.points.map((p) => make("tr", {},
        make("th", { scope: "row" }, planText(p)), make("td", {}, inTime(p.time_seconds.mean)),
        make("td", {}, inMoney(p.cost_usd.mean)), make("td", {}, p.meets_all_limits ? "yes" : "no")))));
  }
}
