// Sliders and choices with a label.

import { make, tabs } from "../../lib/dom.mjs";

let made = 0; // sliders, for their ids

/**
 * A slider that shows its value while it moves; with `values` it steps through that list.
 * @param {object} options
 * @param {string} options.label
 * @param {number} [options.min]
 * @param {number} [options.max]
 * @param {number} [options.step]
 * @param {number} options.value
 * @param {number[] | null} [options.values]
 * @param {(value: number) => string} [options.format]
 * @param {(value: number) => void} options.change
 */
export function slider({ label, min = 0, max = 1, step = 1, value, values = null, format = String, change }) {
  const id = `hl-slider-${(made += 1)}`;
  const range = values ? { min: 0, max: values.length - 1, step: 1 } : { min, max, step };
  const input = make("input", { id, type: "range", ...range, value: values ? values.indexOf(value) : value });
  const read = () => (values ? values[Number(input.value)] : Number(input.value));
  const output = make("output", { for: id });
  const showValue = () => {
    output.textContent = format(read());
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    showValue();
    change(read());
  });
  showValue();
  const element = make("div", { class: "hl-slider" }, make("label", { for: id }, label), input, output);
  /**
   * Take another value or range from the server's answer.
   * @param {number} next
   * @param {number | null} [most]
   */
  const update = (next, most = null) => {
    if (most !== null) input.max = String(most);
    input.value = String(values ? values.indexOf(next) : next);
    showValue();
  };
  return { element, input, update };
}

/**
 * A choice of a few options.
 * @template {string} Key
 * @param {object} options
 * @param {string} options.label
 * @param {Record<Key, string>} options.options
 * @param {Key} options.value
 * @param {(key: Key) => void} options.change
 */
export function choice({ label, options, value, change }) {
  const group = tabs(label, options, (key) => {
    group.show(key);
    change(key);
  });
  group.show(value);
  return { element: make("div", { class: "hl-choice" }, make("span", {}, label), group.element), show: group.show };
}
