// Above the grid: which metric the bars show, in which order the heads stand, and how much of it one may have.

import { make } from "./dom.mjs";
import { METRICS, ORDERS } from "./view.mjs";
import { measured } from "./words.mjs";

export function gridControls(store, grid) {
  const { view } = store;
  const choices = Object.entries(METRICS).map(([key, { name }]) => make("option", { value: key }, name));
  const metric = make("select", { "aria-label": "Metric of the heads" }, ...choices);
  metric.addEventListener("change", () => view.set({ metric: metric.value, least: 0, most: 1 }));
  const orders = Object.entries({ "": "by layer", ...ORDERS }).map(([key, name]) => make("option", { value: key }, name));
  const sorted = make("select", { "aria-label": "Order of the heads" }, ...orders);
  sorted.addEventListener("change", () => view.set({ sorted: sorted.value }));
  // Each end of the range of the metric, as a part of the largest value there is.
  const ends = [["least", "show from", "Least value of the metric"], ["most", "to", "Largest value of the metric"]].map(([name, words, label]) => {
    const input = make("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": label });
    input.addEventListener("input", () => view.set({ [name]: Number(input.value) }));
    return { name, input, said: make("output", {}), words };
  });
  const show = () => {
    const { options } = view;
    const kind = METRICS[options.metric];
    metric.value = options.metric;
    metric.title = kind.say;
    sorted.value = options.sorted;
    for (const { name, input, said } of ends) {
      input.value = options[name];
      said.textContent = measured(options[name] * (grid.most ?? 0), kind);
      input.setAttribute("aria-valuetext", said.textContent);
    }
  };
  store.on("view thumbnails", show);
  show();
  return make(
    "div",
    { class: "hs-controls" },
    make("label", {}, "bars ", metric),
    make("label", {}, "order ", sorted),
    ...ends.map(({ input, said, words }) => make("label", {}, `${words} `, input, " ", said)),
  );
}
