// The keys that step through the text, from wherever no other part of the page needs them.

/** @import { TextView } from "../panels/text/text_view.mjs" */

// Buttons from which the keys reach the text: those of the bar, of the introduction and of the text's own panel.
const OPEN_BUTTONS = ":is(.hs-topbar, .hs-intro, .hs-written, .hs-pair-text) button";
// Inside these, keys belong to the list or the field; while a button's list is open, to the list.
const OCCUPIED = "[role=dialog], [role=listbox], [role=menu], .hs-tabs, table, [aria-expanded=true]";
const OPEN_LIST = ".hs-popover-anchor [aria-expanded=true], .hs-menu [aria-expanded=true]";

/** Whether no other part of the page uses the arrow keys where the focus is. @param {EventTarget | null} target */
function isFree(target) {
  if (!(target instanceof Element) || document.querySelector(OPEN_LIST)) return false;
  if (target === document.body || target === document.documentElement) return true;
  return target.matches(OPEN_BUTTONS) && !target.closest(OCCUPIED);
}

/**
 * Left, right, Home and End step through a text while it is on the page, also where the focus is on a button beside it
 * or nowhere.
 * @param {TextView} text
 */
export function stepKeys(text) {
  // On the window, so that everything else has had its turn.
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !isFree(event.target) || !text.element.checkVisibility()) return;
    text.stepByKey(event);
  });
}
