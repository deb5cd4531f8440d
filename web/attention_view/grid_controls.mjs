// Above the grid: which metric the bars show, whether the heads are sorted by it, and how much of it one must have.

import { make } from "./dom.mjs";
import { METRICS } from "./view.mjs";
import { measured } from "./words.mjs";

export function gridControls(store, grid) {
  const { view } = store;
  const choices = Object.entries(METRICS).map(([key, { name }]) => make("option", { value: key }, name));
  const metric = make("select", { "aria-label": "Metric of the heads" }, ...choices);
  metric.addEventListener("change", () => view.set({ metric: metric.value, least: 0 }));
  const sorted = make("input", { type: "checkbox" });
  sorted.addEventListener("change", () => view.set({ sorted: sorted.checked }));
  const least = make("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": "Least value of the metric" });
  least.addEventListener("input", () => view.set({ least: Number(least.value) }));
  const value = make("output", {});
  const show = () => {
    const { options } = view;
    metric.value = options.metric;
    metric.title = METRICS[options.metric].say;
    sorted.checked = options.sorted;
    least.value = options.least;
    value.textContent = measured(options.least * (grid.most ?? 0), METRICS[options.metric]);
  };
  store.on("view thumbnails", show);
  show();
  return make(
    "div",
    { class: "hs-controls" },
    make("label", {}, "bars: ", metric),
    make("label", {}, "at least ", least, " ", value),
    make("label", {}, sorted, " sorted"),
  );
}
