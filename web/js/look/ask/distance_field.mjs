// How far a query is from its key: with rotary positions, their product depends on it.

import { make } from "../../lib/dom.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * The distance that a value stands for in the model's context; 0 for anything else.
 * @param {ShownText} store
 * @param {unknown} value
 */
export function distanceIn({ pointer }, value) {
  const distance = Number(value);
  const isOne = pointer.rotary && Number.isInteger(distance) && distance > 0 && distance < pointer.context_length;
  return isOne ? distance : 0;
}

/** Where the query is, in words. @param {number} distance in positions */
export const apart = (distance) =>
  distance
    ? `with the query ${distance} ${distance === 1 ? "position" : "positions"} after its key`
    : "with query and key at the same position";

/**
 * A field for the distance.
 * @param {ShownText} store
 * @param {(distance: number) => void} choose
 */
export function distanceField(store, choose) {
  const input = make("input", { type: "number", class: "hs-distance", min: 0, step: 1 });
  const element = make("label", {}, "query ", input, " positions after its key");
  input.addEventListener("change", () => choose(distanceIn(store, input.value)));
  return {
    element,
    /** @param {number} distance @param {boolean} matters whether the answer depends on it */
    show(distance, matters) {
      element.hidden = !matters || !store.pointer.rotary;
      input.max = String(store.pointer.context_length - 1);
      input.value = String(distance);
    },
  };
}
