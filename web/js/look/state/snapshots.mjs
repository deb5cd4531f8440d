// The weights that were kept along a model's training, and the shown text read with them.

import { request } from "../../lib/http.mjs";

/** @import { SentPointer, TrainingReport } from "../../types.js" */
/** @import { ShownText } from "./shown_text.mjs" */

/** @type {Map<string, Promise<TrainingReport>>} by model */
const known = new Map();

/** @param {string} model @returns {Promise<TrainingReport>} */
const ask = async (model) => (await request(`look/steps/${encodeURIComponent(model)}`)).json();

/**
 * What was kept of a model's training: no steps for a model that was not trained here. A failed request is not
 * remembered.
 * @param {string} model
 * @param {boolean} [again] ask the server even if it has answered before, as while it computes scores
 */
export function trainingOf(model, again = false) {
  const asked = (!again && known.get(model)) || ask(model);
  known.set(model, asked);
  asked.catch(() => known.get(model) === asked && known.delete(model));
  return asked;
}

/**
 * Read a text with the weights that were kept after a step, which may have to be downloaded first.
 * @param {string} model
 * @param {number} step
 * @param {{ ids: number[], n_prompt: number }} text
 * @param {AbortSignal} [signal]
 * @returns {Promise<SentPointer>}
 */
export const readAtStep = async (model, step, { ids, n_prompt }, signal) =>
  (await request("look/snapshot", { body: { model, step, ids, n_prompt }, signal })).json();

/**
 * Show the text as it was read at a step, with the same selection.
 * @param {ShownText} store
 * @param {SentPointer} pointer
 */
export function showReading(store, pointer) {
  const { locked, step } = store.selection;
  store.follow({ ...pointer, settings: store.pointer.settings });
  store.selection.restore(locked, step);
}
