// Opens a text of the model at hand in the workspace, as a link to it would.

import { makeLink } from "../../lib/link.mjs";

/** @import { Cell, Options, Place } from "../../types.js" */
/** @import { Store } from "./store.mjs" */

/**
 * @param {Store} store
 * @param {object} text
 * @param {number[]} text.ids
 * @param {number} text.n_prompt how many of them were not written by the model
 * @param {Place} [text.open] the head to open
 * @param {Cell[]} [text.locked]
 * @param {Partial<Options>} [text.options]
 */
export function openText(store, { ids, n_prompt, open = store.open, locked = [], options = {} }) {
  const { model, sha256 } = store.pointer;
  const view = { ...store.view.options, ...options };
  const state = {
    model,
    sha256,
    ids,
    n_prompt,
    head_mask: null,
    settings: {},
    open,
    locked,
    step: null,
    options: view,
  };
  const link = new URL(makeLink(state, [], location.href));
  history.pushState({ isOpenedHere: true }, "", `${link.search}${location.hash}`);
  window.dispatchEvent(new PopStateEvent("popstate"));
}
