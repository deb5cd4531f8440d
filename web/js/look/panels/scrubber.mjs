// Walking through the writing, token by token.

import { make } from "../../lib/dom.mjs";
import { exact, surprise } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";

/** @import { Store } from "../state/store.mjs" */

const PERIOD = 250; // milliseconds between two tokens while it plays

export class Scrubber {
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.range = make("input", { type: "range", step: 1, "aria-label": "Step" });
    this.range.addEventListener("input", () => {
      this.pause();
      this.goto(Number(this.range.value));
    });
    this.button = make("button", { type: "button", class: "hs-small hs-play" });
    this.button.addEventListener("click", () => (this.#timer ? this.pause() : this.play()));
    this.status = make("output", { class: "hs-scrubber-status" });
    this.element = make("div", { class: "hs-scrubber" }, this.button, this.range, this.status);
    store.on("state tokens step", () => this.draw());
    this.pause();
  }

  /** @param {number} step */
  goto(step) {
    // At the end it follows the writing.
    this.store.goto(step >= this.store.tokens.length - 1 ? null : step);
  }

  play() {
    const { store } = this;
    const { run } = store.pointer;
    if (store.step === null) this.goto(store.firstStep);
    this.#timer = setInterval(() => {
      if (store.pointer.run !== run || store.step === null) this.pause();
      else this.goto(store.step + 1);
    }, PERIOD);
    this.#nameButton("Pause", "⏸");
  }

  pause() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#nameButton("Play", "▶");
  }

  /** @param {string} name @param {string} sign */
  #nameButton(name, sign) {
    this.button.setAttribute("aria-label", `${name} the writing`);
    this.button.textContent = sign;
  }

  draw() {
    const { store, range } = this;
    const { chosen, tokens } = store;
    this.element.hidden = chosen === null;
    if (chosen === null) return;
    range.min = String(store.firstStep);
    range.max = String(tokens.length - 1);
    range.value = String(chosen);
    range.disabled = this.button.disabled = tokens.length - 1 <= store.firstStep;
    const token = tokens[chosen];
    const bits = surprise(token);
    const text = `“${visible(token.text)}” token ${chosen}`;
    const numbers = bits === null ? "" : `probability ${exact(2 ** -bits)}, ${bits.toFixed(2)} bits`;
    this.status.replaceChildren(make("b", {}, text), numbers && ` ${numbers}`);
    range.setAttribute("aria-valuetext", numbers ? `${text}, ${numbers}` : text);
    if (store.step === null) this.pause();
  }
}
