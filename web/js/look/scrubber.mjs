// Walking through the writing, token by token.

import { make } from "./dom.mjs";
import { bits } from "./text.mjs";
import { exact, visible } from "./words.mjs";

const PACE = 250; // milliseconds between two tokens that are played

export class Scrubber {
  constructor(store) {
    this.store = store;
    this.range = make("input", { type: "range", step: 1, "aria-label": "Step" });
    this.range.addEventListener("input", () => {
      this.pause();
      this.goto(Number(this.range.value));
    });
    this.button = make("button", { type: "button", class: "hs-small hs-play" });
    this.button.addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    this.said = make("output", { class: "hs-said" });
    this.element = make("div", { class: "hs-scrubber" }, this.button, this.range, this.said);
    store.on("state tokens step", () => this.draw());
    this.pause();
  }

  goto(step) {
    // At the end it follows the writing.
    this.store.goto(step >= this.store.tokens.length - 1 ? null : step);
  }

  play() {
    const { store } = this;
    const run = store.pointer.run;
    if (store.step === null) this.goto(store.firstStep);
    this.timer = setInterval(() => {
      if (store.pointer.run !== run || store.step === null) this.pause();
      else this.goto(store.step + 1);
    }, PACE);
    this.name("Pause", "⏸");
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.name("Play", "▶");
  }

  name(name, sign) {
    this.button.setAttribute("aria-label", `${name} the writing`);
    this.button.textContent = sign;
  }

  draw() {
    const { store, range } = this;
    const { chosen, tokens } = store;
    this.element.hidden = chosen === null;
    if (chosen === null) return;
    range.min = store.firstStep;
    range.max = tokens.length - 1;
    range.value = chosen;
    range.disabled = this.button.disabled = tokens.length - 1 <= store.firstStep;
    const token = tokens[chosen];
    const surprise = bits(token);
    const text = `“${visible(token.text)}” token ${chosen}`;
    const numbers = surprise === null ? "" : `probability ${exact(2 ** -surprise)}, ${surprise.toFixed(2)} bits`;
    this.said.replaceChildren(make("b", {}, text), numbers && ` ${numbers}`);
    range.setAttribute("aria-valuetext", numbers ? `${text}, ${numbers}` : text);
    if (store.step === null) this.pause();
  }
}
