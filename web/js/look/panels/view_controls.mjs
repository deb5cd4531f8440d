// "View": what the tiles show, how the heads are ordered, and how weights become colours. Closed at first.

import { make, setFlag } from "../../lib/dom.mjs";
import { SCALES } from "../../lib/drawing/scale.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { measured } from "../../lib/numbers.mjs";
import { ORDERS } from "../../lib/options.mjs";
import { readStored, writeStored } from "../../widgets/storage.mjs";
import { checkbox, dropdown, rangeInput, setRange, smallButton } from "../../widgets/controls.mjs";
import { effect } from "../../lib/reactive.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { View } from "../state/view.mjs" */
/** @import { Grid } from "./grid.mjs" */

const STORED = "headscope-view"; // storage key: whether the controls are open

/**
 * @param {ShownText} store
 * @param {Grid} grid
 */
export function viewControls(store, grid) {
  const { view } = store;
  const tiles = [...metricControls(store), ...rangeControls(store, grid), summaries(view)];
  const element = make(
    "div",
    { class: "hs-view" },
    make("div", { class: "hs-controls" }, ...tiles),
    make("div", { class: "hs-controls" }, ...colourControls(view)),
  );
  const toggle = smallButton("View");
  toggle.title = "What the tiles show, how they are ordered, and how they are coloured";
  /** @param {boolean} open */
  const show = (open) => {
    element.hidden = !open;
    setFlag(toggle, "aria-expanded", open);
  };
  toggle.addEventListener("click", () => {
    show(Boolean(element.hidden));
    writeStored(STORED, element.hidden ? "" : "open");
  });
  /** @param {KeyboardEvent} event */
  const close = (event) => {
    if (event.key !== "Escape" || element.hidden) return;
    event.stopPropagation();
    toggle.click();
    toggle.focus();
  };
  toggle.addEventListener("keydown", close);
  element.addEventListener("keydown", close);
  show(readStored(STORED) === "open");
  return { element, toggle };
}

/** @param {ShownText} store */
function metricControls({ view }) {
  const names = Object.fromEntries(Object.entries(METRICS).map(([key, { name }]) => [key, name]));
  const metric = dropdown("Metric of the heads", names, (key) => view.set({ metric: key, least: 0, most: 1 }));
  const order = dropdown("Order of the heads", { "": "by layer", ...ORDERS }, (key) => view.set({ sorted: key }));
  const show = () => {
    metric.value = view.options.metric;
    metric.title = METRICS[view.options.metric].help;
    order.value = view.options.sorted;
  };
  effect(show);
  return [make("label", {}, "bars ", metric), make("label", {}, "order ", order)];
}

/**
 * Sliders for both ends of the shown range of values, as fractions of the largest value of any head.
 * @param {ShownText} store
 * @param {Grid} grid
 */
function rangeControls(store, grid) {
  const { view } = store;
  /**
   * @param {"least" | "most"} name
   * @param {string} words
   * @param {string} label
   */
  const end = (name, words, label) => {
    const input = rangeInput({ min: 0, max: 1, step: 0.01, "aria-label": label });
    input.addEventListener("input", () => view.set({ [name]: Number(input.value) }));
    const output = make("output", {});
    const show = () => {
      setRange(input, view.options[name]);
      output.textContent = measured(view.options[name] * grid.most, METRICS[view.options.metric]);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    effect(show);
    return make("label", {}, `${words} `, input, " ", output);
  };
  return [end("least", "from", "Smallest value of the metric"), end("most", "to", "Largest value of the metric")];
}

/** @param {View} view */
function summaries(view) {
  const box = checkbox((checked) => view.set({ summaries: checked }));
  const show = () => (box.checked = view.options.summaries);
  effect(show);
  const label = make("label", {}, box, " means and rollout");
  label.title = "The mean of each layer’s heads, and attention rollout: attention multiplied through the layers";
  return label;
}

/** Scale, threshold and hiding the first token, which gets much of the attention of many heads. @param {View} view */
export function colourControls(view) {
  const names = Object.fromEntries(Object.entries(SCALES).map(([key, { name }]) => [key, name]));
  const scale = dropdown("Colour scale", names, (key) => view.set({ scale: key }));
  const hide = checkbox((checked) => view.set({ hideFirst: checked }));
  // The slider sets the square root, so that small thresholds can be chosen precisely.
  const threshold = rangeInput({ min: 0, max: 1, step: 0.01, "aria-label": "Smallest weight drawn" });
  threshold.addEventListener("input", () => view.set({ threshold: Number(threshold.value) ** 2 }));
  const least = make("output", {});
  const show = () => {
    const { options } = view;
    scale.value = options.scale;
    hide.checked = options.hideFirst;
    setRange(threshold, Math.sqrt(options.threshold));
    least.textContent = options.threshold ? options.threshold.toFixed(4) : "all";
  };
  effect(show);
  return [
    make("label", {}, "colour ", scale),
    make("label", {}, "weight at least ", threshold, " ", least),
    make("label", {}, hide, " hide the first token"),
  ];
}
