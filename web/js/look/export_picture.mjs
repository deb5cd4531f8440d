// A printed picture as a file: drawn on a canvas, or written as SVG by the same hand.

import { PIXELS } from "./print_frame.mjs";
import { SvgContext } from "./svg_context.mjs";

export async function toPng({ width, height, draw }) {
  const canvas = new OffscreenCanvas(Math.ceil(width * PIXELS), Math.ceil(height * PIXELS));
  const context = canvas.getContext("2d");
  context.scale(PIXELS, PIXELS);
  context.imageSmoothingEnabled = false;
  draw(context);
  return canvas.convertToBlob({ type: "image/png" });
}

export function toSvg({ title, width, height, draw }) {
  const context = new SvgContext(width, height);
  draw(context);
  return new Blob([context.text(title)], { type: "image/svg+xml" });
}
