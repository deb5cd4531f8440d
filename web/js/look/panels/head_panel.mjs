// The open picture: its three views, the scale of their colours, and the table of its numbers.

import { checkbox, dropdown, make, tabs } from "../../lib/dom.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { SCALES } from "../../lib/drawing/scale.mjs";
import { MODES } from "../../lib/options.mjs";
import { roleSentence, shortRole } from "../ask/head_roles.mjs";
import { attentionLegend, weightLegend } from "../widgets/legend.mjs";
import { headTable } from "./head_table.mjs";
import { Lines } from "./lines.mjs";
import { TextView } from "./text/text_view.mjs";
import { describePicture } from "./top_heads.mjs";

/** @import { ModeName } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */
/** @import { View } from "../state/view.mjs" */

/**
 * @param {Store} store
 * @param {HTMLElement[]} actions beside the title
 */
export function headPanel(store, actions) {
  const { view } = store;
  store.on("view", () => show()); // before the parts draw themselves: what is hidden has no size
  const title = make("h2", {});
  const table = headTable(store);
  /** @type {Record<ModeName, HTMLElement>} */
  const parts = {
    matrix: make("div", {}, new Matrix(store).element),
    text: textPart(store),
    lines: new Lines(store).element,
  };
  const modes = tabs("View", MODES, (mode) => view.set({ mode }));
  const top = make("div", { class: "hs-top" }, title, ...actions, table.toggle);
  const role = make("p", { class: "hs-role" });
  const measured = make("p", { class: "hs-role hs-role-line" }); // one line that is always there: it comes late
  const describe = () => {
    role.textContent = describePicture(store, store.open);
    measured.textContent = shortRole(store, store.open);
    measured.title = roleSentence(store, store.open);
  };
  store.on("state open thumbnails roles", describe);
  const region = make("section", { class: "hs-panel hs-open" }, top, role, measured);
  region.append(make("div", { class: "hs-controls" }, modes.element, ...scaleControls(view)), ...Object.values(parts));
  region.append(weightLegend(view), table.element);

  const show = () => {
    const { mode } = view.options;
    for (const [name, part] of Object.entries(parts)) part.hidden = name !== mode;
    modes.show(mode);
    title.textContent = store.openName;
    region.setAttribute("aria-label", `Attention weights, ${store.openName}`);
  };
  show();
  store.on("state open", show);
  return region;
}

/** @param {Store} store */
function textPart(store) {
  const text = new TextView(store, { label: "Text of the open head" });
  return make("div", { class: "hs-head-text" }, text.element, text.announcement, attentionLegend());
}

/** Scale, threshold and the first token, on which many heads rest. @param {View} view */
export function scaleControls(view) {
  const names = Object.fromEntries(Object.entries(SCALES).map(([key, { name }]) => [key, name]));
  const scale = dropdown("Colour scale", names, (key) => view.set({ scale: key }));
  const hide = checkbox((checked) => view.set({ hideFirst: checked }));
  // The slider sets the square root, so that small thresholds can be reached.
  const threshold = make("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": "Least weight drawn" });
  threshold.addEventListener("input", () => view.set({ threshold: Number(threshold.value) ** 2 }));
  const least = make("output", {});
  const show = () => {
    const { options } = view;
    scale.value = options.scale;
    hide.checked = options.hideFirst;
    threshold.value = String(Math.sqrt(options.threshold));
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
