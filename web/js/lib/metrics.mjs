// The metrics of a picture, in the order in which a frame holds them (model/drawing/metrics.py).

/** @import { MetricName, PictureId } from "../types.js" */

/** How many tokens back a fixed-distance head may look; the previous token has a metric of its own. */
export const DISTANCES = [2, 3, 4, 5, 6];
const NAMED_METRICS = ["entropy", "distance", "first", "previous", "uniform"];
export const METRIC_ORDER = [...NAMED_METRICS, ...DISTANCES.map((n) => `${n} back`)];
export const N_METRICS = METRIC_ORDER.length;

/** The index of the mean weight `n` tokens back. @param {number} n */
export const indexOfDistance = (n) => METRIC_ORDER.indexOf(`${n} back`);

/** How far a head is from uniform attention: not offered as a choice, but it reveals an untrained model. */
export const UNIFORM = METRIC_ORDER.indexOf("uniform");

/**
 * @typedef {object} Metric
 * @property {string} name
 * @property {string} unit
 * @property {number} index in the metrics of a frame
 * @property {string} help
 */

/** @type {Record<MetricName, Metric>} */
export const METRICS = {
  entropy: metric(
    "entropy",
    "entropy",
    "bits",
    "how spread out its attention is (0 bits: one token; 3 bits: evenly over 8)",
  ),
  distance: metric("distance", "mean distance", "tokens", "how many tokens back it looks"),
  first: metric("first", "on the first token", "", "how much of its attention is there"),
  previous: metric("previous", "on the previous token", "", "how much of its attention goes to the token before"),
};

/**
 * @param {MetricName} key
 * @param {string} name
 * @param {string} unit
 * @param {string} help
 * @returns {Metric}
 */
function metric(key, name, unit, help) {
  return { name, unit, index: METRIC_ORDER.indexOf(key), help };
}

/**
 * The range of the bars below the tiles. It ends at the largest value of any head, and starts at 0, except for
 * entropies: they are all large, so to show differences their range starts at the smallest, or one bit below the
 * largest.
 * @param {{ heads: PictureId[], metric: (picture: PictureId, index: number) => number }} text
 * @param {MetricName} key
 */
export function barEnds(text, key) {
  const values = text.heads.map((head) => text.metric(head, METRICS[key].index));
  const most = Math.max(...values, 1e-9);
  return { least: key === "entropy" ? Math.max(0, Math.min(...values, most - 1)) : 0, most };
}

/** The mean weight from which a head is said to have a role, as in model/lens/head_roles.py. */
export const CLEAR_ROLE = 0.3;
const CLEAR_TIMES_UNIFORM = 3;

/** @param {number} score @param {number} uniform what uniform attention would score */
export const isClearRole = (score, uniform) => score >= Math.max(CLEAR_ROLE, CLEAR_TIMES_UNIFORM * uniform);
