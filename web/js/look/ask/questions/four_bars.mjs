// What a head takes from each word, as four bars: where it looks, how much it carries, what that adds, and what a cut
// changes.

import { make } from "../../../lib/dom.mjs";
import { spokenHead } from "../../../lib/heads.mjs";
import { fixed, share, signed } from "../../../lib/numbers.mjs";
import { asWritten, spoken, visible } from "../../../lib/words.mjs";
import { makeRow, makeTable } from "../../../widgets/table.mjs";
import { amountCell, signedCell } from "../bars.mjs";
import { largestOf } from "./attribution.mjs";

/** @import { HeadAnswer, KeyMeasures } from "../../../lens.js" */
/** @import { ShownText } from "../../state/shown_text.mjs" */

const MAX_WORDS = 8;
const NAMES = /** @type {const} */ (["weight", "norm", "attribution", "loss_change"]);
const NOISE_LEVEL = 0.005; // smaller numbers never get a full bar, so that rounding noise does not look large

/** The largest size of each measure, for the lengths of bars. @param {KeyMeasures[]} keys */
export const largestSizes = (keys) =>
  NAMES.map((name) => Math.max(largestOf(keys.map((key) => key[name])), NOISE_LEVEL));

/**
 * The words for which one of the bars is longest, in the order of the text.
 * @param {KeyMeasures[]} keys
 */
export function mainWords(keys) {
  const most = largestSizes(keys);
  const longest = (/** @type {KeyMeasures} */ key) =>
    Math.max(...NAMES.map((name, at) => Math.abs(key[name]) / most[at]));
  const order = [...keys].sort((a, b) => longest(b) - longest(a)).slice(0, MAX_WORDS);
  return order.sort((a, b) => a.position - b.position);
}

/** A word; clicking it pins its cell. @param {ShownText} store @param {number} query @param {KeyMeasures} key */
export function wordButton({ selection }, query, { position, text }) {
  const onclick = () => selection.lock({ query, key: position });
  const button = make("button", { type: "button", class: "hs-alternative", onclick }, asWritten(text));
  button.setAttribute("aria-label", `“${visible(text)}” at position ${position}: pin this cell`);
  return button;
}

/** @param {ShownText} store @param {HeadAnswer} answer */
export function fourBars(store, { keys, layer, head, position, token }) {
  const most = largestSizes(keys);
  const shown = mainWords(keys);
  const rows = shown.map((key) =>
    makeRow(
      [
        [wordButton(store, position, key), make("small", {}, key.position)],
        amountCell(key.weight, most[0], share(key.weight)),
        amountCell(key.norm, most[1], fixed(key.norm, 1)),
        signedCell(key.attribution, most[2], signed(key.attribution, 1)),
        signedCell(key.loss_change, most[3]),
      ],
      { "data-key": key.position },
    ),
  );
  const word = spoken(token.text);
  const rest = keys.length > shown.length ? ` The other ${keys.length - shown.length} have shorter bars.` : "";
  const table = makeTable(
    {
      name: `What ${spokenHead([layer, head])} takes from each word`,
      titles: ["word", "looked at", "carried", "adds", "if cut"],
      rows,
    },
    { class: "hs-answer-table hs-four-bars", "data-table": "four-bars" },
  );
  const key =
    `Looked at: share of the attention. Carried: length of the vector that is moved. Adds: to the score of ${word}. ` +
    `If cut: change of its loss, in nats; to the right, ${word} becomes less likely.${rest}`;
  return [table, make("p", { class: "hs-hint" }, key)];
}
