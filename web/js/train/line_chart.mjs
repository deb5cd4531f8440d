// An SVG chart of a few lines over the seconds of a training.

import { make, svg } from "../lib/dom.mjs";
import { roundTicks } from "../lib/numbers.mjs";
import { clock } from "./words.mjs";

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {string} css
 * @property {[seconds: number, value: number][]} points
 */

/** @typedef {{ name: string, css: string, value: number }} Level a line across the chart */
/** @typedef {{ name: string, css: string, at: [seconds: number, value: number] }} Spot a point that stands out */

const FRAME = { left: 40, right: 10, top: 10, bottom: 22 };

export class LineChart {
  /**
   * @param {string} label a description for screen readers
   * @param {(seconds: number | null) => void} point gets the time under the pointer, null when it leaves
   */
  constructor(label, point = () => {}) {
    this.label = label;
    this.element = svg("svg", { class: "ht-chart", role: "img", "aria-label": label });
    this.mark = svg("line", { class: "ht-mark", visibility: "hidden" });
    /** @type {[number, number]} */
    this.box = [600, 220];
    this.last = 1;
    this.element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      const { left, width } = this.element.getBoundingClientRect();
      const x = ((event.clientX - left) / width) * this.box[0];
      const part = (x - FRAME.left) / (this.box[0] - FRAME.left - FRAME.right);
      point(Math.min(Math.max(part, 0), 1) * this.last);
    });
    this.element.addEventListener("pointerleave", () => point(null));
  }

  /**
   * @param {Line[]} lines
   * @param {Level[]} levels
   * @param {{ last: number, low: number, high: number }} range of the seconds and the values
   * @param {Spot[]} [spots]
   */
  draw(lines, levels, { last, low, high }, spots = []) {
    const width = this.element.clientWidth || this.box[0];
    const height = this.element.clientHeight || this.box[1];
    this.box = [width, height];
    this.last = last;
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const [right, bottom] = [width - FRAME.right, height - FRAME.bottom];
    const x = (/** @type {number} */ seconds) => FRAME.left + ((right - FRAME.left) * seconds) / last;
    const y = (/** @type {number} */ value) => bottom - ((bottom - FRAME.top) * (value - low)) / (high - low);
    this.x = x;
    /** @type {Element[]} */
    const parts = [];
    for (const { value, text } of roundTicks(low, high)) {
      parts.push(svg("line", { x1: FRAME.left, x2: right, y1: y(value), y2: y(value), class: "ht-grid" }));
      parts.push(svg("text", { x: FRAME.left - 6, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    for (const { value: seconds } of roundTicks(0, last, width < 420 ? 4 : 8)) {
      const isLast = x(seconds) > right - 24;
      const label = seconds && isLast ? `${clock(seconds)} min` : clock(seconds);
      parts.push(svg("text", { x: x(seconds), y: height - 5, "text-anchor": isLast ? "end" : "middle" }, label));
    }
    for (const { name, css, value } of levels) {
      if (value > high || value < low) continue;
      parts.push(svg("line", { x1: FRAME.left, x2: right, y1: y(value), y2: y(value), class: `ht-level ${css}` }));
      if (name) parts.push(svg("text", { x: right, y: y(value) - 5, "text-anchor": "end", class: css }, name));
    }
    for (const { css, points } of lines) {
      const inside = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
      if (inside.length) parts.push(svg("polyline", { points: inside.join(" "), class: `ht-line ${css}` }));
      const end = points.at(-1);
      if (end) parts.push(svg("circle", { cx: x(end[0]), cy: y(end[1]), r: 3, class: `ht-dot ${css}` }));
    }
    for (const { name, css, at } of spots) {
      const [left, top] = [x(at[0]), y(at[1])];
      const anchor = left > (FRAME.left + right) / 2 ? "end" : "start";
      const place = { x: left, y: Math.min(top + 16, bottom - 3), "text-anchor": anchor, class: css };
      parts.push(svg("circle", { cx: left, cy: top, r: 5, class: `ht-spot ${css}` }), svg("text", place, name));
    }
    this.mark.setAttribute("y1", String(FRAME.top));
    this.mark.setAttribute("y2", String(bottom));
    this.element.replaceChildren(...parts, this.mark);
  }

  /** Mark a time; null for none. @param {number | null} seconds */
  markAt(seconds) {
    this.mark.setAttribute("visibility", seconds === null ? "hidden" : "visible");
    if (seconds === null || !this.x) return;
    for (const name of ["x1", "x2"]) this.mark.setAttribute(name, String(this.x(seconds)));
  }
}

/**
 * The names of lines, each with a sample of the line.
 * @param {{ name: string, css: string }[]} lines
 */
export function legend(lines) {
  const items = lines.map(({ name, css }) => {
    const stroke = svg("line", { x1: 0, x2: 22, y1: 3, y2: 3, class: `ht-line ${css}` });
    return make("li", {}, svg("svg", { viewBox: "0 0 22 6", "aria-hidden": "true" }, stroke), name);
  });
  return make("ul", { class: "ht-legend" }, ...items);
}
