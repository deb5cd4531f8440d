// How the visitor looks: which picture is open, which view, which colours. Kept from one text to the next, and shared
// by the two sides of a branch.

export const MODES = { matrix: "Matrix", text: "Text", lines: "Lines" };
export const HEADS = { whole: "Whole", step: "This step" }; // the latter: the row that every head had at one step
export const METRICS = {
  entropy: { name: "entropy", unit: "bits", place: 0, say: "how spread out the weights are" },
  distance: { name: "mean distance", unit: "tokens", place: 1, say: "how far back it looks" },
  first: { name: "on the first token", unit: "", place: 2, say: "weight on the first token" },
  previous: { name: "on the previous token", unit: "", place: 3, say: "weight on the token before" },
};
export const ORDERS = { high: "highest first", low: "lowest first" };
export const N_METRICS = 5; // the fifth, the distance from looking everywhere alike, is not offered
export const UNIFORM = 4;

export const DEFAULTS = {
  mode: "matrix",
  heads: "whole",
  scale: "sqrt",
  hideFirst: false,
  threshold: 0,
  metric: "entropy",
  sorted: "", // or a key of ORDERS; else by layer
  least: 0, // of the metric, as a part of the largest, for a head to be shown
  most: 1,
  surprise: false, // what colours the text: attention, or how surprising each token was
};

export class View {
  constructor() {
    this.options = { ...DEFAULTS };
    this.open = [0, 0];
    this.listeners = [];
  }

  /** `callback(changed)` with the names of what changed. */
  on(callback) {
    this.listeners.push(callback);
  }

  set(changes) {
    const changed = Object.keys(changes).filter((name) => this.options[name] !== changes[name]);
    if (!changed.length) return;
    Object.assign(this.options, changes);
    this.tell(changed);
  }

  /** Open a picture: [layer, column]. */
  choose(open) {
    if (open[0] === this.open[0] && open[1] === this.open[1]) return;
    this.open = open;
    this.tell(["open"]);
  }

  tell(changed) {
    for (const listener of this.listeners) listener(changed);
  }
}
