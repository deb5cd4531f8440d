// One sentence that forks: the words that two texts share once, then a branch for each, with how likely every word was.

import { make, svg } from "../lib/dom.mjs";
import { onResize } from "../lib/reactive.mjs";
import { share } from "../lib/numbers.mjs";
import { ending } from "../lib/words.mjs";

const MOST_SHARED = 240; // characters of the shared words

/** @typedef {"a" | "b"} Branch */
/** @type {Branch[]} */
const BRANCHES = ["a", "b"];

/**
 * A word of a branch.
 * @typedef {object} BranchWord
 * @property {string} text
 * @property {number | null} part its probability; null if it is not known
 * @property {string} [title]
 * @property {boolean} [isChosen]
 * @property {boolean} [isShared] whether the other branch has it, too
 * @property {number} [at] its token, for `choose`
 */

export class ForkDrawing {
  /**
   * @param {Record<Branch, string>} labels of the branches, for screen readers
   * @param {((branch: Branch, at: number) => void) | null} [choose] makes every word a button
   */
  constructor(labels, choose = null) {
    this.choose = choose;
    this.shared = make("p", { class: "hs-fork-shared" });
    this.lines = svg("svg", { class: "hs-fork-lines", "aria-hidden": "true" });
    const list = (/** @type {Branch} */ branch) => make("ol", { "aria-label": labels[branch] });
    /** @type {Record<Branch, HTMLElement>} */
    this.branches = { a: list("a"), b: list("b") };
    const name = () => make("p", { class: "hs-fork-name" });
    /** @type {Record<Branch, HTMLElement>} what stands above each branch */
    this.names = { a: name(), b: name() };
    const parts = BRANCHES.map((branch) =>
      make("div", { class: `hs-fork-branch hs-fork-${branch}` }, this.names[branch], this.branches[branch]),
    );
    this.both = make("div", { class: "hs-fork-branches" }, ...parts);
    this.element = make("div", { class: "hs-fork-sentence" }, this.shared, this.lines, this.both);
    for (const branch of choose ? BRANCHES : []) {
      this.branches[branch].addEventListener("click", ({ target }) => {
        const word = target instanceof Element ? target.closest("[data-at]") : null;
        if (word instanceof HTMLElement) choose?.(branch, Number(word.dataset.at));
      });
    }
    onResize(() => this.#connect(), this.element);
  }

  /**
   * @param {string} before the shared words
   * @param {string} last the last of them, where the fork leaves
   * @param {Record<Branch, BranchWord[]> | null} branches null if there is no fork
   */
  draw(before, last, branches) {
    this.shared.replaceChildren(ending(before, MOST_SHARED), make("b", {}, last));
    this.both.hidden = this.lines.toggleAttribute("hidden", !branches);
    for (const branch of BRANCHES) {
      this.branches[branch].replaceChildren(...(branches?.[branch] ?? []).map((word) => this.#word(word)));
    }
    this.#connect();
  }

  /** @param {BranchWord} word */
  #word({ text, part, title = "", isChosen = false, isShared = false, at }) {
    const number = part === null ? "" : share(part).replace("under ", "<");
    const inside = [make("b", {}, text), make("small", {}, number)];
    const word = this.choose
      ? make("button", { type: "button", class: "hs-fork-word", "data-at": at ?? "" }, ...inside)
      : make("span", { class: "hs-fork-word" }, ...inside);
    word.style.setProperty("--part", String(part ?? 0));
    word.title = title;
    if (isChosen) word.setAttribute("aria-current", "true");
    return make("li", { class: isShared ? "hs-fork-same" : null }, word);
  }

  /** Lines from the last shared word to both branches. */
  #connect() {
    const frame = this.element.getBoundingClientRect();
    const last = this.shared.querySelector("b")?.getBoundingClientRect();
    if (!last || !frame.width || this.both.hidden) return;
    const box = this.lines.getBoundingClientRect();
    const from = last.top + last.height / 2 - box.top;
    const paths = BRANCHES.map((branch) => {
      const to = this.branches[branch].getBoundingClientRect().top + 14 - box.top;
      const middle = box.width / 2;
      const d = `M 0 ${from} C ${middle} ${from} ${middle} ${to} ${box.width} ${to}`;
      return svg("path", { d, class: `hs-fork-line-${branch}` });
    });
    this.lines.replaceChildren(...paths);
  }
}
