// The pointer that the server sends, with everything that it may leave out.

/** @import { Pointer } from "../../types.js" */

/** @type {Readonly<Pointer>} */
const NOTHING = Object.freeze({
  state: "none",
  run: "",
  tokens: 0,
  rows: 0,
  rate: 0,
  n_prompt: 0,
  earlier: "",
  model: "",
  sha256: "",
  n_layer: 0,
  n_head: 0,
  context_length: 0,
  settings: {},
  notices: [],
  head: null,
  branch: null,
  note: "",
  why: null,
  suggested_heads: [],
  beside: "",
  head_mask: null,
});

/**
 * A pointer that has every field.
 * @param {...Partial<Pointer>} parts later ones win
 * @returns {Pointer}
 */
export const completePointer = (...parts) => Object.assign({}, NOTHING, ...parts);
