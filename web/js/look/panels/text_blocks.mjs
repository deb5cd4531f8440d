// While a long text grows, its finished lines stand in blocks. A browser lays out and paints the whole of a block again
// when a word is added to it, so it does that only for the last lines. The words stay where they are.

import { make } from "../../lib/dom.mjs";

/** @import { Box } from "./arcs.mjs" */

const MIN_TOKENS = 64; // of a block, and of the lines after the last block

export class TextBlocks {
  #end = 0; // tokens in blocks

  /** @param {HTMLElement} element the text */
  constructor(element) {
    this.element = element;
  }

  /**
   * Put finished lines into blocks.
   * @param {readonly HTMLElement[]} spans of the tokens
   * @param {readonly HTMLElement[]} words the part of each token after its spaces
   * @param {readonly Box[]} boxes where the words are
   */
  extend(spans, words, boxes) {
    const starts = [];
    const first = this.#end;
    for (let i = this.#end + MIN_TOKENS; i < boxes.length - MIN_TOKENS; i++) {
      const isSameLine = boxes[i].top < (boxes[i - 1].top + boxes[i - 1].bottom) / 2;
      if (isSameLine || !canStart(spans[i], words[i], spans[i - 1])) continue;
      starts.push(i);
      i += MIN_TOKENS - 1;
    }
    if (!starts.length) return;
    // Heights are computed from the places of the words: measuring the blocks would lay out all of the text once more.
    const line = Math.floor(64 * parseFloat(getComputedStyle(this.element).lineHeight)) / 64; // as browsers lay it out
    const tops = [
      first ? boxes[first].top : boxes[0].top - this.#aboveFirst(words[0]),
      ...starts.map((i) => boxes[i].top),
    ];
    starts.forEach((start, i) => {
      const block = make("div", { class: "hs-block" });
      spans[this.#end].before(block);
      const { previousElementSibling: before } = block;
      if (before?.matches(".hs-earlier")) block.append(before);
      block.append(...spans.slice(this.#end, start));
      spans[start].classList.add("hs-line-start");
      this.#end = start;
      const lines = Math.round((tops[i + 1] - tops[i]) / line); // tops of words differ within a line
      block.style.containIntrinsicBlockSize = `auto ${lines * line}px`; // while it is out of view
      block.style.contentVisibility = "auto";
    });
  }

  /** The height of the lines above that of the first word, which an earlier text fills. @param {HTMLElement} word */
  #aboveFirst(word) {
    const [earlier] = this.element.querySelector(".hs-earlier")?.getClientRects() ?? [];
    return earlier ? word.getClientRects()[0].top - earlier.top : 0;
  }

  /** Let all lines flow again. @param {readonly HTMLElement[]} spans of the tokens */
  dissolve(spans) {
    if (!this.#end) return;
    this.#end = 0;
    for (const block of this.element.querySelectorAll(".hs-block")) block.replaceWith(...block.childNodes);
    for (const span of spans) span.classList.remove("hs-line-start");
  }
}

/**
 * Whether a token at the start of a line may be the first of a block. The space before its word belongs to the line
 * before, unless that ends with a line break.
 * @param {HTMLElement} span
 * @param {HTMLElement} word
 * @param {HTMLElement} before the token before it
 */
function canStart(span, word, before) {
  const isWhole = word.getClientRects().length === 1;
  return isWhole && (before.textContent.endsWith("\n") ? /^\S/ : /^ ?\S/).test(span.textContent);
}
