// A slider over what came at some steps of a training; it follows the newest until the visitor goes back.

import { thousands } from "../lib/numbers.mjs";
import { make } from "../lib/dom.mjs";
import { rangeInput, setRange } from "../widgets/controls.mjs";

/** @template {{ step: number }} Item */
export class StepSlider {
  /** @type {Item[]} */
  #items = [];
  #at = -1; // the one that is shown; -1 for the newest
  /** @type {(step: number) => void} called when the visitor goes to another step */
  moved = () => {};

  /** @param {string} label @param {(item: Item) => void} show */
  constructor(label, show) {
    this.show = show;
    this.words = make("p", { class: "ht-now" });
    this.range = rangeInput({ min: 0, max: 0, step: 1, "aria-label": label, hidden: true });
    this.range.addEventListener("input", () => {
      const at = Number(this.range.value);
      this.#at = at === this.#items.length - 1 ? -1 : at;
      this.draw();
      this.moved(this.#items[at].step);
    });
  }

  /** The item that is shown. */
  get shown() {
    return this.#items.at(this.#at);
  }

  /** @param {Item} item */
  add(item) {
    this.#items.push(item);
    this.draw();
  }

  /** Show what came nearest to a step. @param {number} step */
  seek(step) {
    const distances = this.#items.map((item) => Math.abs(item.step - step));
    const at = distances.lastIndexOf(Math.min(...distances));
    this.#at = at === this.#items.length - 1 ? -1 : at;
    this.draw();
  }

  clear() {
    this.#items = [];
    this.#at = -1;
    this.words.textContent = "";
    this.range.hidden = true;
  }

  draw() {
    const { range, shown, words } = this;
    if (!shown) return;
    const last = this.#items.length - 1;
    const at = this.#at < 0 ? last : this.#at;
    setRange(range, at, { max: last });
    range.hidden = last < 1;
    words.textContent = shown.step ? `after step ${thousands(shown.step)}` : "before the first step";
    range.setAttribute("aria-valuetext", words.textContent);
    this.show(shown);
  }
}
