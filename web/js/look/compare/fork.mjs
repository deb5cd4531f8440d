// The fork of two texts that are compared, and whether their words were drawn.

import { make, PHONE } from "../../lib/dom.mjs";
import { whenever } from "../../lib/reactive.mjs";
import { plainly, shownText, spoken, textOf } from "../../lib/words.mjs";
import { ForkDrawing } from "../../widgets/fork_drawing.mjs";
import { isOwn } from "../state/pointer.mjs";
import { SIDES } from "./pair.mjs";
import { badge, LETTERS } from "./names.mjs";

/** @import { Pointer } from "../../types.js" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */
/** @import { BranchWord } from "../../widgets/fork_drawing.mjs" */

const MOST_BRANCH = 40; // tokens of a branch; the whole texts stand below
const MOST_ON_PHONE = 12;

/** How the words of a text came into it. @typedef {{ rule: "given" | "likeliest" | "drawn", how: string }} Rule */

/** @param {Readonly<Pointer>} pointer @returns {Rule} */
function ruleOf(pointer) {
  const { temperature, seed } = pointer.settings;
  if (isOwn(pointer)) return { rule: "given", how: "given, not written by a model" };
  if (!(typeof temperature === "number" && temperature > 0)) {
    return { rule: "likeliest", how: "the likeliest at every step" };
  }
  return {
    rule: "drawn",
    how: `drawn at temperature ${temperature}${typeof seed === "number" ? `, seed ${seed}` : ""}`,
  };
}

/** What a model wrote begins after the prompt. @param {string} side @param {Rule} rule */
const wordsOf = (side, { rule, how }) =>
  `the words of ${side}${rule === "given" ? "" : " after its prompt"} were ${how}`;

/**
 * Whether chance has a part in the fork, in words.
 * @param {Readonly<Pointer>} a
 * @param {Readonly<Pointer>} b
 * @param {boolean} [isSame] whether both are the same text
 * @returns {[start: string, rest: string]}
 */
export function chanceWords(a, b, isSame = false) {
  if (isSame) return ["Not by chance:", "both read the same words."];
  const [left, right] = [ruleOf(a), ruleOf(b)];
  const drawn = [left, right].filter(({ rule }) => rule === "drawn").length;
  const start = ["Not by chance:", "Partly by chance:", "By chance:"][drawn];
  const rest =
    left.how !== right.how
      ? `${wordsOf("A", left)}; ${wordsOf("B", right)}.`
      : left.rule === "given"
        ? "both texts were given; no word was drawn."
        : left.rule === "likeliest"
          ? "at every step both took their likeliest word. Written again, the same words come out."
          : `on both sides the words after the prompt were ${left.how}, with the same random numbers.`;
  if (!b.branch) return [start, rest];
  return [start, `B begins with a word that you chose: ${spoken(b.branch.token)}. After that, ${rest}`];
}

export class Fork {
  #drawn = "";

  /** @param {Pair} pair */
  constructor(pair) {
    this.pair = pair;
    const labels = { a: `Text ${LETTERS.a} goes on`, b: `Text ${LETTERS.b} goes on` };
    this.drawing = new ForkDrawing(labels, (side, at) => pair.stores[side].selection.look(at));
    this.chance = make("p", { class: "hs-fork-chance" });
    this.element = make("section", { class: "hs-fork", "aria-label": "One sentence that forks" });
    for (const side of SIDES) this.drawing.names[side].append(badge(side));
    this.element.append(this.drawing.element, this.chance);
    whenever(
      () => [...pair.progress, ...pair.place],
      () => this.draw(),
    );
  }

  draw() {
    const { pair } = this;
    const { a, b } = pair.stores;
    if (!pair.isComplete) return;
    const { divergence, pieces } = pair.alignment;
    const starts = SIDES.map((side) => pair.alignment.divergesAt(side) ?? pair.alignment.end(side));
    const chosen = SIDES.map((side) => pair.asked(side)); // after these words both are asked for the next one
    const drawn = [
      a.pointer.run,
      b.pointer.run,
      a.length,
      b.length,
      divergence,
      pieces.length,
      ...starts,
      ...chosen,
      pair.isGrowing,
    ].join();
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const shared = a.tokens.slice(0, starts[0]);
    const last = shared.at(-1);
    const isSame = !pair.isGrowing && SIDES.every((side, at) => starts[at] >= pair.stores[side].length);
    const [wordsA, wordsB] = SIDES.map((side, at) => this.#branch(side, starts[at], chosen[at]));
    this.drawing.draw(
      textOf(shared.slice(0, -1)),
      last ? shownText(last) : "",
      isSame ? null : { a: wordsA, b: wordsB },
    );
    const [start, rest] = chanceWords(a.pointer, b.pointer, isSame);
    this.chance.replaceChildren(make("b", {}, start), ` ${rest}`);
  }

  /** @param {SideName} side @param {number} from @param {number} chosen @returns {BranchWord[]} */
  #branch(side, from, chosen) {
    const { alignment, stores } = this.pair;
    const { tokens, pointer } = stores[side];
    const most = matchMedia(PHONE).matches ? MOST_ON_PHONE : MOST_BRANCH;
    const words = tokens.slice(from, from + most).map((token, i) => ({
      text: plainly(shownText(token)),
      part: token.logprob === null || token.logprob === undefined ? null : Math.exp(token.logprob),
      title: from + i < pointer.n_prompt ? "given" : "",
      isChosen: from + i === chosen,
      isShared: alignment.isShared(side, from + i),
      at: from + i,
    }));
    return tokens.length > from + most ? [...words, { text: "…", part: null, at: from + most }] : words;
  }
}
