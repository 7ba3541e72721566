"use strict";
// Numbers as people read them, and elements.

function inTime(seconds) {
  if (!Number.isFinite(seconds)) return "never ends";
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([length]) => seconds >= (length === 86400 ? 2 * length : length)) ?? [1, "s"];
  return `${(seconds / size).toPrecision(3)} ${unit}`;
}

function inMoney(usd) {
  if (!Number.isFinite(usd)) return "unknown";
  return `${usd.toLocaleString("en-US", { maximumSignificantDigits: 3 })} USD`;
}

function inPercent(share) {
  return `${(100 * share).toPrecision(3)} %`;
}

/** "27.4 h (19.0 h to 38.0 h)" of p5, p50 and p95. */
function inRange(quantiles, text) {
  if (!quantiles) return "unknown";
  const known = (value) => (value === null ? Infinity : value);
  return `${text(known(quantiles.p50))} (${text(known(quantiles.p5))} to ${text(known(quantiles.p95))})`;
}

/** An element with attributes and children; text is text, never markup. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function drawing(name, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

const byId = (id) => document.getElementById(id);
