// Above the grid: which metric the bars show, how the heads are sorted, and which values are shown.

import { dropdown, make } from "../../lib/dom.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { measured } from "../../lib/numbers.mjs";
import { ORDERS } from "../../lib/options.mjs";

/** @import { Store } from "../state/store.mjs" */
/** @import { Grid } from "./grid.mjs" */

/**
 * @param {Store} store
 * @param {Grid} grid
 */
export function gridControls(store, grid) {
  const { view } = store;
  const names = Object.fromEntries(Object.entries(METRICS).map(([key, { name }]) => [key, name]));
  const metric = dropdown("Metric of the heads", names, (key) => view.set({ metric: key, least: 0, most: 1 }));
  const order = dropdown("Order of the heads", { "": "by layer", ...ORDERS }, (key) => view.set({ sorted: key }));

  /**
   * One end of the range of values, as a fraction of the largest value of all heads.
   * @param {"least" | "most"} name
   * @param {string} words
   * @param {string} label
   */
  const end = (name, words, label) => {
    const input = make("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": label });
    input.addEventListener("input", () => view.set({ [name]: Number(input.value) }));
    const output = make("output", {});
    const show = () => {
      input.value = String(view.options[name]);
      output.textContent = measured(view.options[name] * grid.most, METRICS[view.options.metric]);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    return { element: make("label", {}, `${words} `, input, " ", output), show };
  };
  const ends = [
    end("least", "show from", "Least value of the metric"),
    end("most", "to", "Largest value of the metric"),
  ];

  const show = () => {
    metric.value = view.options.metric;
    metric.title = METRICS[view.options.metric].help;
    order.value = view.options.sorted;
    ends.forEach((one) => one.show());
  };
  store.on("view thumbnails", show);
  show();
  const labels = [make("label", {}, "bars ", metric), make("label", {}, "order ", order)];
  const filter = make("details", { class: "hs-filter" }, make("summary", {}, "filter"));
  filter.append(...ends.map(({ element }) => element));
  return make("div", { class: "hs-controls" }, ...labels, filter);
}
