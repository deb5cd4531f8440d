// Numbers with a bar below each: it starts at the left or, for signed numbers, in the middle.

import { signed } from "../../lib/numbers.mjs";
import { makeCell } from "../../widgets/table.mjs";
import { bar } from "../../widgets/controls.mjs";

/**
 * A cell with a bar whose length is the value's share of the largest value; no bar if the largest value is 0.
 * @param {number} value
 * @param {number} largest of the values that are compared
 * @param {string} text
 * @param {string} [css] hs-signed for a number that may be negative
 */
function barCell(value, largest, text, css) {
  const amount = bar(largest > 0 ? Math.abs(value) / largest : 0, css);
  amount.classList.toggle("hs-less", value < 0);
  return makeCell([text, ...(largest ? [amount] : [])], { class: "hs-measure" });
}

/** @param {number} value @param {number} largest @param {string} [text] */
export const signedCell = (value, largest, text = signed(value)) => barCell(value, largest, text, "hs-signed");

/** @param {number} value @param {number} largest @param {string} text */
export const amountCell = (value, largest, text) => barCell(value, largest, text);
