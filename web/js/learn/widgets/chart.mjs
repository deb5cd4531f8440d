// Small charts as SVG and bars, drawn from numbers that the server computed.

import { make, svg } from "../../lib/dom.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { makeTable } from "../../widgets/table.mjs";
import { bar } from "../../widgets/controls.mjs";
import { LineChart } from "../../widgets/line_chart.mjs";

const LARGE = [520, 210];
/** The size of charts that share a row with others. */
export const SMALL = [340, 120];
const FRAME = { left: 52, right: 26, top: 14, bottom: 44 };
const ONE_LINE = 20; // pixels that are free below if the name of the axis stands between the labels of both ends
const CHARACTER = 8; // the width of one in a label, at most

/**
 * Lines over `x`.
 * @typedef {object} Chart
 * @property {string} label
 * @property {string[] | { from: number, to: string, count: number }} x a label for each point, or for both ends
 * @property {Record<string, number[]>} lines
 * @property {Record<string, number>} [levels] across the chart
 * @property {number} [mark] index of a point to mark
 * @property {number | null} [below] the lower end of the chart; null to fit it to the numbers
 * @property {number | null} [above] the upper end, likewise
 * @property {number[]} [size] width and height in pixels, until the page has laid it out, and the height ever after
 * @property {string} xName
 * @property {string} yName
 * @property {string} [title] the heading, if not `yName`
 */

/** A chart that is drawn for the width that it has, so that its labels keep their size. @param {Chart} options */
export function chart(options) {
  const { label, lines, levels = {}, size = LARGE, yName, title } = options;
  const css = size === SMALL ? "hl-chart hl-small" : "hl-chart";
  const picture = svg("svg", { role: "img", "aria-label": label, class: css });
  const [width, height] = size;
  /** @param {number} shown */
  const draw = (shown) => {
    const drawing = drawn(options, [shown, height]);
    picture.setAttribute("viewBox", drawing.box);
    picture.replaceChildren(...drawing.parts);
  };
  draw(width);
  const watch = new ResizeObserver(() => {
    const { clientWidth } = picture;
    if (clientWidth && clientWidth !== picture.viewBox.baseVal.width) draw(clientWidth);
  });
  watch.observe(picture);
  const axis = title ? [" ", make("span", { class: "hl-axes" }, yName)] : [];
  const caption = make("figcaption", {}, make("b", {}, title ?? yName), ...axis);
  const keys = legend(lines, levels);
  const isNeeded = keys.children.length > 1; // a single line is named by the title
  return make("figure", { class: "hl-figure" }, caption, picture, ...(isNeeded ? [keys] : []));
}

/** @param {Chart} chart @param {number[]} size */
function drawn({ x, lines, levels = {}, mark = -1, below = null, above = null, xName }, size) {
  const every = [...Object.values(lines).flat(), ...Object.values(levels)];
  const high = Math.max(...every);
  const low = below ?? Math.min(...every);
  const room = (high - low || 1) * 0.06;
  const frame = { ...FRAME, bottom: FRAME.bottom - (Array.isArray(x) ? 0 : ONE_LINE) };
  const count = Array.isArray(x) ? x.length : Math.max(2, x.count);
  const drawing = new LineChart({ size, frame, x: [0, count - 1], y: [below ?? low - room, above ?? high + room] });
  /** @param {string} content @param {number} place @param {number} y @param {string} anchor */
  const write = (content, place, y, anchor) => drawing.write(content, { x: place, y, "text-anchor": anchor });

  drawing.grid("hl-grid");
  const labelY = drawing.bottom + 16;
  if (Array.isArray(x)) {
    for (const i of labelled(x, (place) => drawing.x(place))) write(x[i], drawing.x(i), labelY, "middle");
  } else {
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
  return drawing;
}

/**
 * The points whose labels have room next to each other, always with the last.
 * @param {string[]} labels
 * @param {(i: number) => number} place
 */
function labelled(labels, place) {
  /** @type {number[]} */
  const found = [];
  let free = Infinity;
  for (let i = labels.length - 1; i >= 0; i--) {
    const half = (CHARACTER * (labels[i].length + 1)) / 2;
    if (place(i) + half > free) continue;
    found.push(i);
    free = place(i) - half;
  }
  return found;
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
