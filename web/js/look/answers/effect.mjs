// What switching heads off does to the probability of the next token.

import { make } from "../../lib/dom.mjs";
import { share } from "../../lib/numbers.mjs";
import { mostProbable, softmax } from "../../lib/sampling.mjs";
import { plainly } from "../../lib/words.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";

/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { Store } from "../state/store.mjs" */

/**
 * The token, its probability before and after, and the token that is most probable before.
 * @typedef {{ text: string, from: number, to: number, likeliest: { id: number, text: string } }} Effect
 */

/**
 * @param {Store} store
 * @param {Pick<Mixer, "logitsOf">} mixer
 * @param {Mask} mask
 * @param {number} position of the token before
 * @param {number} [id] the next token; else the one in the text or, at its end, the most probable one
 * @returns {Promise<Effect>}
 */
export async function effectOf(store, mixer, mask, position, id = store.tokens[position + 1]?.id) {
  const [before, after, texts] = await Promise.all([
    store.fetcher.logits(position),
    mixer.logitsOf(mask, position),
    vocabulary(store.pointer.sha256),
  ]);
  const [most] = mostProbable(before, 1);
  const token = id ?? most;
  const [from, to] = [before, after].map((logits) => softmax(logits)[token]);
  return { text: texts[token] ?? "", from, to, likeliest: { id: most, text: texts[most] ?? "" } };
}

/** "“kite” falls from 95% to 0.2%". @param {Effect} effect @returns {(string | HTMLElement)[]} */
export function fallWords({ text, from, to }) {
  const word = make("b", {}, `“${plainly(text)}”`);
  const [was, is] = [from, to].map((part) => make("b", {}, share(part)));
  if (was.textContent === is.textContent) return [word, " stays at ", is];
  return [word, to < from ? " falls from " : " rises from ", was, " to ", is];
}
