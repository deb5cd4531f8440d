// From a weight to one of the 256 steps of a ramp. Colours are only a picture: numbers are always the true weight.

export const SCALES = {
  sqrt: { name: "square root", ticks: [0, 0.05, 0.25, 0.5, 1] },
  linear: { name: "linear", ticks: [0, 0.25, 0.5, 0.75, 1] },
  log: { name: "logarithmic", ticks: [0.0001, 0.001, 0.01, 0.1, 1] },
  row: { name: "row maximum", ticks: [0, 0.25, 0.5, 0.75, 1] },
};
const DECADES = 4; // that the logarithmic scale spans below 1

const CURVES = {
  sqrt: Math.sqrt,
  linear: (weight) => weight,
  log: (weight) => (weight > 0 ? Math.max(0, 1 + Math.log10(weight) / DECADES) : 0),
  row: (weight) => weight, // of what is the row's largest
};

/** Where a weight lies on its scale, 0 to 1. */
export const part = (scale, weight) => Math.min(1, Math.max(0, CURVES[scale](weight)));

export class Scale {
  /** From the options of a View: {scale, threshold, hideFirst}. */
  constructor({ scale, threshold, hideFirst }) {
    this.curve = CURVES[scale];
    this.perRow = scale === "row";
    this.threshold = threshold;
    this.from = hideFirst ? 1 : 0; // the first key that is shown
  }

  /** The step of one weight; `largest` is that of its row. */
  step(weight, key, largest) {
    if (key < this.from || weight < this.threshold) return 0;
    const value = this.perRow ? (largest ? weight / largest : 0) : weight;
    return Math.min(255, Math.max(0, Math.round(255 * this.curve(value))));
  }

  /** The largest weight of a row that is shown; only where the scale asks for it. */
  largest(values, start, count) {
    if (!this.perRow) return 1;
    let most = 0;
    for (let key = this.from; key < count; key++) if (values[start + key] > most) most = values[start + key];
    return most;
  }
}
