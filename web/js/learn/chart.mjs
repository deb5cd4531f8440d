// Small charts as SVG and bars, drawn from numbers that the server computed.

import { make } from "../look/dom.mjs";
import { fixed, number } from "./numbers.mjs";

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [640, 240];
const FRAME = { left: 52, right: 26, top: 14, bottom: 44 };
const TICKS = 4;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Lines over `x`, a list of labels or {from, to}; `lines` {name: numbers}, `levels` {name: number} across the chart,
 * `mark` the index of a place to point out.
 */
export function chart({ label, x, lines, levels = {}, mark = -1, below = null, xName, yName }) {
  const every = [...Object.values(lines).flat(), ...Object.values(levels)];
  const high = Math.max(...every);
  const low = below ?? Math.min(...every);
  const room = (high - low || 1) * 0.06;
  const top = high + room;
  const bottom = below ?? low - room;
  const count = Array.isArray(x) ? x.length : Math.max(2, x.count);
  const atX = (i) => FRAME.left + ((WIDTH - FRAME.left - FRAME.right) * i) / Math.max(1, count - 1);
  const atY = (value) => FRAME.top + ((HEIGHT - FRAME.top - FRAME.bottom) * (top - value)) / (top - bottom);
  const parts = [];
  const text = (content, at, css = "") => parts.push(svg("text", { ...at, class: css }, content));
  for (let i = 0; i <= TICKS; i++) {
    const value = bottom + ((top - bottom) * i) / TICKS;
    parts.push(svg("line", { x1: FRAME.left, x2: WIDTH - FRAME.right, y1: atY(value), y2: atY(value), class: "hl-grid" }));
    text(value.toFixed(2), { x: FRAME.left - 6, y: atY(value) + 4, "text-anchor": "end" });
  }
  const labels = Array.isArray(x) ? x.map((name, i) => [i, name]) : [[0, String(x.from)], [count - 1, String(x.to)]];
  for (const [i, name] of labels) text(name, { x: atX(i), y: HEIGHT - FRAME.bottom + 16, "text-anchor": i === count - 1 && !Array.isArray(x) ? "end" : "middle" });
  text(xName, { x: (WIDTH + FRAME.left) / 2, y: HEIGHT - 4, "text-anchor": "middle" });
  if (mark >= 0) parts.push(svg("line", { x1: atX(mark), x2: atX(mark), y1: FRAME.top, y2: HEIGHT - FRAME.bottom, class: "hl-here" }));
  for (const [i, value] of Object.values(levels).entries()) parts.push(svg("line", { x1: FRAME.left, x2: WIDTH - FRAME.right, y1: atY(value), y2: atY(value), class: `hl-level hl-level-${i}` }));
  for (const [i, values] of Object.values(lines).entries()) {
    const path = values.map((value, at) => `${at ? "L" : "M"}${atX(at).toFixed(1)} ${atY(value).toFixed(1)}`).join("");
    if (values.length) parts.push(svg("path", { d: path, class: `hl-line hl-line-${i}` }));
  }
  const key = (css, i, name) => make("li", {}, make("i", { class: `${css} ${css}-${i}` }), name);
  const legend = make("ul", { class: "hl-key-list" }, ...Object.keys(lines).map((name, i) => key("hl-line-key", i, name)), ...Object.keys(levels).map((name, i) => key("hl-level-key", i, `${name} ${number(levels[name])}`)));
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "hl-chart" }, ...parts);
  return make("figure", { class: "hl-figure" }, make("figcaption", {}, make("b", {}, yName)), picture, legend);
}

/** Named bars with their numbers; `most` is the length of a whole bar. */
export function bars(name, entries, most, say = fixed) {
  const rows = entries.map(({ label, value }) => {
    const amount = make("span", { class: "hl-amount" });
    amount.style.setProperty("--part", most > 0 ? value / most : 0);
    return make("tr", {}, make("th", { scope: "row" }, label), make("td", {}, amount), make("td", {}, say(value)));
  });
  return make("figure", { class: "hl-figure hl-bars" }, make("figcaption", {}, make("b", {}, name)), make("table", { "aria-label": name }, make("tbody", {}, ...rows)));
}
