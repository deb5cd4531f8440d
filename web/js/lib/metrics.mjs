// The metrics of a picture, in the order in which a frame holds them (model/lens/metrics.py).

/** @import { MetricName, Place } from "../types.js" */

/** Distances at which a head may look from every token, beside the token before. */
export const DISTANCES = [2, 3, 4, 5, 6];
const NAMED = ["entropy", "distance", "first", "previous", "uniform"];
export const METRIC_ORDER = [...NAMED, ...DISTANCES.map((n) => `${n} back`)];
export const N_METRICS = METRIC_ORDER.length;

/** Where a frame has the mean weight `n` tokens back. @param {number} n */
export const placeOfDistance = (n) => METRIC_ORDER.indexOf(`${n} back`);

/** How far a head is from spreading its weights evenly: not offered as a choice, but it reveals an untrained model. */
export const UNIFORM = METRIC_ORDER.indexOf("uniform");

/**
 * @typedef {object} Metric
 * @property {string} name
 * @property {string} unit
 * @property {number} place where it is in a frame
 * @property {string} help
 */

/** @type {Record<MetricName, Metric>} */
export const METRICS = {
  entropy: metric("entropy", "entropy", "bits", "how spread out its attention is (0: on one token, 3: as over 8)"),
  distance: metric("distance", "mean distance", "tokens", "how many tokens back it looks"),
  first: metric("first", "on the first token", "", "the part of its attention that rests there"),
  previous: metric("previous", "on the previous token", "", "the part of its attention that goes to the token before"),
};

/**
 * @param {MetricName} key
 * @param {string} name
 * @param {string} unit
 * @param {string} help
 * @returns {Metric}
 */
function metric(key, name, unit, help) {
  return { name, unit, place: METRIC_ORDER.indexOf(key), help };
}

/**
 * What the ends of the bars below the tiles stand for. They end at the largest value of a head. Entropies are all
 * large: their bars begin at the smallest, so that differences show, or one bit below the largest. Others begin at 0.
 * @param {{ heads: Place[], metric: (picture: Place, place: number) => number }} text
 * @param {MetricName} key
 */
export function barEnds(text, key) {
  const values = text.heads.map((head) => text.metric(head, METRICS[key].place));
  const most = Math.max(...values, 1e-9);
  return { least: key === "entropy" ? Math.max(0, Math.min(...values, most - 1)) : 0, most };
}

/** The mean weight from which a head is said to have a role, as in model/lens/head_roles.py. */
export const CLEAR_ROLE = 0.3;
const CLEAR_TIMES_UNIFORM = 3;

/** @param {number} score @param {number} uniform what looking at all tokens alike would score */
export const isClearRole = (score, uniform) => score >= Math.max(CLEAR_ROLE, CLEAR_TIMES_UNIFORM * uniform);
