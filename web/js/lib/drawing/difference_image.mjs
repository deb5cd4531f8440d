// A lower triangle of signed differences as an image.

import { clamp } from "../numbers.mjs";
import { tile } from "../thumbnails.mjs";
import { cells } from "../triangle.mjs";
import { offscreenContext, packedPixels } from "./canvas.mjs";
import { position } from "./scale.mjs";

/** @import { ScaleOptions } from "../../types.js" */
/** @import { Ramp } from "./palette.mjs" */

/**
 * The step of a difference on a ramp with two ends, of which -limit and limit are the ends.
 * @param {number} difference
 * @param {number} limit
 * @param {ScaleOptions} options
 */
export function differenceStep(difference, limit, { scale, threshold }) {
  if (Math.abs(difference) < threshold) return 128;
  const part = Math.sign(difference) * position(scale, Math.abs(difference) / limit);
  return clamp(Math.round(127.5 + 127.5 * part), 0, 255);
}

/**
 * One pixel for each cell; with a `factor`, for the cell of so many that differs most. NaN has a colour of its own.
 * @param {Float32Array} values
 * @param {number} n rows
 * @param {object} looks
 * @param {Ramp} looks.ramp
 * @param {number} looks.limit the difference at the end of the ramp
 * @param {ScaleOptions} looks.options
 * @param {number} looks.unknown a packed colour
 * @param {number} [looks.factor]
 */
export function paintDifference(values, n, { ramp, limit, options, unknown, factor = 1 }) {
  const side = tile(n - 1, factor) + 1;
  const image = new ImageData(side, side);
  const target = packedPixels(image);
  const most = new Float32Array(side * side).fill(-1);
  for (let query = 0; query < n; query++) {
    for (let key = 0; key <= query; key++) {
      const place = tile(query, factor) * side + tile(key, factor);
      const value = options.hideFirst && key === 0 ? 0 : values[cells(query) + key];
      const size = Number.isNaN(value) ? -0.5 : Math.abs(value);
      if (size <= most[place]) continue;
      most[place] = size;
      target[place] = Number.isNaN(value) ? unknown : ramp.pixels[differenceStep(value, limit, options)];
    }
  }
  const context = offscreenContext(side, side);
  context.putImageData(image, 0, 0);
  return context.canvas;
}
