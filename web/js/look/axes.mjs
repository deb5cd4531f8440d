// Where the cells of a matrix lie, and what stands beside them: token texts where they fit, positions where not.

import { visible } from "./words.mjs";

const SIZE = 11;
export const font = (size = SIZE) => `${size}px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace`;
const LABEL_CELL = 11; // CSS pixels that a cell needs for its token to stand beside it
const PLAIN = 30; // the room of positions
const LONGEST = 12; // characters of a token on an axis
const STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000];

export const label = (text) => {
  const shown = visible(text);
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST - 1)}…` : shown;
};

/** The room that the labels of the first n tokens need beside a matrix. */
export function labelMargin(context, tokens, n, size = SIZE) {
  context.font = font(size);
  const widths = tokens.slice(0, n).map((token) => context.measureText(label(token.text)).width);
  return Math.max(PLAIN, Math.ceil(Math.max(...widths)) + 10);
}

/** The geometry for n tokens in a square of `width` CSS pixels. */
export function layout(context, tokens, n, width) {
  const fits = (width - PLAIN) / n >= LABEL_CELL;
  const margin = fits ? labelMargin(context, tokens, n) : PLAIN;
  return { margin, cell: (width - margin) / n, texts: (width - margin) / n >= LABEL_CELL };
}

/** Draw both axes: queries down the left side, keys along the top. */
export function drawAxes(context, tokens, n, { margin, cell, texts, size = SIZE }, colour) {
  context.font = font(size);
  context.fillStyle = colour;
  context.textBaseline = "middle";
  const step = texts ? 1 : STEPS.find((candidate) => candidate * cell >= 2.4 * size) ?? n;
  for (let i = 0; i < n; i += step) {
    const text = texts ? label(tokens[i].text) : String(i);
    const middle = margin + (i + 0.5) * cell;
    context.textAlign = "right";
    context.fillText(text, margin - 5, middle);
    if (texts) drawKey(context, text, middle, margin - 5, cell);
    else drawNumber(context, text, middle, margin - 10, margin + n * cell);
  }
}

/** A position above a column, kept inside the picture. */
function drawNumber(context, text, x, y, right) {
  context.textAlign = "center";
  context.fillText(text, Math.min(x, right - context.measureText(text).width / 2), y);
}

/** A label above a column, upright where it is no wider than its cell. */
function drawKey(context, text, x, bottom, cell) {
  if (text.length === 1 || context.measureText(text).width < cell - 2) {
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
