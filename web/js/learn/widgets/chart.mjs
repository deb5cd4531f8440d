// Small charts as SVG and bars, drawn from numbers that the server computed.

import { make, svg } from "../../lib/dom.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { makeTable } from "../../widgets/table.mjs";
import { bar } from "../../widgets/controls.mjs";
import { LineChart } from "../../widgets/line_chart.mjs";

const LARGE = [520, 210];
/** The sizes of charts that share a row with others. */
export const SMALL = [340, 120];
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
  const every = [...Object.values(lines).flat(), ...Object.values(levels)];
  const high = Math.max(...every);
  const low = below ?? Math.min(...every);
  const room = (high - low || 1) * 0.06;
  const frame = { ...FRAME, bottom: FRAME.bottom - (Array.isArray(x) ? 0 : ONE_LINE) };
  const count = Array.isArray(x) ? x.length : Math.max(2, x.count);
  const drawing = new LineChart({ size, frame, x: [0, count - 1], y: [below ?? low - room, above ?? high + room] });
  /** @param {string} content @param {number} place @param {number} y @param {string} anchor @param {string} [css] */
  const write = (content, place, y, anchor, css = "") =>
    drawing.write(content, { x: place, y, class: css, "text-anchor": anchor });

  drawing.grid("hl-grid");
  const labelY = drawing.bottom + 16;
  /** On a phone every other label is left out, but never the last. @param {number} i */
  const everyOther = (i) => ((count - 1 - i) % 2 ? "hl-between" : "");
  if (Array.isArray(x)) x.forEach((name, i) => write(name, drawing.x(i), labelY, "middle", everyOther(i)));
  else {
    write(String(x.from), drawing.x(0), labelY, "middle");
    write(x.to, drawing.x(count - 1), labelY, "end");
  }
  write(xName, (size[0] + FRAME.left) / 2, Array.isArray(x) ? size[1] - 4 : labelY, "middle");
  if (mark >= 0) {
    const at = drawing.x(mark);
    drawing.parts.push(svg("line", { x1: at, x2: at, y1: drawing.top, y2: drawing.bottom, class: "hl-here" }));
  }
  Object.values(levels).forEach((value, i) => drawing.level(value, `hl-level hl-level-${i}`));
  Object.values(lines).forEach((values, i) => {
    const points = values.map((value, at) => /** @type {[number, number]} */ ([at, value]));
    drawing.line(points, `hl-line hl-line-${i}`);
  });
  const css = size === SMALL ? "hl-chart hl-small" : "hl-chart";
  const box = { viewBox: drawing.box, role: "img", "aria-label": label, class: css };
  const axis = title ? [" ", make("span", { class: "hl-axes" }, yName)] : [];
  const caption = make("figcaption", {}, make("b", {}, title ?? yName), ...axis);
  const keys = legend(lines, levels);
  const isNeeded = keys.children.length > 1; // a single line is named by the title
  return make(
    "figure",
    { class: "hl-figure" },
    caption,
    svg("svg", box, ...drawing.parts),
    ...(isNeeded ? [keys] : []),
  );
}

/**
 * @param {Record<string, number[]>} lines
 * @param {Record<string, number>} levels
 */
function legend(lines, levels) {
  /** @param {string} css @param {string} name */
  const key = (css, name) => make("li", {}, make("i", { class: css }), name);
  const lineKeys = Object.keys(lines).map((name, i) => key(`hl-line-key-${i}`, name));
  const levelKeys = Object.keys(levels).map((name, i) => key(`hl-level-key-${i}`, `${name} ${number(levels[name])}`));
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
    const amount = bar(most > 0 ? value / most : 0, "hl-amount");
    const title = `How ${format(value)} is computed: ${label}`;
    const attributes = { type: "button", class: "hl-opens", "aria-label": title, onclick: () => explain?.(i) };
    const shown = explain ? make("button", attributes, format(value)) : format(value);
    return [link, amount, shown];
  });
  const caption = make("figcaption", {}, make("b", {}, name));
  const table = makeTable({ rows }, { "aria-label": name });
  return make("figure", { class: "hl-figure hl-bars" }, caption, table);
}
