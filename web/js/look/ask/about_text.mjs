// What questions about a text have in common.

import { isBusy } from "../state/pointer.mjs";
import { visible } from "../../lib/words.mjs";

/** @import { Store } from "../state/store.mjs" */

/**
 * The text as the routes under `v1/lens/` take it, with the heads that were scaled while it was written. The last token
 * of a full context was written but never read.
 * @param {Store} store
 */
export function textBody(store) {
  const { model, context_length, head_mask } = store.pointer;
  const tokens = store.ids.slice(0, context_length);
  return head_mask ? { model, tokens, head_mask } : { model, tokens };
}

/**
 * Why there is nothing to ask about the text; "" where there is.
 * @param {Store} store
 * @param {number} [least] tokens that it must have
 */
export function textProblem(store, least = 1) {
  const { run, state } = store.pointer;
  if (!run) return "There is no text yet. Write one, and it is asked about.";
  if (isBusy(state) || store.playback.isBehind)
    return "The text is still being written. It is asked about when it ends.";
  if (store.ids.length < least) return `This question needs a text of at least ${least} tokens.`;
  return "";
}

/** The position of the token that is selected: locked, or the one whose step is shown. @param {Store} store */
export const selectedToken = (store) => store.locked.at(-1)?.query ?? store.chosen ?? store.tokens.length - 1;

/** @param {Store} store @param {number} position */
export const tokenName = (store, position) => `“${visible(store.tokens[position]?.text ?? "")}” (token ${position})`;
