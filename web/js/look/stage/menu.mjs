// One quiet menu for what a visitor needs now and then: writing on, replay, save, link, pace, colours, and all details.

import { make } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { dropdown, smallButton } from "../../widgets/controls.mjs";
import { Popover } from "../../widgets/popover.mjs";
import { chooseDetails } from "../panels/details.mjs";
import { saveHead } from "../export/save_menu.mjs";
import { chosenPace, choosePace, PACES } from "../panels/scrubber.mjs";
import { chooseTheme, chosenTheme, THEMES } from "./theme.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * @param {ShownText} store
 * @param {HTMLElement | null} link copies it; null where there is no address, and nothing can be written
 * @param {Record<string, () => void>} acts by their names; each closes the menu
 */
export function stageMenu(store, link, acts) {
  const pace = dropdown("Pace", { ...PACES, "": "as one reads" }, (key) => choosePace(store.playback, key));
  const theme = dropdown("Colours", THEMES, chooseTheme);
  const details = smallButton("All details", () => chooseDetails(store.view, true));
  details.title = "Every number, legend and tool, for those who want them all";
  const button = make("button", { type: "button", class: "hs-quiet-action", "aria-label": "More" }, icon("more"));
  const actions = Object.entries(acts).map(([name, act]) =>
    smallButton(name, () => {
      popover.toggle(false);
      act();
    }),
  );
  const parts = [
    ...(link ? actions : []),
    saveHead(store, "Save the text or the open head"),
    ...(link ? [link] : []),
    make("label", {}, "Pace", pace),
    ...(link ? [make("label", {}, "Colours", theme)] : []),
    details,
  ];
  const panel = make("div", { class: "hs-popover hs-stage-menu", hidden: true }, ...parts);
  const element = make("div", { class: "hs-popover-anchor" }, button, panel);
  const popover = new Popover(element, button, (isOpen) => {
    panel.hidden = !isOpen;
    if (isOpen) [pace.value, theme.value] = [chosenPace(), chosenTheme()];
  });
  return { element, actions };
}
