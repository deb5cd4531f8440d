// The second half of rung 6: random queries and keys, with and without the division by √head_dim.

import { make } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { exact, fixed, number, thousands } from "../../lib/numbers.mjs";
import { result, softmaxCell } from "../../widgets/arithmetic.mjs";
import { ask } from "../server.mjs";
import { bars, chart } from "../widgets/chart.mjs";
import { slider, code, controls, paragraph } from "../widgets/elements.mjs";

/** @import { Data, Named } from "../data.js" */
/** @import { SoftmaxTerms } from "../../widgets/arithmetic.mjs" */
/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */

/**
 * @typedef {{ variance: number, largest_weight: number }} Spread
 * @typedef {{ head_dim: number, unscaled: Spread, scaled: Spread }} Point
 */

const DIMS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const SHARPNESS = [1, 2, 4, 8, 16];
const SLIDER_PAUSE = 80; // milliseconds to wait for a slider that is still moving

export class ScoreScaling {
  /**
   * @param {Arithmetic} arithmetic shows how a number is computed
   * @param {{ head_dim: number, sharpness: number }} settings the visitor's, which are kept
   */
  constructor(arithmetic, settings) {
    this.arithmetic = arithmetic;
    this.settings = settings;
    this.request = new LatestRequest();
    this.dims = slider({
      label: "head_dim",
      values: DIMS,
      value: this.settings.head_dim,
      change: (value) => this.#change({ head_dim: value }),
    });
    this.sharpness = slider({
      label: "scores ×",
      values: SHARPNESS,
      value: this.settings.sharpness,
      change: (value) => this.#change({ sharpness: value }),
    });
    this.status = make("p", { class: "hl-count", role: "status" });
    this.variance = make("div", { class: "hl-row" });
    this.curve = make("div");
    this.softmax = make("div", { class: "hl-row" });
    this.fixedScores = make("div", { class: "hl-row" });
    this.started = false;
    this.elements = this.#makeElements();
  }

  /** @param {Partial<ScoreScaling["settings"]>} changes */
  #change(changes) {
    Object.assign(this.settings, changes);
    this.#load(SLIDER_PAUSE);
  }

  async #load(pause = 0) {
    try {
      const data = await this.request.send((signal) => ask("scale", this.settings, signal), pause);
      if (data) this.#show(data);
    } catch (error) {
      this.status.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {Data["scale"]} data */
  #show(data) {
    const { unscaled, scaled } = data.at;
    const root = `√${data.head_dim}`;
    this.status.textContent =
      `head_dim ${data.head_dim}: the scores have variance ${number(unscaled.variance, 2)}, divided by ${root} it is ` +
      `${number(scaled.variance, 2)}. Averaged over many queries with 256 keys each, the ` +
      `largest weight is ${fixed(unscaled.largest_weight)} without the division, ${fixed(scaled.largest_weight)} ` +
      "with it.";
    const kinds = /** @type {const} */ (["unscaled", "scaled"]);
    const spread = { "without the division": unscaled.variance, [`divided by ${root}`]: scaled.variance };
    const most = Math.max(unscaled.variance, scaled.variance);
    const largest = { "without the division": unscaled.largest_weight, [`divided by ${root}`]: scaled.largest_weight };
    /** @param {number} i */
    const explainVariance = (i) =>
      this.arithmetic.open(...varianceOf(data.spread_terms[kinds[i]], data.at[kinds[i]].variance));
    /** @param {number} i */
    const explainLargest = (i) =>
      this.arithmetic.open(...meanLargest(data.spread_terms[kinds[i]], data.at[kinds[i]].largest_weight));
    this.variance.replaceChildren(
      bars("Variance of the scores", spread, most, { format: (value) => fixed(value, 2), explain: explainVariance }),
      bars("Largest weight of a query, on average", largest, 1, { explain: explainLargest }),
    );
    this.curve.replaceChildren(weightCurve(data.curve, data.head_dim));
    /** @param {number[]} weights */
    const keys = (weights) => weights.map((value, i) => ({ label: `key ${i}`, value }));
    /** @param {Named<"scale", SoftmaxTerms>} terms @param {number[]} weights @param {string} words */
    const explainWeight = (terms, weights, words) => (/** @type {number} */ c) =>
      this.arithmetic.open(...softmaxCell({ terms: data[terms], r: 0, c, total: weights[c], title: [words] }));
    const [plain, divided] = [
      "Weight of a key: its score goes into the softmax as it is",
      `Weight of a key: its score is divided by ${root} first`,
    ];
    this.softmax.replaceChildren(
      bars("One query with 12 keys, without the division", keys(data.unscaled), 1, {
        explain: explainWeight("unscaled_terms", data.unscaled, plain),
      }),
      bars("The same query and keys, divided by √head_dim", keys(data.scaled), 1, {
        explain: explainWeight("scaled_terms", data.scaled, divided),
      }),
    );
    const shares = data.softmax.map((/** @type {number} */ value, /** @type {number} */ i) => {
      return { label: number(data.diffuse[i] * data.sharpness, 1), value };
    });
    const explain = explainWeight(
      "softmax_terms",
      data.softmax,
      `Weight of a score that was multiplied by ${data.sharpness}`,
    );
    this.fixedScores.replaceChildren(bars(`softmax of these scores × ${data.sharpness}`, shares, 1, { explain }));
  }

  #makeElements() {
    return [
      paragraph(
        "A score is a sum of ",
        code("head_dim"),
        " products, so its spread grows with their number. A softmax of widely spread scores puts nearly ",
        "all the weight on one key, and then hardly anything can be learned from the others. Dividing by √head_dim ",
        "keeps the spread constant.",
      ),
      controls(this.dims.element),
      this.status,
      this.variance,
      this.curve,
      this.softmax,
      paragraph("The same effect with five fixed scores: the larger they are, the sharper their softmax."),
      controls(this.sharpness.element),
      this.fixedScores,
    ];
  }

  start() {
    if (!this.started) this.#load();
    this.started = true;
  }
}

/**
 * @param {Point[]} points
 * @param {number} head_dim to mark
 */
function weightCurve(points, head_dim) {
  return chart({
    label: "The largest attention weight of a query, on average, for each head_dim",
    x: points.map((point) => String(point.head_dim)),
    lines: {
      "without the division": points.map((point) => point.unscaled.largest_weight),
      "divided by √head_dim": points.map((point) => point.scaled.largest_weight),
    },
    mark: points.findIndex((point) => point.head_dim === head_dim),
    below: 0,
    xName: "head_dim",
    yName: "largest attention weight",
  });
}

/**
 * @typedef {object} SpreadTerms
 * @property {number} n_scores
 * @property {number} mean
 * @property {number} squares
 * @property {number} n_rows
 * @property {number} largest
 */

/** @param {SpreadTerms} terms @param {number} variance */
const varianceOf = ({ n_scores: n, mean, squares }, variance) => [
  paragraph(`Variance of ${thousands(n)} scores, whose mean is ${fixed(mean)}`),
  paragraph(
    `sum of (score − mean)² / (number of scores − 1): ${fixed(squares, 1)} / ${thousands(n - 1)} `,
    result(fixed(variance)),
  ),
];

/** @param {SpreadTerms} terms @param {number} weight */
const meanLargest = ({ n_rows: n, largest }, weight) => [
  paragraph(`The sum of the largest weights of ${n} rows, each of a query with ${n} keys, divided by ${n}`),
  paragraph(`${fixed(largest)} / ${n} `, result(exact(weight))),
];
