// The visitor's options for the view, with their defaults.

/** @import { Options } from "../types.js" */

export const MODES = { matrix: "Matrix", text: "Text", lines: "Lines" };
export const HEADS = { whole: "Whole", step: "This step" }; // the latter: the row of every head at one step
export const ORDERS = { high: "highest first", low: "lowest first" };

/** @type {Readonly<Options>} */
export const DEFAULTS = Object.freeze({
  mode: "matrix",
  heads: "whole",
  scale: "sqrt",
  hideFirst: false,
  threshold: 0,
  metric: "entropy",
  sorted: "", // or a key of ORDERS; "" is by layer
  least: 0, // a head is shown if its metric is at least this fraction of the largest ...
  most: 1, // ... and at most this one
  ask: "", // the open question of Ask (look/ask/question_list.mjs); "list" shows them all, "" none
  askWith: "", // the choices made for it (look/state/choices.mjs)
  summaries: false, // whether means and rollout have tiles
  off: "", // the heads that are switched off (look/stage/shown_step.mjs)
  details: false, // whether everything for researchers is shown (look/panels/details.mjs)
  surprise: false, // whether the text is coloured by how surprising each token was, not by attention
});
