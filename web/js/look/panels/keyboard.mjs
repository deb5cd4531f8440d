// Keyboard navigation: over tokens, through the steps of a text, past the bar.

import { hasModifier, make } from "../../lib/dom.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { firstQuery } from "../../lib/triangle.mjs";
import { sentence } from "../../lib/words.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { hasOpenList } from "../../widgets/popover.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * Handle a key event: two keys move to other tokens, Enter locks, Escape unlocks.
 * @param {ShownText} store
 * @param {KeyboardEvent} event
 * @param {{ back: string, forward: string }} keys
 * @param {HTMLElement} announcement what screen readers announce
 * @returns {number | null} the query it moved to
 */
export function moveByKey(store, event, { back, forward }, announcement) {
  if (hasModifier(event)) return null;
  const { focus } = store.selection;
  const by = event.key === back ? -1 : event.key === forward ? 1 : 0;
  let query = null;
  if (event.key === "Escape") store.selection.lock(null);
  else if (event.key === "Enter" && focus) store.selection.lock({ query: focus.query }, event.shiftKey);
  else if (by && focus) {
    query = clamp(focus.query + by, firstQuery(), store.count - 1);
    store.selection.point({ query });
    const key = store.selection.focus?.key ?? 0;
    announcement.textContent = sentence(store.tokens, query, key, store.weights.at(query, key));
  } else return null;
  event.preventDefault();
  return query;
}

// Buttons from which the keys reach the text: in the bar and the text's own panel.
const OPEN_BUTTONS = ":is(.hs-topbar, .hs-written, .hs-pair-text) button";
// Inside these, the list or the field handles the keys; while a button's list is open, that list does.
const OCCUPIED = "[role=dialog], [role=listbox], [role=menu], .hs-tabs, table, [aria-expanded=true]";

/** Whether the focused element leaves the arrow keys unused. @param {EventTarget | null} target */
function isFree(target) {
  if (!(target instanceof Element) || hasOpenList()) return false;
  if (target === document.body || target === document.documentElement) return true;
  return target.matches(OPEN_BUTTONS) && !target.closest(OCCUPIED);
}

/**
 * Left, Right, Home and End step through a text while it is on the page, even if the focus is on a nearby button or
 * nowhere.
 * @param {{ element: HTMLElement, stepByKey: (event: KeyboardEvent) => boolean }} text
 */
export function stepKeys(text) {
  // On the window, so that all other handlers have already run.
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !isFree(event.target) || !text.element.checkVisibility()) return;
    text.stepByKey(event);
  });
}

/** @type {Record<string, string>} */
const TARGETS = {
  heads: ".hs-head-tile[tabindex='0'], .hs-grid button[tabindex='0'], .hs-strips",
  "the open head": ".hs-card button, .hs-open :is(.hs-board, .hs-text, .hs-lines)",
  "the next token": ".hs-ghost button, .hs-next button[tabindex='0']",
};

/** @param {Element} element */
const isShown = (element) => element.getClientRects().length > 0;

export function skipLinks() {
  const links = Object.entries(TARGETS).map(([name, selector]) => {
    const skip = () => {
      const target = [...document.querySelectorAll(selector)].find(isShown);
      if (target instanceof HTMLElement) target.focus();
    };
    return smallButton(`Skip to ${name}`, skip);
  });
  return make("nav", { class: "hs-skip", "aria-label": "Skip" }, ...links);
}
