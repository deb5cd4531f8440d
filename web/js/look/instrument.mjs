// What details show of a text: the text itself with the next token, the grid of all heads, and the open head.

import { make, setFlag } from "../lib/dom.mjs";
import { effect } from "../lib/reactive.mjs";
import { smallButton } from "../widgets/controls.mjs";
import { headScale, mixTiles } from "./ask/mixer_controls.mjs";
import { compareMenu } from "./compare/compare_menu.mjs";
import { copyLink } from "./export/copy_link.mjs";
import { saveGrid, saveHead, saveStep } from "./export/save_menu.mjs";
import { HeadPanel } from "./panels/head_panel.mjs";
import { headsPanel } from "./panels/heads_panel.mjs";
import { nextTokenPanel } from "./panels/next_token.mjs";
import { textPanel } from "./panels/text_panel.mjs";

/** @import { Sliders } from "../types.js" */
/** @import { Texts } from "./compare/texts.mjs" */
/** @import { Mixer } from "./state/mixer.mjs" */
/** @import { ShownText } from "./state/shown_text.mjs" */

/**
 * @param {ShownText} store
 * @param {Mixer} mixer
 * @param {Sliders} settings
 * @param {Texts | null} texts null in a file
 */
export function instrument(store, mixer, settings, texts) {
  const others = texts && { writing: texts.writing, menu: compareMenu(store, texts) };
  const { element: nextPanel, next } = nextTokenPanel(store, settings, texts?.writing, mixer);
  const writing = make("div", { class: "hs-writing" }, textPanel(store, next, others), nextPanel);
  const heads = headsPanel(
    store,
    (grid) => [saveGrid(store, grid)],
    (rows) => [saveStep(store, rows)],
  );
  mixTiles(mixer, heads);
  const link = () => copyLink(store, () => /** @type {Texts} */ (texts).address.copy());
  const actions = texts ? [askButton(store), saveHead(store), link(), headScale(mixer)] : [saveHead(store)];
  return { writing, heads, head: new HeadPanel(store, actions).element };
}

/** The button in the header of the open head that opens and closes Ask. @param {ShownText} store */
function askButton({ view }) {
  const button = smallButton("Ask", () => view.toggleAsk(), { class: "hs-ask-button", "aria-expanded": "false" });
  button.title = "Questions about this head and this text (press A)";
  effect(() => setFlag(button, "aria-expanded", view.options.ask !== ""));
  return button;
}
