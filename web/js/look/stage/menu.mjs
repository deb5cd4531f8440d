// One quiet menu for what a visitor needs now and then: writing on, replay, save, link, pace, colours, and all details.

import { make } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { dropdown, quietAction, smallButton } from "../../widgets/controls.mjs";
import { Popover } from "../../widgets/popover.mjs";
import { chooseDetails } from "../panels/details.mjs";
import { saveHead } from "../export/save_menu.mjs";
import { chosenPace, choosePace, PACES } from "../panels/scrubber.mjs";
import { chooseTheme, chosenTheme, THEMES } from "./theme.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {{ name: string, act: () => void, class?: string }} Act what a button does once the menu has closed */

/**
 * @template {string} Key
 * @param {ShownText} store
 * @param {HTMLElement | null} link copies it; null where there is no address, and nothing can be written
 * @param {Record<Key, Act>} acts in the order of their buttons
 * @param {HTMLElement} save saves the sentence
 */
export function stageMenu(store, link, acts, save) {
  const pace = dropdown("Pace", { ...PACES, "": "as one reads" }, (key) => choosePace(store.playback, key));
  const theme = dropdown("Colours", THEMES, chooseTheme);
  const details = smallButton("All details", () => {
    popover.toggle(false); // or it would still be open when the visitor comes back
    chooseDetails(store.view, true);
  });
  details.title = "Every number, legend and tool, for those who want them all";
  const more = quietAction(icon("more"), null, { "aria-label": "More" });
  const buttons = /** @type {Record<Key, HTMLButtonElement>} */ ({});
  for (const key of /** @type {Key[]} */ (Object.keys(acts))) {
    const { name, act, class: css } = acts[key];
    const choose = () => {
      popover.toggle(false);
      act();
    };
    buttons[key] = smallButton(name, choose, { class: css });
  }
  const parts = [
    ...(link ? Object.values(buttons) : []),
    save,
    saveHead(store, "Save the open head"),
    ...(link ? [link] : []),
    make("label", {}, "Pace", pace),
    ...(link ? [make("label", {}, "Colours", theme)] : []),
    details,
  ];
  const panel = make("div", { class: "hs-popover hs-stage-menu", hidden: true }, ...parts);
  const element = make("div", { class: "hs-popover-anchor" }, more, panel);
  const popover = new Popover(element, more, (isOpen) => {
    panel.hidden = !isOpen;
    if (isOpen) [pace.value, theme.value] = [chosenPace(), chosenTheme()];
  });
  return { element, buttons };
}
