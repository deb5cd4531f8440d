// A setting with a range: a slider, and a field for the number that can be typed into.

import { make } from "../../lib/dom.mjs";

/** @import { Control } from "../../types.js" */

/** @param {Control} control */
const digits = (control) => (String(control.step).split(".")[1] ?? "").length;

export class Slider {
  #most; // whatever the model

  /**
   * @param {Control & { least: number, most: number, step: number, start: number }} control
   * @param {() => void} onChange
   */
  constructor(control, onChange) {
    this.control = control;
    this.#most = control.most;
    const { label, least, most, step } = control;
    const limits = { min: least, max: most, step };
    this.range = make("input", { type: "range", ...limits, "aria-label": label });
    this.field = make("input", { type: "number", ...limits, "aria-label": `${label}, as a number` });
    this.range.addEventListener("input", () => this.#take(this.range.value, onChange));
    this.field.addEventListener("input", () => this.field.value && this.#take(this.field.value, onChange));
    this.field.addEventListener("blur", () => this.show(this.value));
    const name = make("span", { class: "hs-setting-name" }, label ?? control.name);
    const help = make("small", {}, control.help);
    this.element = make("div", { class: "hs-setting" }, name, this.field, this.range, help);
    this.show(control.start);
  }

  get value() {
    return Number(this.range.value);
  }

  /** @param {number} value */
  show(value) {
    this.range.value = String(value);
    this.field.value = this.value.toFixed(digits(this.control));
    this.#fill();
  }

  /** Allow nothing above `limit` for now. @param {number} limit */
  limit(limit) {
    const most = Math.min(limit, this.#most);
    this.control = { ...this.control, most };
    this.range.max = this.field.max = String(most);
    this.show(Math.min(this.value, most));
  }

  /** @param {string} text @param {() => void} onChange */
  #take(text, onChange) {
    this.range.value = text;
    if (document.activeElement !== this.field) this.field.value = this.value.toFixed(digits(this.control));
    this.#fill();
    onChange();
  }

  #fill() {
    const { least, most } = this.control;
    this.range.style.setProperty("--part", String((this.value - least) / (most - least || 1)));
  }
}
