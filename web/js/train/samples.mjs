// The model's samples, and before them the text that another model writes for it to learn from.

import { make } from "../lib/dom.mjs";
import { thousands } from "../lib/numbers.mjs";
import { StepSlider } from "./step_slider.mjs";

/** @import { TrainEvent } from "./types.js" */

const WHAT_TO_LOOK_FOR =
  "Which words are in its text, or in a dictionary, and which did it make up? In the sample text, all words but the " +
  "names are English.";

export class SamplePanel {
  #first = ""; // what it wrote at first

  constructor() {
    this.title = make("h2", {}, "What it writes");
    this.text = make("p", { class: "ht-text" });
    this.noise = make("p", { class: "ht-text" });
    this.before = make("div", { hidden: true }, make("h3", {}, "Before it learned"), this.noise);
    this.after = make("h3", { hidden: true });
    /** @type {StepSlider<{ step: number, text: string }>} */
    this.slider = new StepSlider("Which sample", ({ text, step }) => {
      this.text.textContent = text;
      this.after.textContent = step ? `After step ${thousands(step)}` : "Before the first step";
    });
    const top = make("div", { class: "hs-top" }, this.title, this.slider.words);
    this.element = make("section", { class: "hs-panel ht-sample", "aria-label": "What it writes" }, top);
    const now = make("div", {}, this.after, this.text);
    this.look = make("p", { class: "hs-hint", hidden: true }, WHAT_TO_LOOK_FOR);
    const both = make("div", { class: "ht-before-after" }, this.before, now);
    this.element.append(both, this.look, this.slider.range);
  }

  reset() {
    this.slider.clear();
    this.text.textContent = "";
    this.title.textContent = "What it writes";
    this.before.hidden = this.after.hidden = this.look.hidden = true;
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
      this.noise.textContent = this.#first;
      this.before.hidden = this.after.hidden = this.look.hidden = false;
    }
  }
}
