// The layout of a matrix and its axis labels: tokens if they fit, otherwise positions.

import { plainly, shorten, visible } from "../words.mjs";
import { firstQuery, sizeOf } from "../triangle.mjs";
import { monospace, sansSerif } from "./canvas.mjs";

/** @import { Token } from "../../types.js" */
/**
 * What labels need of a context, on screen or in print.
 * @typedef {Pick<CanvasRenderingContext2D,
 *   "font" | "fillStyle" | "textAlign" | "textBaseline" | "save" | "restore" | "translate" | "rotate" | "fillText"
 * > & { measureText(text: string): { width: number } }} Context
 */

/**
 * Where a matrix is drawn, in CSS pixels.
 * @typedef {object} Layout
 * @property {number} margin room for the labels, left and above
 * @property {number} cell the width of a cell
 * @property {number} high its height: the same, except in a rectangle
 * @property {boolean} texts whether the labels of the keys are tokens, not positions
 * @property {number} [size] of the labels
 * @property {boolean} [isPlain] whether tokens are named as words, in the font of the page
 */

const FONT_SIZE = 12;
const LABEL_CELL = 12; // CSS pixels: cells of at least this size are labelled with their tokens
const POSITIONS = 30; // CSS pixels that positions need
const MAX_LABEL = 12; // characters of a token on an axis
const STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000];

/** A token, shortened for an axis. @param {string} text */
export const label = (text) => shorten(visible(text), MAX_LABEL);

/**
 * How much room the labels of the first n tokens need next to a matrix.
 * @param {Context} context
 * @param {Token[]} tokens
 * @param {number} n
 */
export function labelMargin(context, tokens, n, size = FONT_SIZE) {
  context.font = monospace(size);
  const widths = tokens.slice(0, n).map((token) => labelWidth(context, token.text, size));
  return Math.max(POSITIONS, Math.ceil(Math.max(...widths)) + 10);
}

/** @type {WeakMap<Context, Map<string, number>>} size and token -> width; measuring a long text takes milliseconds */
const widths = new WeakMap();

/** @param {Context} context @param {string} text @param {number} size */
function labelWidth(context, text, size) {
  const known = widths.get(context) ?? new Map();
  widths.set(context, known);
  const key = `${size} ${text}`;
  if (!known.has(key)) known.set(key, context.measureText(label(text)).width);
  return known.get(key);
}

/**
 * The geometry for n tokens in `width` CSS pixels, and at most as many in height.
 * @param {Context} context
 * @param {Token[]} tokens
 * @param {number} n
 * @param {number} width
 * @param {boolean} [hasWords] whether there is room for a token, even if not for all
 * @returns {Layout}
 */
export function layout(context, tokens, n, width, hasWords = false) {
  const { rows, columns } = sizeOf(n);
  const fits = hasWords || (width - POSITIONS) / Math.min(rows, columns) >= LABEL_CELL;
  const margin = fits ? labelMargin(context, tokens, n) : POSITIONS;
  const cell = (width - margin) / columns;
  // A rectangle with many more columns than rows has cells that are higher than wide.
  const high = rows === columns ? cell : Math.min((width - margin) / rows, Math.max(cell, LABEL_CELL + 2));
  return { margin, cell, high, texts: cell >= LABEL_CELL };
}

/**
 * Draw both axes: queries down the left side, keys along the top.
 * @param {Context} context
 * @param {Token[]} tokens
 * @param {number} n
 * @param {Layout} layout
 * @param {string} colour
 */
export function drawAxes(context, tokens, n, { margin, cell, high, texts, isPlain, size = FONT_SIZE }, colour) {
  context.font = isPlain ? sansSerif(size) : monospace(size);
  const nameOf = isPlain ? (/** @type {string} */ text) => shorten(plainly(text), MAX_LABEL) : label;
  context.fillStyle = colour;
  context.textBaseline = "middle";
  const { rows, columns } = sizeOf(n);
  const first = firstQuery();
  const haveTexts = rows === columns ? texts : high >= LABEL_CELL;
  const stepOf = (/** @type {number} */ side) => STEPS.find((candidate) => candidate * side >= 2.4 * size) ?? n;
  context.textAlign = "right";
  for (let i = 0; i < rows; i += haveTexts ? 1 : stepOf(high)) {
    const text = haveTexts ? nameOf(tokens[first + i].text) : String(first + i);
    context.fillText(text, margin - 5, margin + (i + 0.5) * high);
  }
  const upright = texts && tokens.slice(0, columns).every((token) => isUpright(context, nameOf(token.text), cell));
  for (let key = 0; key < columns; key += texts ? 1 : stepOf(cell)) {
    const middle = margin + (key + 0.5) * cell;
    if (texts) drawKey(context, nameOf(tokens[key].text), middle, margin - 5, upright);
    else drawNumber(context, String(key), middle, margin - 10, margin + columns * cell);
  }
}

/**
 * A position above a column, kept inside the picture.
 * @param {Context} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} right
 */
function drawNumber(context, text, x, y, right) {
  context.textAlign = "center";
  context.fillText(text, Math.min(x, right - context.measureText(text).width / 2), y);
}

/** @param {Context} context @param {string} text @param {number} cell */
const isUpright = (context, text, cell) => text.length === 1 || context.measureText(text).width < cell - 2;

/**
 * A label above a column; all are rotated if one is too wide for its cell.
 * @param {Context} context
 * @param {string} text
 * @param {number} x
 * @param {number} bottom
 * @param {boolean} upright
 */
function drawKey(context, text, x, bottom, upright) {
  if (upright) {
    context.textAlign = "center";
    context.fillText(text, x, bottom - 5);
    return;
  }
  context.save();
  context.translate(x, bottom);
  context.rotate(-Math.PI / 2);
  context.textAlign = "left";
  context.fillText(text, 0, 0);
  context.restore();
}
