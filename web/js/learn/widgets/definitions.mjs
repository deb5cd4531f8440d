// Words of the field, each with a short definition that opens when it is pointed at, focused or tapped.

import { make } from "../../lib/dom.mjs";

/** @type {Record<string, string>} */
const DEFINITIONS = {
  logits:
    "One number per possible next token, of any size: the larger, the more probable. Softmax turns them into " +
    "probabilities.",
  nats:
    "The unit of −ln p, with the natural logarithm: an event of probability 1/2 surprises by 0.69 nats, one that is " +
    "certain by 0.",
  overfitting: "Learning the training text by heart, so that the loss on other text rises.",
  AdamW:
    "The usual method of changing the weights a little after each batch. Every weight gets its own step size, " +
    "and all are pulled slightly towards 0.",
  float32: "The usual format of a model's numbers: 32 bits each, about 7 digits, at most about 3.4 × 10³⁸.",
  seed: "The number that a random generator starts from: the same seed gives the same random numbers.",
  "dot product": "Multiply two vectors number by number and add up the products: (1, 2) · (3, 4) = 1·3 + 2·4 = 11.",
};

const WIDTH = 300; // CSS pixels, as in lesson.css
const EDGE = 12;

/**
 * A word of the table above, where it is used first.
 * @param {keyof typeof DEFINITIONS} name
 * @param {string} [text] the word as the sentence has it
 */
export function defined(name, text = name) {
  const attributes = { type: "button", class: "hl-defined", "aria-description": DEFINITIONS[name] };
  const button = make("button", { ...attributes, "data-definition": DEFINITIONS[name] }, text);
  /** Keep the definition within the page. */
  const place = () => {
    const { left } = button.getBoundingClientRect();
    const beyond = left + WIDTH + EDGE - document.documentElement.clientWidth;
    button.style.setProperty("--shift", `${Math.min(0, Math.max(-beyond, EDGE - left))}px`);
  };
  button.addEventListener("pointerenter", place);
  button.addEventListener("focus", place);
  button.addEventListener("click", () => button.focus()); // Safari does not focus what is tapped
  button.addEventListener("keydown", (event) => event.key === "Escape" && button.blur());
  return button;
}
