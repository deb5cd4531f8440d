// The settings behind the bar's button: how a text is written, and its seed.

import { make } from "../lib/dom.mjs";
import { icon } from "../lib/icons.mjs";
import { Popover } from "../widgets/popover.mjs";
import { pageButton, rangeInput, setRange } from "../widgets/controls.mjs";

/** @import { Control } from "../types.js" */

const MAX_SEED = 2 ** 32 - 1;

export class Settings {
  /** @type {Map<string, Slider>} */
  #sliders = new Map();
  /** @type {(() => void)[]} */
  #listeners = [];
  #contextLength = Infinity; // of the model

  /** @param {Control[]} controls */
  constructor(controls) {
    const changed = () => this.#listeners.forEach((listener) => listener());
    const rows = [];
    for (const control of controls) {
      if (control.least == null) continue;
      const slider = new Slider(/** @type {any} */ (control), changed);
      this.#sliders.set(control.name, slider);
      rows.push(slider.element);
    }
    this.seed = make("input", { type: "number", min: 0, max: MAX_SEED, step: 1, "aria-label": "seed" });
    this.pinned = make("input", { type: "checkbox", "aria-label": "Reuse this seed" });
    this.shift = make("input", { type: "checkbox" });
    this.shift.addEventListener("change", () => this.fit());
    this.seed.addEventListener("input", () => (this.pinned.checked = this.seed.value !== ""));
    const seedHelp = make("small", {}, "Pin the seed to get the same text again; otherwise each text gets a new one.");
    const pin = make("label", {}, this.pinned, " pin");
    const seedRow = make(
      "div",
      { class: "hs-setting hs-seed" },
      make("span", { class: "hs-setting-name" }, "seed"),
      this.seed,
      pin,
      seedHelp,
    );
    const shiftHelp = make(
      "small",
      {},
      "When the context is full, the model re-reads the newer half of it and continues.",
    );
    const shiftRow = make(
      "label",
      { class: "hs-setting hs-check" },
      this.shift,
      " Keep writing past the context window",
      shiftHelp,
    );
    this.panel = make("div", {
      class: "hs-popover",
      role: "dialog",
      "aria-label": "Settings",
      hidden: true,
      id: "hs-settings",
    });
    const done = pageButton("Done", () => popover.toggle(false));
    this.own = make("div", { class: "hs-setting", hidden: true });
    this.panel.append(make("h2", {}, "How the text is written"), this.own, ...rows, seedRow, shiftRow, done);
    const button = make("button", {
      type: "button",
      class: "hs-button hs-icon-button",
      "aria-label": "Settings", // its word is hidden on narrow screens
      "aria-controls": "hs-settings",
    });
    button.append(icon("sliders"), make("span", {}, "Settings"));
    this.element = make("div", { class: "hs-popover-anchor hs-settings-anchor hs-detail" }, button, this.panel);
    const popover = new Popover(this.element, button, (isOpen) => (this.panel.hidden = !isOpen));
  }

  /** @param {() => void} callback whenever a slider moves */
  on(callback) {
    this.#listeners.push(callback);
  }

  /** The settings to send to the server: all sliders, the seed if it is pinned, and whether the context may shift. */
  get fields() {
    const seed = this.pinned.checked && this.seed.value !== "" ? Number(this.seed.value) : null;
    return { ...this.values, seed, context_shift: this.shift.checked };
  }

  /** The sliders alone, by name. */
  get values() {
    return Object.fromEntries([...this.#sliders].map(([name, slider]) => [name, slider.value]));
  }

  /** Show the settings that a text was written with. @param {Record<string, unknown>} settings */
  show(settings) {
    for (const [name, value] of Object.entries(settings)) {
      const slider = this.#sliders.get(name);
      if (slider && typeof value === "number") slider.show(value);
    }
    this.showSeed(settings.seed);
  }

  /** Offer what the chosen model's checkpoint recommends. @param {Record<string, number>} recommended by name */
  offer(recommended) {
    const controls = [...this.#sliders.values()].map((slider) => slider.control);
    const { sentence, usable } = ownSettings(recommended, controls);
    const use = () => {
      this.show(usable);
      this.#listeners.forEach((listener) => listener());
    };
    const button = Object.keys(usable).length ? [pageButton("Use them", use)] : [];
    this.own.replaceChildren(make("small", {}, sentence), ...button);
    this.own.hidden = sentence === "";
  }

  /** Show the seed of a text, without pinning it; a pinned one stays. @param {unknown} seed */
  showSeed(seed) {
    if (typeof seed !== "number" || this.pinned.checked || document.activeElement === this.seed) return;
    this.seed.value = String(seed);
  }

  /** Limit the length of a text to the context, unless the context may shift. @param {number} [contextLength] */
  fit(contextLength = this.#contextLength) {
    this.#contextLength = contextLength;
    this.#sliders.get("max_new_tokens")?.limit(this.shift.checked ? Infinity : Math.max(1, contextLength));
  }
}

/**
 * The settings that a model's checkpoint recommends, in a sentence, and those of them that the sliders can show.
 * @param {Record<string, number>} recommended by name @param {Control[]} controls
 */
export function ownSettings(recommended, controls) {
  /** @type {Record<string, number>} */
  const usable = {};
  const words = Object.entries(recommended).map(([name, value]) => {
    const control = controls.find((each) => each.name === name);
    const label = control?.label?.replace(/ \(.*/, "") ?? name.replaceAll("_", " ");
    const fits = control?.least != null && value >= control.least && value <= (control.most ?? Infinity);
    if (fits) usable[name] = value;
    return `${label} ${value}${fits ? "" : " (which cannot be set here)"}`;
  });
  const sentence = words.length ? `The model’s own settings: ${words.join(", ")}.` : "";
  return { sentence, usable };
}

/** @param {Control} control */
const digits = (control) => (String(control.step).split(".")[1] ?? "").length;

export class Slider {
  #chosen = 0; // what is sent and shown unless a limit is below it

  /**
   * @param {Control & { least: number, most: number, step: number, start: number }} control
   * @param {() => void} onChange
   */
  constructor(control, onChange) {
    this.control = control;
    const { label, least, most, step } = control;
    const limits = { min: least, max: most, step };
    this.range = rangeInput({ ...limits, "aria-label": label });
    this.field = make("input", { type: "number", ...limits, "aria-label": `${label}, as a number` });
    this.range.addEventListener("input", () => this.#choose(this.range.value, onChange));
    this.field.addEventListener("input", () => this.field.value && this.#choose(this.field.value, onChange));
    this.field.addEventListener("blur", () => this.#write());
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
    this.#chosen = value;
    setRange(this.range, value);
    this.#write();
  }

  /** Allow nothing above `limit` for now; without it, what was chosen is back. @param {number} limit */
  limit(limit) {
    const max = Math.min(limit, this.control.most);
    this.field.max = String(max);
    setRange(this.range, this.#chosen, { max });
    this.#write();
  }

  /** @param {string} text @param {() => void} onChange */
  #choose(text, onChange) {
    setRange(this.range, text);
    this.#chosen = this.value;
    if (document.activeElement !== this.field) this.#write();
    onChange();
  }

  #write() {
    this.field.value = this.value.toFixed(digits(this.control));
  }
}
