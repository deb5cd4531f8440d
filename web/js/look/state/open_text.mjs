// Another text of the same model, opened from this one.

import { makeLink } from "../../lib/link.mjs";
import { openHere } from "./router.mjs";

/** @import { Cell, Options, PictureId } from "../../types.js" */
/** @import { ShownText } from "./shown_text.mjs" */

/**
 * Show another text of the same model in the place of this one.
 * @param {ShownText} store
 * @param {object} text
 * @param {number[]} text.ids
 * @param {number} text.n_prompt how many of them belong to the prompt
 * @param {PictureId} [text.open] the head to open
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
  openHere(link.search);
}
