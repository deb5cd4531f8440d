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
const LEAST_BAR = 0.1; // of the longest: a word all of whose bars are shorter is one of the others
const NAMES = /** @type {const} */ (["weight", "norm", "attribution", "loss_change"]);
const NOISE_LEVEL = 0.005; // smaller numbers never get a full bar, so that rounding noise does not look large

/** The largest size of each measure, for the lengths of bars. @param {KeyMeasures[]} keys */
export const largestSizes = (keys) =>
  NAMES.map((name) => Math.max(largestOf(keys.map((key) => key[name])), NOISE_LEVEL));

/**
 * The words that have a long bar, in the order of the text.
 * @param {KeyMeasures[]} keys
 */
export function mainWords(keys) {
  const most = largestSizes(keys);
  const longest = (/** @type {KeyMeasures} */ key) =>
    Math.max(...NAMES.map((name, at) => Math.abs(key[name]) / most[at]));
  const long = keys.filter((key) => longest(key) >= LEAST_BAR).sort((a, b) => longest(b) - longest(a));
  return long.slice(0, MAX_WORDS).sort((a, b) => a.position - b.position);
}

/** A word; clicking it pins its cell. @param {ShownText} store @param {number} query @param {KeyMeasures} key */
export function wordButton({ selection }, query, { position, text }) {
  const onclick = () => selection.lock({ query, key: position });
  const button = make("button", { type: "button", class: "hs-alternative", onclick }, asWritten(text));
  button.setAttribute("aria-label", `“${visible(text)}” at position ${position}: pin this cell`);
  return button;
}

/**
 * The words that have no row: only attention and what is added can be summed.
 * @param {KeyMeasures[]} keys
 * @param {number[]} most
 */
function othersRow(keys, most) {
  const sum = (/** @type {"weight" | "attribution"} */ name) => keys.reduce((total, key) => total + key[name], 0);
  const [weight, attribution] = [sum("weight"), sum("attribution")];
  return makeRow(
    [
      keys.length === 1 ? "the other word" : `the other ${keys.length} words: together`,
      amountCell(weight, most[0], share(weight)),
      "",
      signedCell(attribution, most[2], signed(attribution, 1)),
      "",
    ],
    { class: "hs-other-words" },
  );
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
  const others = keys.filter((key) => !shown.includes(key));
  if (others.length) rows.push(othersRow(others, most));
  const table = makeTable(
    {
      name: `What ${spokenHead([layer, head])} takes from each word`,
      titles: ["word", "attention to it", "size of what it takes", `adds to ${word}`, "cost of a cut"],
      rows,
    },
    { class: "hs-answer-table hs-four-bars", "data-table": "four-bars" },
  );
  const key =
    `The size is the length of the vector that is moved; what it adds is to the logit of ${word}. The cost is how ` +
    `much its loss grows, in nats, if only this look is cut; to the right, ${word} becomes less likely.`;
  return [table, make("p", { class: "hs-hint" }, key)];
}
