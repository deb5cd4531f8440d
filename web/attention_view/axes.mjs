// Where the cells of a matrix lie, and what stands beside them: token texts where they fit, positions where not.

import { visible } from "./words.mjs";

const FONT = "11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const LABEL_CELL = 11; // CSS pixels that a cell needs for its token to stand beside it
const LONGEST = 12; // characters of a token on an axis
const STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000];

export const label = (text) => {
  const shown = visible(text);
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST - 1)}…` : shown;
};

/** The geometry for n tokens in a square of `width` CSS pixels. */
export function layout(context, tokens, n, width) {
  context.font = FONT;
  const plain = 30;
  const fits = (width - plain) / n >= LABEL_CELL;
  const longest = fits ? Math.max(...tokens.slice(0, n).map((token) => context.measureText(label(token.text)).width)) : 0;
  const margin = Math.max(plain, Math.ceil(longest) + 10);
  return { margin, cell: (width - margin) / n, texts: (width - margin) / n >= LABEL_CELL };
}

/** Draw both axes: queries down the left side, keys along the top. */
export function drawAxes(context, tokens, n, { margin, cell, texts }, colour) {
  context.font = FONT;
  context.fillStyle = colour;
  context.textBaseline = "middle";
  const step = texts ? 1 : STEPS.find((candidate) => candidate * cell >= 26) ?? n;
  for (let i = 0; i < n; i += step) {
    const text = texts ? label(tokens[i].text) : String(i);
    const middle = margin + (i + 0.5) * cell;
    context.textAlign = "right";
    context.fillText(text, margin - 5, middle);
    if (texts) drawKey(context, text, middle, margin - 5);
    else drawNumber(context, text, middle, margin - 10, margin + n * cell);
  }
}

/** A position above a column, kept inside the picture. */
function drawNumber(context, text, x, y, right) {
  context.textAlign = "center";
  context.fillText(text, Math.min(x, right - context.measureText(text).width / 2), y);
}

/** A label above a column, upright where it is short. */
function drawKey(context, text, x, bottom) {
  if (text.length <= 3) {
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
