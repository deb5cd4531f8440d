// The windows over a sentence, and what can be practised with each of their targets.

import { make, setFlag } from "../../../lib/dom.mjs";
import { counted } from "../../../lib/numbers.mjs";
import { slider } from "../../widgets/controls.mjs";
import { controls } from "../../widgets/elements.mjs";
import { shortWord } from "../../../widgets/heat_table.mjs";

/** @typedef {{ id: number, text: string }[]} Tokens */
/** @typedef {{ inputs: Tokens, targets: Tokens }} Window */

const LONGEST = 60; // characters of a window's text that are repeated in a sentence

export class WindowList {
  /** @type {{ windows: Window[], stride: number, context_length: number, sentence: string[] } | null} */
  #data = null;
  #example = NaN; // the place of the target that is shown, window after window
  /** @type {HTMLElement[]} */
  #chips = [];
  /** @type {HTMLTableElement[]} */
  #tables = [];

  constructor() {
    this.slider = slider({
      label: "example",
      min: 0,
      max: 0,
      value: 0,
      format: (i) => this.#count(i),
      change: (i) => this.#choose(i),
    });
    this.sentence = make("p", { class: "hl-slide", "aria-label": "The sentence" });
    this.said = make("p", { class: "hl-count", role: "status" });
    this.list = make("ol", { class: "hl-windows" });
    this.elements = [controls(this.slider.element), this.sentence, this.said, this.list];
  }

  /** @param {number} i */
  #count(i) {
    return this.#data ? `${i + 1} of ${this.#data.windows.length * this.#data.context_length}` : "";
  }

  /** Show nothing where there is no window. */
  clear() {
    this.#data = null;
    for (const element of [this.slider.element, this.sentence, this.said, this.list]) element.hidden = true;
  }

  /** @param {any} data */
  update(data) {
    for (const element of [this.slider.element, this.sentence, this.said, this.list]) element.hidden = false;
    const { windows, n_windows: n, context_length: length, sentence } = data;
    this.#data = data;
    this.#chips = sentence.map((/** @type {string} */ word) => make("span", {}, shortWord(word)));
    this.sentence.replaceChildren(...this.#chips);
    this.#tables = windows.map((/** @type {Window} */ window, /** @type {number} */ i) => this.#table(window, i));
    const items = this.#tables.map((table) => make("li", {}, make("div", { class: "hl-scroll" }, table)));
    this.list.replaceChildren(...items);
    if (n > windows.length) this.list.append(make("li", { class: "hl-more" }, `… and ${n - windows.length} more`));
    const most = windows.length * length - 1;
    this.#choose(Math.min(most, Number.isNaN(this.#example) ? length - 1 : this.#example));
    this.slider.update(this.#example, most);
  }

  /** Inputs above their targets, each token with its id. @param {Window} window @param {number} i */
  #table({ inputs, targets }, i) {
    const cells = inputs.map(({ id, text }) =>
      make("td", {}, make("span", {}, shortWord(text)), make("small", {}, id)),
    );
    const below = targets.map(({ id, text }, place) => {
      const name = `Predict “${text}” from ${counted(place + 1, "token")} of window ${i}`;
      const onclick = () => this.#choose(i * inputs.length + place);
      const parts = [make("span", {}, shortWord(text)), make("small", {}, id)];
      return make("td", {}, make("button", { type: "button", "aria-label": name, onclick }, ...parts));
    });
    const row = (/** @type {string} */ name, /** @type {Node[]} */ line) =>
      make("tr", {}, make("th", { scope: "row" }, name), ...line);
    const body = make("tbody", {}, row("inputs", cells), row("targets", below));
    return make("table", { class: "hl-window", "aria-label": `Window ${i}` }, body);
  }

  /** Point out one target, and all that may be seen to predict it. @param {number} example */
  #choose(example) {
    if (!this.#data) return;
    this.#example = example;
    this.slider.update(example);
    const { windows, stride, context_length: length } = this.#data;
    const [window, place] = [Math.floor(example / length), example % length];
    const start = window * stride;
    this.#chips.forEach((chip, at) => {
      chip.classList.toggle("hl-in-window", at >= start && at < start + length);
      chip.classList.toggle("hl-given", at >= start && at <= start + place);
      chip.classList.toggle("hl-wanted", at === start + place + 1);
    });
    this.#tables.forEach((table, i) => {
      const [inputs, targets] = table.rows;
      [...inputs.cells].slice(1).forEach((cell, at) => cell.classList.toggle("hl-given", i === window && at <= place));
      [...targets.cells].slice(1).forEach((cell, at) => {
        const isHere = i === window && at === place;
        cell.classList.toggle("hl-wanted", isHere);
        if (cell.firstElementChild) setFlag(cell.firstElementChild, "aria-pressed", isHere);
      });
    });
    const { inputs, targets } = windows[window];
    const given = inputs.slice(0, place + 1).map(({ text }) => text);
    const text = given.join(" ");
    const shown = text.length > LONGEST ? `… ${text.slice(-LONGEST)}` : text;
    this.said.textContent =
      `Window ${window}, target ${place}: from “${shown}” (${counted(place + 1, "token")}) the model has to predict ` +
      `“${targets[place].text}”.`;
  }
}
