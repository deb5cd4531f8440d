// "?": what is seen, with the words explained.

import { make } from "../../lib/dom.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @type {[term: string, meaning: string][]} */
const WORDS = [
  ["Token", "A word, or a piece of one. The model reads a text token by token, and predicts the next one."],
  ["Head", "A part of the model that looks back from each token at earlier ones, and passes on what it finds there."],
  ["Layer", "All heads of a layer work at the same time; each layer works with what those before it have found."],
  ["Attention weight", "How much a head looks at a token. The weights of one look add up to 100%."],
  [
    "Residual stream",
    "What the model knows at a token. Heads read from it and add to it; in the end, it chooses a word.",
  ],
];

/** @type {string[]} */
const SEEN = [
  "Threads lead from the underlined word to where each head looks.",
  "The wider a thread, the more its head matters for the next word, as the line below the tiles says.",
  "The next word stands in blue. Below it are the others that could come, on one scale. Click one to go on with it.",
  "The switch turns off the heads that the sentence names, and shows what the model writes without them.",
  "Each tile is a head. Click one to see where it looks from every word, and a word to see what came after it.",
  "Arrow keys go from word to word. “All details” in the menu shows every number and tool.",
];

export class Guide {
  constructor() {
    const words = WORDS.flatMap(([term, meaning]) => [make("dt", {}, term), make("dd", {}, meaning)]);
    const close = smallButton("Close", () => this.element.close());
    const title = make("h2", {}, "What you see");
    const seen = make("ul", {}, ...SEEN.map((each) => make("li", {}, each)));
    this.element = make(
      "dialog",
      { class: "hs-guide", "aria-label": "Guide", autofocus: true, tabindex: -1 },
      title,
      seen,
      make("dl", {}, ...words),
      close,
    );
    this.element.addEventListener("click", ({ target }) => target === this.element && this.element.close());
  }

  open() {
    this.element.showModal();
  }
}
