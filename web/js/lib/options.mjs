// What a visitor can choose about how to look, and how the page opens.

/** @import { Options } from "../types.js" */

export const MODES = { matrix: "Matrix", text: "Text", lines: "Lines" };
export const HEADS = { whole: "Whole", step: "This step" }; // the latter: the row that every head had at one step
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
  ask: "", // the open question of Ask (look/ask/questions.mjs); "list" shows them all, "" none
  askWith: "", // what was chosen for it (look/ask/choices.mjs)
  summaries: false, // whether there are tiles for means and rollout
  surprise: false, // what colours the text: attention, or how surprising each token was
});
