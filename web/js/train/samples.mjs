// The model's samples, and before them the text that another model writes for it to learn from.

import { make } from "../lib/dom.mjs";
import { thousands } from "./words.mjs";

/** @import { TrainEvent } from "./types.js" */

export class SamplePanel {
  /** @type {{ step: number, text: string }[]} */
  #samples = [];
  #at = -1; // the one that is shown; -1 for the newest

  constructor() {
    this.title = make("h2", {}, "What it writes");
    this.step = make("p", { class: "ht-now" });
    this.text = make("p", { class: "ht-text" });
    this.range = make("input", { type: "range", min: 0, max: 0, step: 1, "aria-label": "Which sample", hidden: true });
    this.range.addEventListener("input", () => {
      const at = Number(this.range.value);
      this.#at = at === this.#samples.length - 1 ? -1 : at;
      this.#show();
    });
    const top = make("div", { class: "hs-top" }, this.title, this.step);
    this.element = make("section", { class: "hs-panel ht-sample", "aria-label": "What it writes" }, top, this.text);
    this.element.append(this.range);
  }

  reset() {
    this.#samples = [];
    this.#at = -1;
    this.text.textContent = "";
    this.step.textContent = "";
    this.title.textContent = "What it writes";
    this.range.hidden = true;
  }

  /** @param {TrainEvent} event */
  receive(event) {
    if (event.kind === "writing") {
      this.title.textContent = "The text that it will learn from";
      this.text.textContent = event.text;
    } else if (event.kind === "start") this.title.textContent = "What it writes";
    else if (event.kind === "sample" || event.kind === "end") {
      this.#samples.push({ step: event.kind === "end" ? event.kept : event.step, text: event.text });
      this.#show();
    }
  }

  #show() {
    const last = this.#samples.length - 1;
    const at = this.#at < 0 ? last : this.#at;
    this.range.max = String(last);
    this.range.value = String(at);
    this.range.style.setProperty("--part", String(at / Math.max(last, 1)));
    this.range.hidden = last < 1;
    const { step, text } = this.#samples[at];
    this.text.textContent = text;
    this.step.textContent = step ? `after step ${thousands(step)}` : "before the first step";
    this.range.setAttribute("aria-valuetext", this.step.textContent);
  }
}
