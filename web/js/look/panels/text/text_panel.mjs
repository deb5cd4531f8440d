// The text, its scrubber, and what colours its tokens.

import { checkbox, make, setFlag } from "../../../lib/dom.mjs";
import { icon } from "../../../lib/icons.mjs";
import { counted } from "../../../lib/numbers.mjs";
import { attentionLegend, surpriseLegend } from "../../widgets/legend.mjs";
import { stepKeys } from "../../widgets/step_keys.mjs";
import { compareMenu } from "../../compare/compare_menu.mjs";
import { alternatives } from "./alternatives.mjs";
import { describeToken, Scrubber } from "./scrubber.mjs";
import { textTable } from "./text_table.mjs";
import { TextView } from "./text_view.mjs";

/** @import { Pointer } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */
/** @import { CompareActions } from "../../compare/compare_menu.mjs" */
/** @import { NextToken } from "../next_token.mjs" */

/**
 * @param {Store} store
 * @param {NextToken} next
 * @param {CompareActions} actions
 */
export function textPanel(store, next, actions) {
  const { view } = store;
  const text = new TextView(store, { canSurprise: true });
  stepKeys(text);
  const status = make("p", { class: "hs-status", role: "status" });
  store.on("state tokens", () => {
    const words = describe(store.pointer, store.pointer.tokens - store.length);
    if (words !== status.textContent) status.textContent = words;
  });
  const surprise = checkbox((checked) => view.set({ surprise: checked }));
  const legends = { attention: attentionLegend(), surprise: surpriseLegend() };
  const show = () => {
    surprise.checked = view.options.surprise;
    legends.attention.hidden = view.options.surprise;
    legends.surprise.hidden = !view.options.surprise;
  };
  view.on(show);
  show();
  const another = make("button", { type: "button", class: "hs-small", onclick: actions.another }, "Write another");
  another.title = "Write a second text from the same prompt, beside this one";
  const pin = make("button", { type: "button", class: "hs-small", "aria-label": "Pin" }, icon("pin"));
  pin.title = "Keep the selected token highlighted in every view (or shift-click a token)";
  pin.addEventListener("click", () => store.pinSelected());
  store.on("state focus step", () => {
    another.disabled = !store.pointer.settings.prompt;
    pin.disabled = !store.count;
    setFlag(pin, "aria-pressed", store.locked.length > 0);
  });
  surprise.setAttribute("aria-label", "colour by surprise");
  const bySurprise = make("label", { title: "Colour each token by how little it was expected" }, surprise, "surprise");
  const controls = make("div", { class: "hs-controls" }, bySurprise, another, compareMenu(store, actions));
  const table = textTable(store);
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Text"), status, table.toggle);
  const scrubber = new Scrubber(store, (step) => describeToken(store.tokens[step], step), pin).element;
  const box = make("div", { class: "hs-text-box" }, text.element);
  const parts = [top, box, text.announcement, table.element, scrubber, alternatives(store, next), controls];
  parts.push(legends.attention, legends.surprise);
  return make("section", { class: "hs-panel hs-written", "aria-label": "Text" }, ...parts);
}

/**
 * How far a text is.
 * @param {Readonly<Pointer>} pointer
 * @param {number} behind how many of its tokens are still to be shown
 */
function describe({ state, tokens, n_prompt, rate, training, written: n_written = tokens - n_prompt }, behind) {
  const written = counted(n_written, "token");
  const meanwhile = training ? " while a GPT trains" : "";
  const speed = rate ? `, ${Math.round(rate)} tokens/s${meanwhile}` : "";
  if (behind > 0 && ["writing", "done", "stopped"].includes(state)) {
    return `${Math.max(n_written - behind, 0)} of ${n_written} shown${speed}`;
  }
  const descriptions = {
    none: "",
    linked: `${counted(tokens, "token")}, ${history.state?.isOpenedHere ? "opened by Ask" : "opened from the address"}`,
    snapshot: `${counted(tokens, "token")}, this step’s weights`,
    read: `${counted(tokens, "token")}, read again`,
    opening: `${counted(tokens, "token")}, sample text`,
    loading: "loading ...",
    waiting: "waiting ...",
    writing: `writing: ${written}${speed}`,
    done: `${written} written${speed}`,
    stopped: `stopped after ${written}${speed}`,
    failed: "failed",
  };
  return descriptions[state];
}
