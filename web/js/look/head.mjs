// The open picture: its three views, the scale of their colours, and the table of its numbers.

import { make } from "./dom.mjs";
import { attentionLegend, weightLegend } from "./legend.mjs";
import { Lines } from "./lines.mjs";
import { Matrix } from "./matrix.mjs";
import { SCALES } from "./scale.mjs";
import { headTable } from "./table.mjs";
import { TextView } from "./text.mjs";
import { MODES } from "./view.mjs";

export function headPanel(store, ...actions) {
  const { view } = store;
  const title = make("h2", {});
  const table = headTable(store);
  const parts = {
    matrix: make("div", {}, new Matrix(store).element),
    text: textPart(store),
    lines: new Lines(store).whole,
  };
  const tabs = Object.entries(MODES).map(([mode, name]) => {
    const button = make("button", { type: "button", class: "hs-small" }, name);
    button.addEventListener("click", () => view.set({ mode }));
    return [mode, button];
  });
  const top = make("div", { class: "hs-top" }, title, ...actions, table.toggle);
  const views = make("div", { class: "hs-tabs", role: "group", "aria-label": "View" }, ...tabs.map(([, button]) => button));
  const region = make("section", { class: "hs-panel hs-open" }, top);
  region.append(make("div", { class: "hs-controls" }, views, ...scaleControls(view)), ...Object.values(parts));
  region.append(weightLegend(view), table.element);

  const show = () => {
    const { mode } = view.options;
    for (const [name, part] of Object.entries(parts)) part.hidden = name !== mode;
    for (const [name, button] of tabs) button.setAttribute("aria-pressed", name === mode);
    title.textContent = store.openName;
    region.setAttribute("aria-label", `Attention weights, ${store.openName}`);
  };
  show();
  // Before the parts draw themselves: what is hidden has no size.
  store.listeners.view.unshift(show);
  store.on("state open", show);
  return region;
}

function textPart(store) {
  const text = new TextView(store, { label: "Text of the open head" });
  return make("div", { class: "hs-head-text" }, text.element, text.spoken, attentionLegend());
}

/** Scale, threshold and the first token, which many heads rest on. */
function scaleControls(view) {
  const choices = Object.entries(SCALES).map(([key, { name }]) => make("option", { value: key }, name));
  const scale = make("select", { "aria-label": "Colour scale" }, ...choices);
  scale.addEventListener("change", () => view.set({ scale: scale.value }));
  const hide = make("input", { type: "checkbox" });
  hide.addEventListener("change", () => view.set({ hideFirst: hide.checked }));
  // By its square root, so that small thresholds can be set.
  const threshold = make("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": "Least weight drawn" });
  threshold.addEventListener("input", () => view.set({ threshold: Number(threshold.value) ** 2 }));
  const least = make("output", {});
  const show = () => {
    const { options } = view;
    scale.value = options.scale;
    hide.checked = options.hideFirst;
    threshold.value = Math.sqrt(options.threshold);
    least.textContent = options.threshold ? options.threshold.toFixed(4) : "all";
  };
  view.on(show);
  show();
  return [
    make("label", {}, "colour ", scale),
    make("label", {}, "weight at least ", threshold, " ", least),
    make("label", {}, hide, " hide the first token"),
  ];
}
