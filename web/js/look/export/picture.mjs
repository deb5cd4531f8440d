// A printed picture as a file: drawn on a canvas, or written as SVG by the same code.

import { offscreenContext } from "../../lib/drawing/canvas.mjs";
import { PIXELS } from "./print_frame.mjs";
import { MOST_CELLS, SvgContext } from "./svg_context.mjs";

/** @import { Picture } from "./print_frame.mjs" */

/** @param {Picture} picture */
export async function toPng({ width, height, draw }) {
  const context = offscreenContext(Math.ceil(width * PIXELS), Math.ceil(height * PIXELS));
  context.scale(PIXELS, PIXELS);
  context.imageSmoothingEnabled = false;
  draw(context);
  return context.canvas.convertToBlob({ type: "image/png" });
}

/** @param {Picture} picture */
export function toSvg({ title, width, height, draw }) {
  let context = new SvgContext(width, height);
  draw(context);
  if (context.cells > MOST_CELLS) {
    context = new SvgContext(width, height, true);
    draw(context);
  }
  return new Blob([context.text(title)], { type: "image/svg+xml" });
}
