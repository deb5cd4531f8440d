// From a weight to one of the 256 shades of a colour ramp. Colours only illustrate; numbers are the true weights.

import { clamp } from "../numbers.mjs";

/** @import { ScaleName, ScaleOptions } from "../../types.js" */

/** @type {Record<ScaleName, { name: string, ticks: number[] }>} */
export const SCALES = {
  sqrt: { name: "square root", ticks: [0, 0.05, 0.25, 0.5, 1] },
  linear: { name: "linear", ticks: [0, 0.25, 0.5, 0.75, 1] },
  log: { name: "logarithmic", ticks: [1] }, // and powers of ten down to its floor: see `ticksOf`
  row: { name: "row maximum", ticks: [0, 0.25, 0.5, 0.75, 1] },
};
const FLOOR = 1e-4; // of the logarithmic scale, for thumbnails: their bytes cannot distinguish smaller weights
const MAX_TICKS = 6;

/** @type {Record<ScaleName, (weight: number, floor: number) => number>} */
const CURVES = {
  sqrt: Math.sqrt,
  linear: (weight) => weight,
  log: (weight, floor) => (weight > 0 ? Math.max(0, 1 - Math.log10(weight) / Math.log10(floor)) : 0),
  row: (weight) => weight, // relative to the largest weight of the row
};

/**
 * Where a weight lies on its scale, from 0 to 1.
 * @param {ScaleName} scale
 * @param {number} weight
 * @param {number} [floor] of the logarithmic scale: this weight and smaller ones have the weakest colour
 */
export const position = (scale, weight, floor = FLOOR) => clamp(CURVES[scale](weight, floor), 0, 1);

/**
 * The ticks of a legend. The weakest colour of the logarithmic scale also stands for smaller weights.
 * @param {ScaleName} scale
 * @param {number} [floor]
 * @returns {[place: number, text: string][]}
 */
export function ticksOf(scale, floor = FLOOR) {
  if (scale !== "log") return SCALES[scale].ticks.map((weight) => [position(scale, weight), String(weight)]);
  const decades = Math.round(-Math.log10(floor));
  const step = Math.ceil(decades / (MAX_TICKS - 1));
  const powers = Array.from({ length: Math.ceil(decades / step) }, (_, i) => -i * step);
  return [...powers, -decades].reverse().map((power) => {
    const text = power < -3 ? `1e${power}` : String(10 ** power);
    return [1 + power / decades, power === -decades ? `≤${text}` : text];
  });
}

export class Scale {
  /**
   * @param {ScaleOptions} options
   * @param {number} [floor] of the logarithmic scale
   */
  constructor({ scale, threshold, hideFirst }, floor = FLOOR) {
    this.key = [scale, threshold, hideFirst, scale === "log" && floor].join(); // equal scales have equal keys
    this.curve = CURVES[scale];
    this.floor = floor;
    this.perRow = scale === "row";
    this.threshold = threshold;
    this.firstKey = hideFirst ? 1 : 0; // the first key that is shown
  }

  /**
   * The scale chosen for a text, with the floor that the weights of its open picture need.
   * @param {{ view: { options: ScaleOptions }, weights: { floor: number } }} source
   */
  static of({ view, weights }) {
    return new Scale(view.options, weights.floor);
  }

  /**
   * The shade of one weight.
   * @param {number} weight
   * @param {number} key
   * @param {number} largest weight of its row
   */
  shade(weight, key, largest) {
    if (key < this.firstKey || weight < this.threshold) return 0;
    const value = this.perRow ? (largest ? weight / largest : 0) : weight;
    return clamp(Math.round(255 * this.curve(value, this.floor)), 0, 255);
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
