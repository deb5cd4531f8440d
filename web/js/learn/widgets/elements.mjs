// Small elements that all lessons use.

import { thousands } from "../../lib/numbers.mjs";
import { make } from "../../lib/dom.mjs";
import { visible } from "../../lib/words.mjs";
import { rangeInput, setRange, tabs } from "../../widgets/controls.mjs";

/** @typedef {Node | string} Part */

/** In pixels: on narrower screens strips have shorter lines, and questions are folded. */
export const PHONE_WIDTH = 640;

/** @param {...Part} parts */
export const paragraph = (...parts) => make("p", {}, ...parts);

/** @param {string} text */
export const code = (text) => make("code", {}, text);

/** A term where it is introduced. @param {string} text */
export const term = (text) => make("dfn", {}, text);

/** A link to another tab. @param {"look" | "train" | "use"} page @param {string} text */
export const pageLink = (page, text) => make("a", { href: `#${page}`, class: "hl-page-link" }, text);

/** Whether visitors may train their own GPTs here. */
export const canTrain = () => document.querySelector("#hs-train") !== null;

/** @param {string} text */
export const heading = (text) => make("h3", {}, text);

/** Tables side by side if there is room. @param {...Node} children */
export const rowOf = (...children) => make("div", { class: "hl-row" }, ...children);

/** @param {...Node} children */
export const controls = (...children) => make("div", { class: "hl-controls" }, ...children);

/** Remarks behind a title that opens them. @param {string} title @param {...(Part[] | Part)} all */
export function remarks(title, ...all) {
  const items = all.map((remark) => make("li", {}, ...(Array.isArray(remark) ? remark : [remark])));
  return make("details", { class: "hl-remarks" }, make("summary", {}, title), make("ul", {}, ...items));
}

/**
 * What a click on its title opens. It stays open while the rung is used.
 * @param {Record<string, any>} kept
 * @param {string} name under which that is kept
 * @param {Part} title
 * @param {...Node} children
 */
export function fold(kept, name, title, ...children) {
  const element = make("details", { class: "hl-fold", open: Boolean(kept[name]) });
  element.append(make("summary", {}, title), ...children);
  element.addEventListener("toggle", () => (kept[name] = element.open));
  return element;
}

/** What an element of the figure says that is to be seen. */
export const REVEAL = "hl-reveal";

/** Open everything folded that an element is in, and the step that shows it. @param {Element} element */
export function openFolds(element) {
  element.dispatchEvent(new CustomEvent(REVEAL, { bubbles: true }));
  for (let at = element.closest("details"); at; at = at.parentElement?.closest("details") ?? null) at.open = true;
}

// Sliders and choices with a label.

let made = 0; // number of sliders, for their ids

/**
 * A slider that shows its value while it moves; with `values` it steps through that list.
 * @param {object} options
 * @param {string} options.label
 * @param {number} [options.min]
 * @param {number} [options.max]
 * @param {number} [options.step]
 * @param {number} options.value
 * @param {number[] | null} [options.values]
 * @param {(value: number) => string} [options.format]
 * @param {(value: number) => void} options.change
 */
export function slider({ label, min = 0, max = 1, step = 1, value, values = null, format = String, change }) {
  const id = `hl-slider-${(made += 1)}`;
  const range = values ? { min: 0, max: values.length - 1, step: 1 } : { min, max, step };
  const input = rangeInput({ id, ...range, value: values ? values.indexOf(value) : value });
  const read = () => (values ? values[Number(input.value)] : Number(input.value));
  const output = make("output", { for: id });
  const showValue = () => {
    output.textContent = format(read());
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    showValue();
    change(read());
  });
  showValue();
  const element = make("div", { class: "hl-slider" }, make("label", { for: id }, label), input, output);
  /**
   * Set the value, and the range if `most` is given, from the server's answer.
   * @param {number} next
   * @param {number | null} [most]
   */
  const update = (next, most = null) => {
    setRange(input, values ? values.indexOf(next) : next, most === null ? {} : { max: most });
    showValue();
  };
  return { element, input, update };
}

/**
 * A choice of a few options.
 * @template {string} Key
 * @param {object} options
 * @param {string} options.label
 * @param {Record<Key, string>} options.options
 * @param {Key} options.value
 * @param {(key: Key) => void} options.change
 */
