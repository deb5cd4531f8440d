// Who reads the text of side B, where it is the same text as A's: another model, or the weights of a training step.

import { dropdown, make } from "../../../lib/dom.mjs";
import { isGiven } from "../../state/pointer.mjs";
import { baseName } from "../models.mjs";

/** @import { ModelInfo, Reading } from "../../../types.js" */
/** @import { Pair } from "../pair.mjs" */

/** The training step of a snapshot's name; null for a model itself. @param {string} model */
const stepOf = (model) => (/@\d+$/.test(model) ? Number(model.split("@").at(-1)) : null);

export class SecondReader {
  /** @type {ModelInfo[]} */
  #models = [];

  /**
   * @param {Pair} pair
   * @param {(reading: Reading) => void} read
   */
  constructor(pair, read) {
    this.pair = pair;
    this.read = read;
    this.model = dropdown("Model that reads text B", {}, (name) => this.ask(name));
    this.range = make("input", { type: "range", min: 0, step: 1, "aria-label": "Training step of B" });
    this.range.addEventListener("input", () => this.describe());
    this.range.addEventListener("change", () => this.askStep());
    this.step = make("output", {});
    this.training = make("label", { class: "hs-pair-step-slider" }, "training step ", this.range, this.step);
    this.element = make("div", { class: "hs-controls", hidden: true });
    this.element.append(make("label", {}, "read by ", this.model), this.training);
    pair.on("state", () => this.show());
  }

  /** @param {ModelInfo[]} models that are served */
  fill(models) {
    this.#models = models;
    this.model.replaceChildren(...models.map(({ name }) => make("option", { value: name }, name)));
    this.show();
  }

  /** The steps that can be chosen for B's model: those kept, and after them the model itself. */
  get steps() {
    const base = baseName(this.pair.stores.b.pointer.model);
    return this.#models.find(({ name }) => name === base)?.steps ?? [];
  }

  show() {
    const { pointer } = this.pair.stores.b;
    const { steps } = this;
    const isSameText = isGiven(pointer.state) && this.pair.alignment.parting === null;
    this.element.hidden = !isSameText || !pointer.run || this.pair.isGrowing;
    if (this.element.hidden) return;
    this.model.value = baseName(pointer.model);
    this.training.hidden = !steps.length;
    if (!steps.length) return;
    this.range.max = String(steps.length);
    const step = stepOf(pointer.model);
    if (document.activeElement !== this.range || Number(this.range.value) !== steps.length) {
      this.range.value = String(step === null ? steps.length : steps.indexOf(step));
    }
    this.describe();
  }

  describe() {
    const at = Number(this.range.value);
    const text = at >= this.steps.length ? "final weights" : String(this.steps[at]);
    this.step.textContent = text;
    this.range.setAttribute("aria-valuetext", text);
    this.range.style.setProperty("--part", String(at / Math.max(this.steps.length, 1)));
  }

  askStep() {
    const at = Number(this.range.value);
    const base = baseName(this.pair.stores.b.pointer.model);
    this.ask(at >= this.steps.length ? base : `${base}@${this.steps[at]}`);
  }

  /** @param {string} model */
  ask(model) {
    const { n_layer, n_head, head_mask } = this.pair.stores.b.pointer;
    const isSame = baseName(model) === baseName(this.pair.stores.b.pointer.model) && n_layer && n_head;
    this.read({ model, head_mask: isSame ? head_mask : null });
  }
}
