// Two texts as one sentence that forks: the words that both share once, then a branch for each side, with how likely
// every word was, and whether it was drawn.

import { make, setText, svg } from "../../lib/dom.mjs";
import { onResize, whenever } from "../../lib/reactive.mjs";
import { share } from "../../lib/numbers.mjs";
import { ending, plainly, shownText, spoken, textOf } from "../../lib/words.mjs";
import { isOwn } from "../state/pointer.mjs";
import { SIDES } from "./pair.mjs";
import { badge, LETTERS } from "./names.mjs";

/** @import { Pointer } from "../../types.js" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */

const MOST_SHARED = 240; // characters of the shared words
const MOST_BRANCH = 40; // tokens of a branch

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
    this.shared = make("p", { class: "hs-fork-shared" });
    this.lines = svg("svg", { class: "hs-fork-lines", "aria-hidden": "true" });
    const list = (/** @type {SideName} */ side) => make("ol", { "aria-label": `Text ${LETTERS[side]} goes on` });
    /** @type {Record<SideName, HTMLElement>} */
    this.branches = { a: list("a"), b: list("b") };
    /** @type {Record<SideName, HTMLElement>} */
    this.names = { a: make("span", {}), b: make("span", {}) };
    const sides = SIDES.map((side) => {
      const name = make("p", { class: "hs-fork-name" }, badge(side), " ", this.names[side]);
      return make("div", { class: `hs-fork-branch hs-fork-${side}` }, name, this.branches[side]);
    });
    this.both = make("div", { class: "hs-fork-branches" }, ...sides);
    this.sentence = make("div", { class: "hs-fork-sentence" }, this.shared, this.lines, this.both);
    this.chance = make("p", { class: "hs-fork-chance" });
    this.element = make("section", { class: "hs-fork", "aria-label": "One sentence that forks" });
    this.element.append(this.sentence);
    for (const side of SIDES) {
      this.branches[side].addEventListener("click", ({ target }) => {
        const word = target instanceof Element ? target.closest("[data-at]") : null;
        if (word instanceof HTMLElement) pair.stores[side].selection.select(Number(word.dataset.at));
      });
    }
    whenever(
      () => [...pair.progress, ...pair.place],
      () => this.draw(),
    );
    onResize(() => this.#connect(), this.element);
  }

  /** @param {SideName} side @param {string} title */
  name(side, title) {
    setText(this.names[side], title);
  }

  draw() {
    const { pair } = this;
    const { a, b } = pair.stores;
    if (!pair.isComplete) return;
    const { divergence, pieces } = pair.alignment;
    const starts = SIDES.map((side) => pair.alignment.divergesAt(side) ?? pair.stores[side].length);
    const chosen = SIDES.map((side) => (pair.chosen === null ? -1 : pair.tokenAt(side, pair.chosen)));
    const drawn = [
      a.pointer.run,
      b.pointer.run,
      a.length,
      b.length,
      divergence,
      pieces.length,
      ...starts,
      ...chosen,
    ].join();
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const shared = a.tokens.slice(0, starts[0]);
    const last = shared.at(-1);
    const before = ending(textOf(shared.slice(0, -1)), MOST_SHARED);
    this.shared.replaceChildren(before, make("b", {}, last ? shownText(last) : ""));
    SIDES.forEach((side, at) => this.#drawBranch(side, starts[at], chosen[at]));
    const isSame = divergence === null && a.length === b.length;
    this.both.hidden = this.lines.toggleAttribute("hidden", isSame);
    const [start, rest] = chanceWords(a.pointer, b.pointer, isSame);
    this.chance.replaceChildren(make("b", {}, start), ` ${rest}`);
    this.#connect();
  }

  /** @param {SideName} side @param {number} from @param {number} chosen */
  #drawBranch(side, from, chosen) {
    const { tokens, pointer } = this.pair.stores[side];
    const words = tokens.slice(from, from + MOST_BRANCH).map((token, i) => {
      const part = token.logprob === null || token.logprob === undefined ? null : Math.exp(token.logprob);
      const word = make("b", {}, plainly(shownText(token)));
      const number = make("small", {}, part === null ? "" : share(part).replace("under ", "<"));
      const button = make("button", { type: "button", "data-at": from + i }, word, number);
      button.style.setProperty("--part", String(part ?? 0));
      button.title = from + i < pointer.n_prompt ? "given" : "";
      if (from + i === chosen) button.setAttribute("aria-current", "true");
      return make("li", {}, button);
    });
    if (tokens.length > from + MOST_BRANCH) words.push(make("li", {}, "…"));
    this.branches[side].replaceChildren(...words);
  }

  /** Lines from the last shared word to both branches. */
  #connect() {
    const frame = this.sentence.getBoundingClientRect();
    const last = this.shared.querySelector("b")?.getBoundingClientRect();
    if (!last || !frame.width || this.both.hidden) return;
    const box = this.lines.getBoundingClientRect();
    const from = [0, last.top + last.height / 2 - box.top];
    const paths = SIDES.map((side) => {
      const to = this.branches[side].getBoundingClientRect();
      const y = to.top + 14 - box.top;
      const middle = box.width / 2;
      const d = `M ${from[0]} ${from[1]} C ${middle} ${from[1]} ${middle} ${y} ${box.width} ${y}`;
      return svg("path", { d, class: `hs-fork-line-${side}` });
    });
    this.lines.replaceChildren(...paths);
  }
}