export function choice({ label, options, value, change }) {
  const group = tabs(label, options, (key) => {
    group.show(key);
    change(key);
  });
  group.show(value);
  return { element: make("div", { class: "hl-choice" }, make("span", {}, label), group.element), show: group.show };
}

// Tokens in a row, each with its id or its probability below.

/**
 * @typedef {object} Chip
 * @property {string} text
 * @property {string | number} below
 * @property {boolean} known
 * @property {(() => void) | null} [open] shows the arithmetic behind the numbers below
 */

export class Chips {
  constructor() {
    this.summary = make("p", { class: "hl-count" });
    this.problem = make("p", { class: "hl-problem", role: "alert" });
    this.list = make("ol", { class: "hl-chips" });
    this.element = make("div", {}, this.summary, this.problem, this.list);
  }

  /**
   * @param {Chip[]} chips the first of them
   * @param {number} n how many tokens there are
   * @param {string} summary
   */
  show(chips, n, summary, problem = "") {
    this.summary.textContent = summary;
    this.problem.textContent = problem;
    const items = chips.map(({ text, below, known, open = null }) => {
      const label = `How ${below} is computed: “${visible(text)}”`;
      const attributes = { type: "button", class: "hl-opens", "aria-label": label, onclick: () => open?.() };
      const shown = open ? make("button", attributes, below) : below;
      return make(
        "li",
        { class: known ? "" : "hl-unknown" },
        make("span", {}, visible(text)),
        make("small", {}, shown),
      );
    });
    if (n > chips.length) items.push(make("li", { class: "hl-more" }, `… and ${thousands(n - chips.length)} more`));
    this.list.replaceChildren(...items);
  }
}

// Technical terms, each with a short definition that opens on hover, focus or tap.

/** @type {Record<string, string>} */
const DEFINITIONS = {
  Raschka:
    "Sebastian Raschka, “Build a Large Language Model (From Scratch)”. Its chapter 3 has the sentence “Your journey " +
    "starts with one step”, and these rungs compute its numbers.",
  Karpathy:
    "Andrej Karpathy, “Let’s build GPT: from scratch, in code, spelled out”, a video that builds a GPT on tiny " +
    "Shakespeare.",
  logits:
    "One number per possible next token, of any size: the larger, the more probable. Softmax turns them into " +
    "probabilities.",
  nats:
    "The unit of surprise, −ln p with the natural logarithm: an event of probability 1/2 has a surprise of 0.69 " +
    "nats, a certain event one of 0.",
  position: "The token’s place in the text. A vector that stands for the place is added to the token’s own (rung 2).",
  "layer norm":
    "Rescales a vector: each number minus their mean, divided by their standard deviation, times a learned weight, " +
    "plus a learned bias (rung 9).",
  MLP: "Two linear layers with a bend between them, which work on each token alone (rung 9).",
  overfitting: "Memorising the training text, so that the loss on other text rises.",
  AdamW:
    "The usual method for changing the weights a little after each batch. Every weight gets its own step size, " +
    "and all are pulled slightly towards 0.",
  gradient:
    "For each number of the model, how fast the loss grows with it. A step of gradient descent changes every number " +
    "a little in the other direction.",
  float32: "The usual format of a model’s numbers: 32 bits each, about 7 digits, at most about 3.4 × 10³⁸.",
  softmax: "Turns numbers into positive shares that add up to 1: e to the power of each, divided by the sum (rung 5).",
  seed: "The number that a random generator starts from: the same seed gives the same random numbers.",
  "dot product": "Multiply two vectors number by number and add up the products: (1, 2) · (3, 4) = 1·3 + 2·4 = 11.",
};

const WIDTH = 300; // CSS pixels, as in page.css
const EDGE = 12;

/** Whether a term is in the table above. @param {string} name */
export const isDefined = (name) => Object.hasOwn(DEFINITIONS, name);

/**
 * A term of the table above, marked where it is first used.
 * @param {keyof typeof DEFINITIONS} name
 * @param {string} [text] the form of the term that the sentence uses
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
  button.addEventListener("click", () => button.focus()); // Safari does not focus a button that is tapped
  button.addEventListener("keydown", (event) => event.key === "Escape" && button.blur());
  return button;
}
