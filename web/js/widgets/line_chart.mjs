// A line chart as SVG. Its style sheet says how the classes look that it is given.

import { svg } from "../lib/dom.mjs";
import { roundTicks } from "../lib/numbers.mjs";

/** @typedef {[number, number]} Pair */
/** @typedef {Parameters<typeof svg>[1]} Attributes */

export class LineChart {
  /** @type {Element[]} what is drawn, the last on top */
  parts = [];

  /**
   * @param {object} options in units of the drawing, or of the numbers
   * @param {Pair | number[]} options.size width and height
   * @param {{ left: number, right: number, top: number, bottom: number }} options.frame around the lines
   * @param {Pair | number[]} options.x the ends of the axis
   * @param {Pair | number[]} options.y
   */
  constructor({ size: [width, height], frame, x, y }) {
    this.ends = { x, y };
    this.box = `0 0 ${width} ${height}`;
    this.left = frame.left;
    this.top = frame.top;
    this.right = width - frame.right;
    this.bottom = height - frame.bottom;
  }

  /** @param {number} value */
  x(value) {
    const [first, last] = this.ends.x;
    return this.left + ((this.right - this.left) * (value - first)) / (last - first || 1);
  }

  /** @param {number} value @param {Pair | number[]} [ends] of an axis of its own */
  y(value, [low, high] = this.ends.y) {
    return this.bottom - ((this.bottom - this.top) * (value - low)) / (high - low || 1);
  }

  /** @param {string} text @param {Attributes} attributes */
  write(text, attributes) {
    this.parts.push(svg("text", attributes, text));
  }

  /** A line across the chart. @param {number} value @param {string} css */
  level(value, css) {
    const y = this.y(value);
    this.parts.push(svg("line", { x1: this.left, x2: this.right, y1: y, y2: y, class: css }));
  }

  /**
   * Round numbers along the left edge, each with a line across.
   * @param {string} css
   * @param {(tick: { value: number, text: string }) => string} [say] writes a number
   */
  grid(css, say = ({ text }) => text) {
    const [low, high] = this.ends.y;
    for (const tick of roundTicks(low, high)) {
      const { value } = tick;
      this.level(value, css);
      this.write(say(tick), { x: this.left - 6, y: this.y(value) + 4, "text-anchor": "end" });
    }
  }

  /** @param {Pair[]} points @param {string} css @param {Pair | number[]} [ends] of an axis of its own */
  line(points, css, ends) {
    const places = points.map(([x, y]) => `${this.x(x).toFixed(1)},${this.y(y, ends).toFixed(1)}`);
    if (places.length) this.parts.push(svg("polyline", { points: places.join(" "), class: css }));
  }
}
