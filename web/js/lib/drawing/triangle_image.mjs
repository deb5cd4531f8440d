// A lower triangle of weights as an image.

import { tile } from "../thumbnails.mjs";
import { cells } from "../triangle.mjs";
import { offscreenContext, packedPixels } from "./canvas.mjs";

/** @import { Ramp } from "./palette.mjs" */
/** @import { Scale } from "./scale.mjs" */

/**
 * One pixel for each cell; with a `factor`, for the largest of so many cells.
 * @param {Float32Array} values
 * @param {number} n rows
 * @param {Scale} scale
 * @param {Ramp} ramp
 */
export function paintTriangle(values, n, scale, ramp, factor = 1) {
  const side = tile(n - 1, factor) + 1;
  const image = new ImageData(side, side);
  const target = packedPixels(image);
  const steps = new Uint8Array(side * side);
  for (let query = 0; query < n; query++) {
    const from = cells(query);
    const row = tile(query, factor) * side;
    const largest = scale.largest(values, from, query + 1);
    for (let key = 0; key <= query; key++) {
      const place = row + tile(key, factor);
      const step = scale.step(values[from + key], key, largest);
      if (step > steps[place]) steps[place] = step;
    }
  }
  for (let row = 0; row < side; row++) {
    for (let key = 0; key <= row; key++) target[row * side + key] = ramp.pixels[steps[row * side + key]];
  }
  const context = offscreenContext(side, side);
  context.putImageData(image, 0, 0);
  return context.canvas;
}
