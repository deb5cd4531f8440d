// Whether the models of two texts are one, or have the same tokens.

import { vocabulary } from "../state/run_fetcher.mjs";

/** @import { Pointer } from "../../types.js" */

/** @typedef {Pick<Pointer, "model" | "sha256">} Reader */

/** The name of a model without the training step of a snapshot. @param {string} model */
export const baseName = (model) => model.replace(/@\d+$/, "");

/** @param {Reader} a @param {Reader} b */
export const isOneModel = (a, b) => a.sha256 === b.sha256 || baseName(a.model) === baseName(b.model);

/**
 * Whether two models have the same tokens, which only their whole vocabularies tell; false without these.
 * @param {Reader} a
 * @param {Reader} b
 */
export async function haveSameTokens(a, b) {
  try {
    const [left, right] = await Promise.all([a, b].map(({ sha256 }) => vocabulary(sha256)));
    return left.length === right.length && left.every((text, id) => text === right[id]);
  } catch {
    return false;
  }
}
