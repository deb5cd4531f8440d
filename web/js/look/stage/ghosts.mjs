// The words that could come next, as ghosts: which ones, in which order, and how dark, on one axis from 0 to 1 that is
// the same with all heads and without some.

import { mostProbable } from "../../lib/sampling.mjs";
import { comparedIds } from "../../lib/without_heads.mjs";

/** @import { Floats } from "../../lib/sampling.mjs" */

/**
 * A word, the model's probability as it is shown, and the one with all heads. The last one stands for all other words:
 * its id is null.
 * @typedef {{ id: number | null, text: string, probability: number, withAll: number }} Ghost
 */

export const SHOWN = 5; // words

/**
 * @param {Floats} on probabilities with all heads
 * @param {Floats | null} off without some; null if they are not off
 * @param {readonly string[]} texts of the vocabulary
 * @param {number | null} written the word that stands in the text, which is always shown
 * @returns {Ghost[]} the likeliest first
 */
export function ghostsOf(on, off, texts, written = null) {
  const shown = off ?? on;
  const ids = off
    ? comparedIds(on, off, { count: SHOWN, written, by: shown })
    : withWritten(mostProbable(on, SHOWN), written, on);
  const ghosts = ids.map((id) => ({ id, text: texts[id] ?? "", probability: shown[id], withAll: on[id] }));
  const rest = (/** @type {Floats} */ all) => Math.max(0, 1 - ids.reduce((sum, id) => sum + all[id], 0));
  if (ids.length === shown.length) return ghosts;
  return [...ghosts, { id: null, text: "", probability: rest(shown), withAll: rest(on) }];
}

/** @param {number[]} ids @param {number | null} written @param {Floats} by */
function withWritten(ids, written, by) {
  if (written === null || ids.includes(written) || written >= by.length) return ids;
  return [...ids.slice(0, SHOWN - 1), written];
}

/** Whether a word is as dark as the text. @param {number} probability */
export const isLikely = (probability) => probability >= 0.01;
