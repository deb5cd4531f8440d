// One scrubber for both texts.

import { make } from "../../../lib/dom.mjs";
import { exact } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { Scrubber } from "../../panels/scrubber.mjs";
import { SIDES } from "../pair.mjs";
import { badge, LETTERS } from "./pair_text.mjs";

/** @import { SideName } from "../alignment.mjs" */
/** @import { Pair } from "../pair.mjs" */

/** @param {Pair} pair */
export function pairScrubber(pair) {
  const scrubber = new Scrubber(pair, (step) => {
    const words = SIDES.map((side) => `${LETTERS[side]} ${describe(pair, side, step)}`);
    return { text: `Token ${pair.tokenAt("a", step)}`, numbers: words.join(", ") };
  });
  /** @type {Record<SideName, HTMLElement>} */
  const values = { a: make("span", {}), b: make("span", {}) };
  const line = make("p", { class: "hs-pair-step", "aria-hidden": true });
  line.append(...SIDES.map((side) => make("span", {}, badge(side), " ", values[side])));
  pair.on("state tokens step", () => {
    const step = pair.chosen;
    for (const side of SIDES) values[side].textContent = step === null ? "" : describe(pair, side, step);
  });
  const box = make("section", { class: "hs-panel hs-pair-clock", "aria-label": "Step of both texts" });
  scrubber.element.append(line);
  box.append(scrubber.element);
  return box;
}

/** The token of a side at a step. @param {Pair} pair @param {SideName} side @param {number} step */
function describe(pair, side, step) {
  if (pair.alignment.isGap(side, step)) return "no such token";
  const at = pair.tokenAt(side, step);
  const token = pair.stores[side].tokens[at];
  if (!token) return "has ended";
  const number = token.logprob == null ? "given" : `probability ${exact(Math.exp(token.logprob))}`;
  return `“${visible(token.text)}” token ${at}, ${number}`;
}
