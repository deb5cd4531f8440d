// Buttons, sliders and fields.

import { make, setFlag } from "../lib/dom.mjs";

/** @typedef {string | number | Node} Content text, or a ready element */
/** @typedef {((event: any) => unknown) | null} Listener */
/** @typedef {Parameters<typeof make>[1]} Attributes */

/** Buttons of a kind. @param {string} kind their class, to which that of the attributes is added */
const buttonOf =
  (kind) =>
  (
    /** @type {Content | Content[]} */ words,
    /** @type {Listener} */ onclick = null,
    /** @type {Attributes} */ { class: more, ...attributes } = {},
  ) =>
    make(
      "button",
      { type: "button", class: more ? `${kind} ${more}` : kind, onclick, ...attributes },
      ...[words].flat(),
    );

export const smallButton = buttonOf("hs-small");

/** A button of the bar, and one without a border. */
export const pageButton = buttonOf("hs-button");
export const plainButton = buttonOf("hs-button hs-plain-button");

/** The buttons of the stage: the one that counts most, others, and those without a border. */
export const mainAction = buttonOf("hs-main-action");
export const action = buttonOf("hs-action");
export const quietAction = buttonOf("hs-quiet-action");

/** A head, a token or an example to choose. */
export const chipButton = buttonOf("hs-chip");

/**
 * A slider. Where code sets its value or its ends, it does so with `setRange`.
 * @param {Parameters<typeof make>[1]} attributes
 */
export function rangeInput(attributes) {
  const range = make("input", { type: "range", ...attributes });
  range.addEventListener("input", () => setRange(range, range.value));
  setRange(range, range.value);
  return range;
}

/**
 * Set the value of a slider, whose track is filled up to there.
 * @param {Pick<HTMLInputElement, "min" | "max" | "value" | "style">} range
 * @param {number | string} value
 * @param {{ min?: number, max?: number }} [ends] that change
 */
export function setRange(range, value, { min = Number(range.min), max = Number(range.max) } = {}) {
  range.min = String(min);
  range.max = String(max);
  range.value = String(value);
  range.style.setProperty("--part", String((Number(range.value) - min) / (max - min || 1)));
}

/** Fill an element up to a part of its length. @param {HTMLElement} element @param {number} part */
export const setPart = (element, part) => element.style.setProperty("--part", String(part));

/** A bar beside a number. @param {number} part of its length @param {string | null} [css] */
export function bar(part, css = null) {
  const element = make("span", { class: css, "aria-hidden": "true" });
  setPart(element, part);
  return element;
}

/**
 * A button that opens a file, and the hidden field behind it.
 * @param {string} label of the field
 * @param {string} accept
 * @param {(file: File) => unknown} use
 */
export function fileButton(label, accept, use) {
  const field = make("input", { type: "file", class: "hs-hidden", accept, tabindex: -1, "aria-label": label });
  field.addEventListener("change", () => {
    const [file] = field.files ?? [];
    field.value = ""; // the same file can be opened again
    if (file) use(file);
  });
  return { button: smallButton("Open a file", () => field.click()), field };
}

/**
 * A row of buttons, one of which is pressed.
 * @template {string} Key
 * @param {string} label
 * @param {Record<Key, string>} names
 * @param {(key: Key) => void} choose
 */
export function tabs(label, names, choose) {
  const entries = /** @type {[Key, string][]} */ (Object.entries(names));
  const buttons = entries.map(([key, name]) => smallButton(name, () => choose(key)));
  /** @param {string} chosen */
  const show = (chosen) => entries.forEach(([key], i) => setFlag(buttons[i], "aria-pressed", key === chosen));
  return { element: make("div", { class: "hs-tabs", role: "group", "aria-label": label }, ...buttons), show };
}

/**
 * A drop-down list.
 * @param {string} label
 * @param {Record<string, string>} names
 * @param {(key: any) => void} choose
 */
export function dropdown(label, names, choose) {
  const options = Object.entries(names).map(([key, name]) => make("option", { value: key }, name));
  const select = make("select", { "aria-label": label }, ...options);
  select.addEventListener("change", () => choose(select.value));
  return select;
}

/** @param {(checked: boolean) => void} choose */
export function checkbox(choose) {
  const input = make("input", { type: "checkbox" });
  input.addEventListener("change", () => choose(input.checked));
  return input;
}
