// A chart of a few lines over the seconds of a training.

import { make, svg } from "../lib/dom.mjs";
import { clamp, roundTicks } from "../lib/numbers.mjs";
import { clock } from "./words.mjs";
import { LineChart } from "../widgets/line_chart.mjs";

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {string} css
 * @property {[seconds: number, value: number][]} points
 */

/**
 * Of the seconds and the values, and how a value is written.
 * @typedef {{ last: number, low: number, high: number, say?: (tick: { value: number, text: string }) => string }} Range
 */
/** @typedef {{ name: string, css: string, value: number }} Level a line across the chart */
/** @typedef {{ name: string, css: string, at: [seconds: number, value: number] }} Spot a point that stands out */

const SIZE = [600, 220]; // until the page has laid it out
const FRAME = { left: 40, right: 10, top: 10, bottom: 22 };

export class TimeChart {
  /**
   * @param {string} label a description for screen readers
   * @param {(seconds: number | null) => void} point gets the time under the pointer, null when it leaves
   */
  constructor(label, point = () => {}) {
    this.label = label;
    this.element = svg("svg", { class: "ht-chart", role: "img", "aria-label": label });
    this.mark = svg("line", { class: "ht-mark", visibility: "hidden" });
    /** @type {LineChart | null} what is drawn */
    this.chart = null;
    this.element.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (!this.chart) return;
      const { left, width } = this.element.getBoundingClientRect();
      const { left: start, right } = this.chart;
      const x = ((event.clientX - left) / width) * this.element.viewBox.baseVal.width;
      point(clamp((x - start) / (right - start), 0, 1) * this.chart.ends.x[1]);
    });
    this.element.addEventListener("pointerleave", () => point(null));
  }

  /**
   * @param {Line[]} lines
   * @param {Level[]} levels
   * @param {Range} range
   * @param {Spot[]} [spots]
   */
  draw(lines, levels, { last, low, high, say }, spots = []) {
    const { clientWidth: width, clientHeight: height } = this.element;
    const size = [width || SIZE[0], height || SIZE[1]];
    const chart = new LineChart({ size, frame: FRAME, x: [0, last], y: [low, high] });
    this.chart = chart;
    this.element.setAttribute("viewBox", chart.box);
    chart.grid("ht-grid", say);
    for (const { value: seconds } of roundTicks(0, last, size[0] < 420 ? 4 : 8)) {
      const isLast = chart.x(seconds) > chart.right - 24;
      const label = seconds && isLast ? `${clock(seconds)} min` : clock(seconds);
      chart.write(label, { x: chart.x(seconds), y: size[1] - 5, "text-anchor": isLast ? "end" : "middle" });
    }
    for (const { name, css, value } of levels) {
      if (value > high || value < low) continue;
      chart.level(value, `ht-level ${css}`);
      if (name) chart.write(name, { x: chart.right, y: chart.y(value) - 5, "text-anchor": "end", class: css });
    }
    for (const { css, points } of lines) {
      chart.line(points, `ht-line ${css}`);
      const end = points.at(-1);
      if (end) chart.parts.push(dot(chart, end, 3, `ht-dot ${css}`));
    }
    for (const { name, css, at } of spots) {
      const [x, y] = [chart.x(at[0]), chart.y(at[1])];
      const anchor = x > (chart.left + chart.right) / 2 ? "end" : "start";
      chart.parts.push(dot(chart, at, 5, `ht-spot ${css}`));
      chart.write(name, { x, y: Math.min(y + 16, chart.bottom - 3), "text-anchor": anchor, class: css });
    }
    this.mark.setAttribute("y1", String(chart.top));
    this.mark.setAttribute("y2", String(chart.bottom));
    this.element.replaceChildren(...chart.parts, this.mark);
  }

  /** Mark a time; null for none. @param {number | null} seconds */
  markAt(seconds) {
    this.mark.setAttribute("visibility", seconds === null ? "hidden" : "visible");
    if (seconds === null || !this.chart) return;
    for (const name of ["x1", "x2"]) this.mark.setAttribute(name, String(this.chart.x(seconds)));
  }
}

/** @param {LineChart} chart @param {[seconds: number, value: number]} at @param {number} r @param {string} css */
const dot = (chart, [seconds, value], r, css) =>
  svg("circle", { cx: chart.x(seconds), cy: chart.y(value), r, class: css });

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
