// Names of the models and the sides of a comparison.

import { make } from "../../lib/dom.mjs";
import { counted } from "../../lib/numbers.mjs";
import { maskWords } from "../../lib/head_masks.mjs";
import { capitalised, spoken } from "../../lib/words.mjs";
import { isOwn } from "../state/pointer.mjs";

/** @import { Pointer, Token } from "../../types.js" */
/** @import { Alignment, SideName } from "./alignment.mjs" */

/** @typedef {{ pointer: Readonly<Pointer>, tokens: Token[] }} Side */

/** @type {Record<SideName, string>} */
export const LETTERS = { a: "A", b: "B" };

/** The letter of a side, in its colour. @param {SideName} side */
export const badge = (side) => make("span", { class: `hs-badge hs-badge-${side}`, "aria-hidden": true }, LETTERS[side]);

/** "tiny@16" is "tiny, training step 16". @param {string} model */
export const modelWords = (model) => model.replace(/@(\d+)$/, (_, step) => `, training step ${Number(step)}`);

/**
 * @param {Side} a
 * @param {Side} b
 * @param {Alignment} alignment
 * @returns {[a: string, b: string]}
 */
export function sideTitles(a, b, alignment) {
  if (a.pointer.model !== b.pointer.model) return [modelWords(a.pointer.model), modelWords(b.pointer.model)];
  const masks = [a, b].map(({ pointer }) => maskWords(pointer.head_mask));
  if (masks[0] !== masks[1]) return [masks[0] || "All heads", masks[1] ? capitalised(masks[1]) : "All heads"];
  return ["First text", secondTitle(a, b, alignment)];
}

/** @param {Side} a @param {Side} b @param {Alignment} alignment */
function secondTitle(a, b, alignment) {
  const { branch, beside, settings } = b.pointer;
  const seeds = [a.pointer.settings.seed, settings.seed];
  if (branch) return branchTitle(branch.at, branch.token, branch.instead);
  if (beside || (typeof seeds[1] === "number" && seeds[0] !== seeds[1])) return `Another text, seed ${seeds[1]}`;
  const [at, instead] = [alignment.divergesAt("b"), alignment.divergesAt("a")];
  if (at === null || instead === null) {
    const longer = b.tokens.length - a.tokens.length;
    return longer < 0 ? "The beginning of the first text" : longer > 0 ? "The first text, and more" : "The same text";
  }
  const [token, replaced] = [b.tokens[at]?.text ?? "", a.tokens[instead]?.text ?? ""];
  if (!isOwn(b.pointer)) return branchTitle(at, token, replaced);
  const more = alignment.changes("b", b.tokens.length).length - 1;
  const others = more > 0 ? `, and ${counted(more, "other change")}` : "";
  return `Another text: ${spoken(token)} instead of ${spoken(replaced)} at token ${at}${others}`;
}

/** @param {number} at @param {string} token @param {string} instead */
function branchTitle(at, token, instead) {
  return `Branch at token ${at}: ${spoken(token)}${instead ? ` instead of ${spoken(instead)}` : ""}`;
}
