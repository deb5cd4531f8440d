// From a weight to one of the 256 steps of a colour ramp. Colours only illustrate: numbers are always the true weight.

import { clamp } from "../numbers.mjs";

/** @import { ScaleName, ScaleOptions } from "../../types.js" */

/** @type {Record<ScaleName, { name: string, ticks: number[] }>} */
export const SCALES = {
  sqrt: { name: "square root", ticks: [0, 0.05, 0.25, 0.5, 1] },
  linear: { name: "linear", ticks: [0, 0.25, 0.5, 0.75, 1] },
  log: { name: "logarithmic", ticks: [0.0001, 0.001, 0.01, 0.1, 1] },
  row: { name: "row maximum", ticks: [0, 0.25, 0.5, 0.75, 1] },
};
const DECADES = 4; // that the logarithmic scale spans below 1

/** @type {Record<ScaleName, (weight: number) => number>} */
const CURVES = {
  sqrt: Math.sqrt,
  linear: (weight) => weight,
  log: (weight) => (weight > 0 ? Math.max(0, 1 + Math.log10(weight) / DECADES) : 0),
  row: (weight) => weight, // relative to the largest weight of the row
};

/**
 * Where a weight lies on its scale, from 0 to 1.
 * @param {ScaleName} scale
 * @param {number} weight
 */
export const position = (scale, weight) => clamp(CURVES[scale](weight), 0, 1);

export class Scale {
  /** @param {ScaleOptions} options */
  constructor({ scale, threshold, hideFirst }) {
    this.curve = CURVES[scale];
    this.perRow = scale === "row";
    this.threshold = threshold;
    this.firstKey = hideFirst ? 1 : 0; // the first key that is shown
  }

  /**
   * The step of one weight.
   * @param {number} weight
   * @param {number} key
   * @param {number} largest weight of its row
   */
  step(weight, key, largest) {
    if (key < this.firstKey || weight < this.threshold) return 0;
    const value = this.perRow ? (largest ? weight / largest : 0) : weight;
    return clamp(Math.round(255 * this.curve(value)), 0, 255);
  }

  /**
   * The largest shown weight of a row; 1 on scales that do not depend on it.
   * @param {Float32Array} values
   * @param {number} start of the row
   * @param {number} count of its weights
   */
  largest(values, start, count) {
    if (!this.perRow) return 1;
    let most = 0;
    for (let key = this.firstKey; key < count; key++) if (values[start + key] > most) most = values[start + key];
    return most;
  }
}
