// Where in a text heads that look back matter most: the place at which to begin an introduction.

import { withScale } from "../../lib/head_masks.mjs";
import { copies, roleOf } from "../roles/head_roles.mjs";
import { headsAlike, MIN_LOOK } from "../roles/heads_alike.mjs";
import { effectOf } from "./effect.mjs";
import { plainly } from "../../lib/words.mjs";

/** @import { PictureId, Token } from "../../types.js" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { Store } from "../state/store.mjs" */

const MAX_TRIED = 8; // words
const MIN_PROBABILITY = 0.3; // a word that the model hardly expected is not due to a head
const MIN_FALL = 0.2; // of the probability of the word when the heads that look at it are switched off

/** @typedef {{ head: PictureId, step: number, fall: number }} TurningPoint */

/**
 * The positions of words that occurred earlier in the text: the rarest first, then the latest.
 * @param {readonly Token[]} tokens
 */
export function repeatedWords(tokens) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  const surprises = tokens.flatMap(({ text, logprob }, at) => {
    const word = plainly(text);
    const times = seen.get(word) ?? 0;
    seen.set(word, times + 1);
    const isProbable = logprob === null || Math.exp(logprob) >= MIN_PROBABILITY;
    return times && isProbable && /^\p{L}{3,}$/u.test(word) ? [{ at, times }] : [];
  });
  return surprises.sort((a, b) => a.times - b.times || b.at - a.at).map(({ at }) => at);
}

/**
 * The place at which switching off the heads that look back at the next word makes it least probable; null if no head
 * matters much.
 * @param {Store} store of a complete text
 * @param {Mixer} mixer
 * @returns {Promise<TurningPoint | null>}
 */
export async function turningPoint(store, mixer) {
  const { tokens, fetcher, pointer } = store;
  /** @type {TurningPoint | null} */
  let best = null;
  for (const step of repeatedWords(tokens).slice(0, MAX_TRIED)) {
    const query = step - 1;
    const weights = await fetcher.query(query);
    const word = plainly(tokens[step].text);
    const keys = tokens.slice(0, step).flatMap(({ text }, key) => (plainly(text) === word ? [key] : []));
    const looks = store.data.heads
      .map((head) => {
        const start = store.data.index(head) * (query + 1);
        return { head, weight: keys.reduce((sum, key) => sum + weights[start + key], 0) };
      })
      .filter(({ weight }) => weight >= MIN_LOOK)
      .sort((a, b) => b.weight - a.weight);
    if (!looks.length) continue;
    const { head } = looks.find((one) => copies(roleOf(store, one.head))) ?? looks[0];
    const heads = headsAlike(store, weights, { query, key: keys[0] }, head);
    const mask = withScale(pointer.head_mask, pointer, heads, 0);
    const { from, to } = await effectOf(store, mixer, mask, query);
    if (from - to >= Math.max(MIN_FALL, best?.fall ?? 0)) best = { head, step, fall: from - to };
  }
  return best;
}
