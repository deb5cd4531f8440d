// The text, its scrubber, and what colours its tokens.

import { checkbox, make } from "../../lib/dom.mjs";
import { counted } from "../../lib/numbers.mjs";
import { attentionLegend, surpriseLegend } from "../widgets/legend.mjs";
import { Scrubber } from "./scrubber.mjs";
import { textTable } from "./text_table.mjs";
import { TextView } from "./text_view.mjs";

/** @import { Pointer } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

/** @param {Store} store */
export function textPanel(store) {
  const { view } = store;
  const text = new TextView(store, { canSurprise: true });
  const status = make("p", { class: "hs-status", role: "status" });
  store.on("state", () => (status.textContent = describe(store.pointer)));
  const surprise = checkbox((checked) => view.set({ surprise: checked }));
  const legends = { attention: attentionLegend(), surprise: surpriseLegend() };
  const show = () => {
    surprise.checked = view.options.surprise;
    legends.attention.hidden = view.options.surprise;
    legends.surprise.hidden = !view.options.surprise;
  };
  view.on(show);
  show();
  const controls = make("div", { class: "hs-controls" }, make("label", {}, surprise, " colour by surprise"));
  const table = textTable(store);
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Text"), status, table.toggle);
  const scrubber = new Scrubber(store).element;
  const parts = [top, text.element, text.announcement, table.element, scrubber, controls];
  parts.push(legends.attention, legends.surprise);
  return make("section", { class: "hs-panel hs-written", "aria-label": "Text" }, ...parts);
}

/** @param {Readonly<Pointer>} pointer */
function describe({ state, tokens, n_prompt, rate, written: n_written = tokens - n_prompt }) {
  const written = counted(n_written, "token");
  const speed = rate ? `, ${Math.round(rate)} tokens/s` : "";
  const descriptions = {
    none: "",
    linked: `${counted(tokens, "token")}, from a link`,
    opening: `${written}, written at the start`,
    loading: "loading ...",
    waiting: "waiting ...",
    writing: `writing: ${written}${speed}`,
    done: `${written} written${speed}`,
    stopped: `stopped after ${written}${speed}`,
    failed: "failed",
  };
  return descriptions[state];
}
