// Which prediction and which cell the questions are about.

/** @import { Place } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */

/** @typedef {{ position: number, token: number | null }} Prediction the token null stands for the most probable one */

/**
 * The prediction made at the pinned query or else, as in the panel of the next token, that of the selected token.
 * @param {Store} store
 * @returns {Prediction}
 */
export function askedPrediction({ locked, chosen, tokens }) {
  const newest = tokens.length - 1;
  const position = Math.min(locked.at(-1)?.query ?? (chosen === null ? newest : chosen - 1), newest);
  return { position, token: tokens[position + 1]?.id ?? null };
}

/**
 * Select the newest token where nothing is selected, so that all panels show the prediction that is asked about.
 * @param {Store} store
 */
export function selectSomething(store) {
  if (store.step === null && !store.locked.length && store.chosen !== null) store.goto(store.chosen);
}

/** The open head; null where a mean or a rollout is open. @param {Store} store @returns {Place | null} */
export function openHead({ open, pointer: { n_layer, n_head } }) {
  return open[0] < n_layer && open[1] < n_head ? open : null;
}

export const NO_HEAD = "This question is about one head: open one in the grid.";
