// The first Tab stops: past the bar to the parts of the workspace.

import { make } from "../../lib/dom.mjs";

/** @type {Record<string, string>} */
const TARGETS = {
  heads: ".hs-grid button[tabindex='0'], .hs-strips",
  "the open head": ".hs-open :is(.hs-board, .hs-text, .hs-lines)",
  "the next token": ".hs-next button[tabindex='0']",
};

/** @param {Element} element */
const isShown = (element) => element.getClientRects().length > 0;

export function skipLinks() {
  const links = Object.entries(TARGETS).map(([name, selector]) => {
    const skip = () => {
      const target = [...document.querySelectorAll(selector)].find(isShown);
      if (target instanceof HTMLElement) target.focus();
    };
    return make("button", { type: "button", class: "hs-small", onclick: skip }, `Skip to ${name}`);
  });
  return make("nav", { class: "hs-skip", "aria-label": "Skip" }, ...links);
}
