// "?": what is seen, with the words explained.

import { make, PHONE } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { signal } from "../../vendor/signals.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @type {[term: string, meaning: string][]} */
const WORDS = [
  ["Token", "A word, or a piece of one. The model reads a text token by token, and predicts the next one."],
  ["Head", "A part of the model that looks back from each token at earlier ones, and passes on what it finds there."],
  ["Layer", "All heads of a layer work at the same time; each layer works with what those before it have found."],
  ["Score", "What all parts of the model add up to for a word. One more makes the odds of the word 2.7 times as high."],
  ["Attention weight", "How much a head looks at a token. The weights of one look add up to 100%."],
  [
    "Residual stream",
    "What the model knows at a token. Heads read from it and add to it; in the end, it chooses a word.",
  ],
];

const TURN = "The button below what is said turns off the heads that it names, and shows what the model expects then.";
const SEEN = [
  "Threads lead from the underlined word to where each head looks. The wider a thread, the more its head matters.",
  "The next word stands in blue. The list has the others that could come, on one scale; choose one to go on with it.",
];

/** @type {string[]} */
const ON_WIDE = [
  ...SEEN,
  TURN,
  "Each tile is a head. Click one to see where it looks from every word, and a word to see what came after it.",
  "Arrow keys go from word to word. “All details” in the menu shows every number and tool.",
];

/** @type {string[]} */
const ON_PHONE = [
  ...SEEN,
  TURN.replace("below what is said", "at the bottom"),
  "Swipe the picture of a head to see the next one. Each tile further down is a head, too: tap it to see it.",
  "Tap a word to see what came after it. “All details” in the menu ⋯ shows every number and tool.",
];

export class Guide {
  #isOpen = signal(false);

  constructor() {
    const words = WORDS.flatMap(([term, meaning]) => [make("dt", {}, term), make("dd", {}, meaning)]);
    const close = smallButton(icon("close"), () => this.element.close(), { "aria-label": "Close" });
    const title = make("h2", {}, "What you see");
    this.seen = make("ul");
    this.element = make(
      "dialog",
      { class: "hs-guide", "aria-label": "Guide", autofocus: true, tabindex: -1 },
      make("header", {}, title, close),
      this.seen,
      make("dl", {}, ...words),
    );
    this.element.addEventListener("click", ({ target }) => target === this.element && this.element.close());
    this.element.addEventListener("close", () => (this.#isOpen.value = false));
  }

  get isOpen() {
    return this.#isOpen.value;
  }

  /** @param {boolean} isOpen */
  show(isOpen) {
    if (isOpen === this.#isOpen.peek()) return;
    this.#isOpen.value = isOpen;
    if (!isOpen) {
      this.element.close();
      return;
    }
    const words = matchMedia(PHONE).matches ? ON_PHONE : ON_WIDE;
    this.seen.replaceChildren(...words.map((each) => make("li", {}, each)));
    this.element.showModal();
    this.element.scrollTop = 0;
  }
}
