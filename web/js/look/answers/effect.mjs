// What switching heads off does to the next word of a text.

import { make } from "../../lib/dom.mjs";
import { effectOn, originOf } from "../../lib/without_heads.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";

/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { Part } from "../../lib/without_heads.mjs" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { Store } from "../state/store.mjs" */

/**
 * @param {Store} store
 * @param {Pick<Mixer, "logitsOf">} mixer
 * @param {Mask} mask
 * @param {number} position of the token before
 */
export async function effectOf(store, mixer, mask, position) {
  const [before, after, texts] = await Promise.all([
    store.fetcher.logits(position),
    mixer.logitsOf(mask, position),
    vocabulary(store.pointer.sha256),
  ]);
  const written = store.tokens[position + 1]?.id ?? null;
  return effectOn(before, after, texts, written, originOf(store.pointer, position + 1));
}

/** A sentence as it is shown. @param {Part[]} parts */
export const inBold = (parts) => parts.map((part) => (typeof part === "string" ? part : make("b", {}, part.strong)));
