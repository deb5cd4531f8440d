// The model's samples, and before them the text that another model writes for it to learn from.

import { make } from "../lib/dom.mjs";
import { StepSlider } from "./step_slider.mjs";

/** @import { TrainEvent } from "./types.js" */

export class SamplePanel {
  #first = ""; // what it wrote at first

  constructor() {
    this.title = make("h2", {}, "What it writes");
    this.text = make("p", { class: "ht-text" });
    this.before = make("p", { class: "ht-before", hidden: true });
    /** @type {StepSlider<{ step: number, text: string }>} */
    this.slider = new StepSlider("Which sample", ({ text }) => (this.text.textContent = text));
    const top = make("div", { class: "hs-top" }, this.title, this.slider.words);
    this.element = make("section", { class: "hs-panel ht-sample", "aria-label": "What it writes" }, top);
    this.element.append(this.before, this.text);
    this.element.append(this.slider.range);
  }

  reset() {
    this.slider.clear();
    this.text.textContent = "";
    this.title.textContent = "What it writes";
    this.before.hidden = true;
    this.#first = "";
  }

  /** @param {TrainEvent} event */
  receive(event) {
    if (event.kind === "writing") {
      this.title.textContent = "The text that it will learn from";
      this.text.textContent = event.text;
    } else if (event.kind === "start") this.title.textContent = "What it writes";
    else if (event.kind === "sample" || event.kind === "end") {
      this.#first ||= event.text;
      this.slider.add({ step: event.kind === "end" ? event.kept : event.step, text: event.text });
    }
    if (event.kind === "end") {
      this.before.replaceChildren(make("b", {}, "Before it learned: "), this.#first);
      this.before.hidden = false;
    }
  }
}
