// The pointer that the server sends, and what its state means.

/** @import { Pointer, PointerState } from "../../types.js" */

/** @type {Readonly<Pointer>} */
const NOTHING = Object.freeze({
  state: "none",
  run: "",
  tokens: 0,
  rows: 0,
  rate: 0,
  n_prompt: 0,
  earlier: "",
  before: "",
  model: "",
  sha256: "",
  n_layer: 0,
  n_head: 0,
  context_length: 0,
  settings: {},
  notices: [],
  head: null,
  branch: null,
  chat: null,
  special: [],
  note: "",
  why: null,
  suggested_heads: [],
  beside: "",
  head_mask: null,
});

/**
 * A pointer with every field.
 * @param {...Partial<Pointer>} parts later ones win
 * @returns {Pointer}
 */
export const completePointer = (...parts) => Object.assign({}, NOTHING, ...parts);

/** Whether the server is writing the text, or about to. @param {PointerState} state */
export const isBusy = (state) => state === "waiting" || state === "writing";

const GIVEN = ["opening", "linked", "snapshot", "read", "saved"];

/** Whether the text was not just written: an opening, a linked text, or one read again. @param {PointerState} state */
export const isGiven = (state) => GIVEN.includes(state);

/**
 * Whether the visitor entered the whole text; a text that a model wrote has a seed.
 * @param {Pick<Pointer, "state" | "settings">} text
 */
export const isOwn = ({ state, settings }) => isGiven(state) && typeof settings.seed !== "number";
