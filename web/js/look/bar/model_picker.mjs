// The model that writes: a button with its name, and a list that says what each model is.

import { make, setFlag } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";

/** @import { ModelInfo } from "../../types.js" */

export class ModelPicker {
  #name = "";
  /** @type {ModelInfo[]} */
  #models = [];

  /** @param {(name: string) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.label = make("span", {}, "…");
    this.button = make("button", {
      type: "button",
      class: "hs-model-button",
      "aria-haspopup": "listbox",
      "aria-expanded": "false",
      "aria-label": "Model",
    });
    this.button.append(this.label, icon("chevron"));
    this.list = make("ul", { class: "hs-popover hs-models", role: "listbox", "aria-label": "Model", hidden: true });
    this.element = make("div", { class: "hs-popover-anchor" }, this.button, this.list);
    this.button.addEventListener("click", () => this.toggle());
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(/** @type {Node} */ (event.target))) this.toggle(false);
    });
    this.element.addEventListener("keydown", (event) => this.#move(event));
  }

  get name() {
    return this.#name;
  }

  /** What the server says of the chosen model. */
  get chosen() {
    return this.#models.find((model) => model.name === this.#name);
  }

  /** @param {ModelInfo[]} models @param {string} name of the one that is chosen */
  fill(models, name) {
    this.#models = models;
    this.list.replaceChildren(
      ...models.map((model) => {
        const lines = [make("b", {}, model.name), make("span", {}, model.facts), make("small", {}, model.about)];
        const row = make("li", { role: "option", tabindex: -1, "data-name": model.name }, ...lines);
        row.addEventListener("click", () => this.#pick(model.name));
        return row;
      }),
    );
    this.show(name);
  }

  /** @param {string} name */
  show(name) {
    this.#name = name;
    this.label.textContent = name || "No model";
    this.button.title = this.chosen?.facts ?? "";
    for (const row of this.#rows) setFlag(row, "aria-selected", row.dataset.name === name);
  }

  /** @param {boolean} [open] */
  toggle(open = this.list.hidden !== false) {
    if (open === !this.list.hidden) return;
    this.list.hidden = !open;
    setFlag(this.button, "aria-expanded", open);
    if (open) this.#rows.find((row) => row.dataset.name === this.#name)?.focus();
  }

  /** @returns {HTMLElement[]} */
  get #rows() {
    return /** @type {HTMLElement[]} */ ([...this.list.children]);
  }

  /** @param {string} name */
  #pick(name) {
    this.toggle(false);
    this.button.focus();
    if (name === this.#name) return;
    this.show(name);
    this.choose(name);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    if (this.list.hidden) {
      if (event.key !== "ArrowDown") return;
      this.toggle(true);
    } else {
      const rows = this.#rows;
      const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
      if (event.key === "ArrowDown") rows[Math.min(at + 1, rows.length - 1)]?.focus();
      else if (event.key === "ArrowUp") rows[Math.max(at - 1, 0)]?.focus();
      else if (event.key === "Escape") this.toggle(false);
      else if (event.key === "Enter" || event.key === " ") this.#pick(rows[at]?.dataset.name ?? this.#name);
      else return;
      if (this.list.hidden) this.button.focus();
    }
    event.preventDefault();
  }
}
