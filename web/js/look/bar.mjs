// The bar at the top: model, prompt, Write and Stop, settings, and the tabs.

import { make, setFlag } from "../lib/dom.mjs";
import { icon, logo } from "../lib/icons.mjs";
import { Settings } from "./settings.mjs";

/** @import { Control, ModelInfo } from "../types.js" */

/** The tabs, by their name in the body's `data-page`. */
const PAGES = { look: "Write & Look", learn: "Learn", train: "Train", use: "Use" };

/** @typedef {keyof typeof PAGES} PageName */

const PHONE = "(max-width: 767px)";
const MOST_HEIGHT = 140; // CSS pixels of the prompt

export class Bar {
  #typed = false; // whether the visitor typed the prompt

  /**
   * @param {Control[]} controls
   * @param {object} actions
   * @param {() => void} actions.write
   * @param {() => void} actions.stop
   * @param {(name: string) => void} actions.chooseModel
   * @param {(name: PageName) => void} actions.showPage
   * @param {boolean} withTraining whether visitors may train GPTs of their own
   */
  constructor(controls, actions, withTraining) {
    this.settings = new Settings(controls);
    this.models = new ModelPicker(actions.chooseModel);
    this.prompt = make("textarea", {
      rows: 1,
      id: "hs-prompt",
      "aria-label": "Prompt",
      placeholder: "Text for the model to continue",
      title: "Enter: write. Shift+Enter: new line.",
      spellcheck: "false",
      autocomplete: "off",
    });
    this.prompt.addEventListener("input", () => {
      this.#typed = true;
      this.refuse("");
      this.#grow();
    });
    this.prompt.addEventListener("focus", () => this.#grow());
    this.prompt.addEventListener("blur", () => this.#grow());
    matchMedia(PHONE).addEventListener("change", () => this.#grow());
    this.prompt.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.write.hidden) actions.write();
    });
    this.refusal = make("div", { class: "hs-notices hs-refusal", role: "alert" });
    this.write = make("button", { type: "button", id: "hs-write", onclick: actions.write }, "Write");
    this.stop = make("button", { type: "button", id: "hs-stop", onclick: actions.stop, hidden: true }, "Stop");
    this.box = make("div", { class: "hs-prompt-box" }, this.prompt);
    const titles = Object.entries(PAGES).filter(([name]) => name !== "train" || withTraining);
    this.tabs = titles.map(([name, title]) =>
      make(
        "button",
        { type: "button", "data-page": name, onclick: () => actions.showPage(/** @type {PageName} */ (name)) },
        title,
      ),
    );
    const pages = make("nav", { class: "hs-pages", "aria-label": "Pages" }, ...this.tabs);
    const brand = make("h1", { class: "hs-brand" }, logo(), make("span", {}, "Headscope"));
    this.element = make("header", { class: "hs-topbar" }, brand, this.models.element, this.box, this.write, this.stop);
    this.element.append(this.settings.element, pages);
  }

  /** The fields that the server needs to write a text. */
  get fields() {
    return { prompt: this.prompt.value, model: this.models.name, ...this.settings.fields };
  }

  /** Show a prompt, unless the visitor has typed one. @param {string} prompt */
  suggest(prompt) {
    if (this.#typed && this.prompt.value) return;
    this.#typed = false;
    this.prompt.value = prompt;
    this.#grow();
  }

  /** Say why the prompt is refused, until the prompt or the model changes. @param {string} why "" if it is accepted */
  refuse(why) {
    this.refusal.replaceChildren(...(why ? [make("p", {}, why)] : []));
    setFlag(this.prompt, "aria-invalid", why !== "");
  }

  /** @param {boolean} isWriting */
  showWriting(isWriting) {
    const hadFocus = document.activeElement === this.write || document.activeElement === this.stop;
    this.write.hidden = isWriting;
    this.stop.hidden = !isWriting;
    if (hadFocus) (isWriting ? this.stop : this.write).focus();
  }

  /** @param {PageName} name */
  showPage(name) {
    for (const tab of this.tabs) {
      if (tab.dataset.page === name) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  }

  /**
   * On a phone the field is as tall as its text. On wider screens it grows only while it is edited, and covers the
   * panels below.
   */
  #grow() {
    const { prompt } = this;
    const isPhone = matchMedia(PHONE).matches;
    const isTall = isPhone || document.activeElement === prompt;
    prompt.style.height = "";
    prompt.classList.remove("hs-folded");
    prompt.classList.toggle("hs-grown", !isPhone && isTall && prompt.scrollHeight > prompt.clientHeight + 2);
    // Folded, it shows only its first line, without half of the second.
    prompt.classList.toggle("hs-folded", !isTall && prompt.scrollHeight > prompt.clientHeight + 2);
    if (isTall) prompt.style.height = `${Math.min(prompt.scrollHeight + 2, MOST_HEIGHT)}px`;
    this.box.style.height = isPhone ? prompt.style.height : "";
  }
}

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

  /** The server's description of the chosen model. */
  get chosen() {
    return this.#models.find((model) => model.name === this.#name);
  }

  /** @param {ModelInfo[]} models @param {string} name of the chosen one */
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
