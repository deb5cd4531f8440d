// The second half of rung 6: random queries and keys, with the division by √head_dim and without.

import { make } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/server/latest.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { ask } from "../server.mjs";
import { bars, chart } from "../widgets/chart.mjs";
import { slider } from "../widgets/controls.mjs";
import { code, controls, paragraph } from "../widgets/elements.mjs";

/**
 * @typedef {{ variance: number, largest_weight: number }} Spread
 * @typedef {{ head_dim: number, unscaled: Spread, scaled: Spread }} Point
 */

const DIMS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const SHARPNESS = [1, 2, 4, 8, 16];
const PAUSE = 80; // milliseconds in which a slider may still move

export function scoreScaling() {
  const settings = { head_dim: 16, sharpness: 8 };
  const request = new LatestRequest();
  const dims = slider({
    label: "head_dim",
    values: DIMS,
    value: settings.head_dim,
    change: (value) => change({ head_dim: value }),
  });
  const sharpness = slider({
    label: "scores ×",
    values: SHARPNESS,
    value: settings.sharpness,
    change: (value) => change({ sharpness: value }),
  });
  const status = make("p", { class: "hl-count", role: "status" });
  const variance = make("div", { class: "hl-row" });
  const curve = make("div");
  const softmax = make("div", { class: "hl-row" });
  const fixedScores = make("div", { class: "hl-row" });

  /** @param {Partial<typeof settings>} changes */
  function change(changes) {
    Object.assign(settings, changes);
    load(PAUSE);
  }

  async function load(pause = 0) {
    try {
      const data = await request.send((signal) => ask("scale", settings, signal), pause);
      if (data) show(data);
    } catch (error) {
      status.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {any} data */
  function show(data) {
    const { unscaled, scaled } = data.at;
    const root = `√${data.head_dim}`;
    status.textContent =
      `head_dim ${data.head_dim}: the scores have variance ${number(unscaled.variance, 2)}, divided by ${root} it is ` +
      `${number(scaled.variance, 2)}. Averaged over many queries with 256 keys each, the ` +
      `largest weight is ${fixed(unscaled.largest_weight)} without the division, ${fixed(scaled.largest_weight)} ` +
      "with it.";
    const spread = { "without the division": unscaled.variance, [`divided by ${root}`]: scaled.variance };
    const most = Math.max(unscaled.variance, scaled.variance);
    variance.replaceChildren(bars("Variance of the scores", spread, most, (value) => fixed(value, 2)));
    curve.replaceChildren(weightCurve(data.curve, data.head_dim));
    /** @param {number[]} weights */
    const keys = (weights) => weights.map((value, i) => ({ label: `key ${i}`, value }));
    softmax.replaceChildren(
      bars("One query with 12 keys, without the division", keys(data.unscaled), 1),
      bars("The same query and keys, divided by √head_dim", keys(data.scaled), 1),
    );
    const shares = data.softmax.map((/** @type {number} */ value, /** @type {number} */ i) => {
      return { label: number(data.diffuse[i] * data.sharpness, 1), value };
    });
    fixedScores.replaceChildren(bars(`softmax of these scores × ${data.sharpness}`, shares, 1));
  }

  let started = false;
  return {
    elements: [
      paragraph(
        "A score is a sum of ",
        code("head_dim"),
        " products, so its spread grows with their number. A softmax of widely spread scores puts nearly ",
        "all weight on one key, and then hardly anything can be learned from the others. Dividing by √head_dim keeps ",
        "the spread the same.",
      ),
      controls(dims.element),
      status,
      variance,
      curve,
      softmax,
      paragraph("The same with five fixed scores: the larger they are, the sharper their softmax."),
      controls(sharpness.element),
      fixedScores,
    ],
    start() {
      if (!started) load();
      started = true;
    },
  };
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
