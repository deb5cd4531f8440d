// Small charts as SVG and bars, drawn from numbers that the server computed.

import { make, svg } from "../../lib/dom.mjs";
import { fixed, number, roundTicks } from "../../lib/numbers.mjs";

const LARGE = [640, 240];
/** The sizes of charts that share a row with others. */
export const SMALL = [340, 120];
export const MEDIUM = [520, 200];
const FRAME = { left: 52, right: 26, top: 14, bottom: 44 };
const ONE_LINE = 20; // units that are free below if the name of the axis stands between the labels of both ends

/**
 * Lines over `x`.
 * @param {object} chart
 * @param {string} chart.label
 * @param {string[] | { from: number, to: string, count: number }} chart.x a label for each point, or for both ends
 * @param {Record<string, number[]>} chart.lines
 * @param {Record<string, number>} [chart.levels] across the chart
 * @param {number} [chart.mark] index of a point to mark
 * @param {number | null} [chart.below] the lower end of the chart; null to fit it to the numbers
 * @param {number | null} [chart.above] the upper end, likewise
 * @param {number[]} [chart.size] width and height, in units of which a character is 13 high
 * @param {string} chart.xName
 * @param {string} chart.yName
 * @param {string} [chart.title] the heading, if not `yName`
 */
export function chart({
  label,
  x,
  lines,
  levels = {},
  mark = -1,
  below = null,
  above = null,
  size = LARGE,
  xName,
  yName,
  title,
}) {
  const [width, height] = size;
  const [right, floor] = [width - FRAME.right, height - FRAME.bottom + (Array.isArray(x) ? 0 : ONE_LINE)];
  const every = [...Object.values(lines).flat(), ...Object.values(levels)];
  const high = Math.max(...every);
  const low = below ?? Math.min(...every);
  const room = (high - low || 1) * 0.06;
  const top = above ?? high + room;
  const bottom = below ?? low - room;
  const count = Array.isArray(x) ? x.length : Math.max(2, x.count);
  /** @param {number} i */
  const atX = (i) => FRAME.left + ((right - FRAME.left) * i) / Math.max(1, count - 1);
  /** @param {number} value */
  const atY = (value) => FRAME.top + ((floor - FRAME.top) * (top - value)) / (top - bottom);
  /** @type {Element[]} */
  const parts = [];
  /** @param {string} content @param {{ x: number, y: number }} at @param {string} anchor @param {string} [css] */
  const write = (content, at, anchor, css = "") =>
    parts.push(svg("text", { ...at, class: css, "text-anchor": anchor }, content));
  /** @param {number} value @param {string} css */
  const drawLevel = (value, css) =>
    parts.push(svg("line", { x1: FRAME.left, x2: right, y1: atY(value), y2: atY(value), class: css }));

  for (const { value, text } of roundTicks(bottom, top)) {
    drawLevel(value, "hl-grid");
    write(text, { x: FRAME.left - 6, y: atY(value) + 4 }, "end");
  }
  const labelY = floor + 16;
  /** On a phone every other label is left out, but never the last. @param {number} i */
  const everyOther = (i) => ((count - 1 - i) % 2 ? "hl-between" : "");
  if (Array.isArray(x)) x.forEach((name, i) => write(name, { x: atX(i), y: labelY }, "middle", everyOther(i)));
  else {
    write(String(x.from), { x: atX(0), y: labelY }, "middle");
    write(x.to, { x: atX(count - 1), y: labelY }, "end");
  }
  write(xName, { x: (width + FRAME.left) / 2, y: Array.isArray(x) ? height - 4 : labelY }, "middle");
  if (mark >= 0) {
    parts.push(svg("line", { x1: atX(mark), x2: atX(mark), y1: FRAME.top, y2: floor, class: "hl-here" }));
  }
  Object.values(levels).forEach((value, i) => drawLevel(value, `hl-level hl-level-${i}`));
  Object.values(lines).forEach((values, i) => {
    const path = values.map((value, at) => `${at ? "L" : "M"}${atX(at).toFixed(1)} ${atY(value).toFixed(1)}`).join("");
    if (values.length) parts.push(svg("path", { d: path, class: `hl-line hl-line-${i}` }));
  });
  const css = size === SMALL ? "hl-chart hl-small" : "hl-chart";
  const box = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: css };
  const axis = title ? [" ", make("span", { class: "hl-axes" }, yName)] : [];
  const caption = make("figcaption", {}, make("b", {}, title ?? yName), ...axis);
  const keys = legend(lines, levels);
  const isNeeded = keys.children.length > 1; // a single line is named by the title
  return make("figure", { class: "hl-figure" }, caption, svg("svg", box, ...parts), ...(isNeeded ? [keys] : []));
}

/**
 * @param {Record<string, number[]>} lines
 * @param {Record<string, number>} levels
 */
function legend(lines, levels) {
  /** @param {string} css @param {number} i @param {string} name */
  const key = (css, i, name) => make("li", {}, make("i", { class: `${css} ${css}-${i}` }), name);
  const lineKeys = Object.keys(lines).map((name, i) => key("hl-line-key", i, name));
  const levelKeys = Object.keys(levels).map((name, i) => key("hl-level-key", i, `${name} ${number(levels[name])}`));
  return make("ul", { class: "hl-key-list" }, ...lineKeys, ...levelKeys);
}

/**
 * Named bars with their numbers.
 * @param {string} name
 * @param {Record<string, number> | { label: string, value: number, link?: Node }[]} values
 * @param {number} most length of a full bar
 * @param {object} [options]
 * @param {(value: number) => string} [options.format]
 * @param {(i: number) => void} [options.explain] shows the arithmetic behind a number, on hover or click
 */
export function bars(name, values, most, { format = (value) => fixed(value), explain } = {}) {
  /** @type {{ label: string, value: number, link?: Node }[]} */
  const entries = Array.isArray(values) ? values : Object.entries(values).map(([label, value]) => ({ label, value }));
  const rows = entries.map(({ label, value, link = label }, i) => {
    const amount = make("span", { class: "hl-amount" });
    amount.style.setProperty("--part", String(most > 0 ? value / most : 0));
    const title = `How ${format(value)} is computed: ${label}`;
    const attributes = { type: "button", class: "hl-opens", "aria-label": title, onclick: () => explain?.(i) };
    const shown = explain ? make("button", attributes, format(value)) : format(value);
    const cells = [make("td", {}, amount), make("td", {}, shown)];
    return make("tr", {}, make("th", { scope: "row" }, link), ...cells);
  });
  const caption = make("figcaption", {}, make("b", {}, name));
  const table = make("table", { "aria-label": name }, make("tbody", {}, ...rows));
  return make("figure", { class: "hl-figure hl-bars" }, caption, table);
}
