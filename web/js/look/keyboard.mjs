// Keyboard navigation: over tokens, through the steps of a text, along a column of buttons, past the bar.

import { hasModifier, make, smallButton } from "../lib/dom.mjs";
import { clamp } from "../lib/numbers.mjs";
import { sentence } from "../lib/words.mjs";

/** @import { Store } from "./state/store.mjs" */
/** @import { TextView } from "./panels/text_view.mjs" */

/**
 * Handle a key event: two keys move to other tokens, Enter locks, Escape unlocks.
 * @param {Store} store
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
    query = clamp(focus.query + by, 0, store.count - 1);
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
export const OPEN_LIST = ".hs-popover-anchor [aria-expanded=true], .hs-menu [aria-expanded=true]";

/** Whether the focused element leaves the arrow keys unused. @param {EventTarget | null} target */
function isFree(target) {
  if (!(target instanceof Element) || document.querySelector(OPEN_LIST)) return false;
  if (target === document.body || target === document.documentElement) return true;
  return target.matches(OPEN_BUTTONS) && !target.closest(OCCUPIED);
}

/**
 * Left, Right, Home and End step through a text while it is on the page, even if the focus is on a nearby button or
 * nowhere.
 * @param {TextView} text
 */
export function stepKeys(text) {
  // On the window, so that all other handlers have already run.
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !isFree(event.target) || !text.element.checkVisibility()) return;
    text.stepByKey(event);
  });
}

export class OneStop {
  /** @type {HTMLButtonElement | null} the one that Tab reaches */
  #current = null;

  /** @param {HTMLElement} column whose buttons these are */
  constructor(column) {
    this.column = column;
    column.addEventListener("keydown", (event) => this.#move(event));
    column.addEventListener("focusin", (event) => {
      this.#current = /** @type {HTMLElement} */ (event.target).closest("button");
      this.update();
    });
  }

  /** Call this when the buttons may have changed. */
  update() {
    const buttons = this.#buttons;
    if (!this.#current || !buttons.includes(this.#current)) this.#current = buttons[0] ?? null;
    for (const button of buttons) button.tabIndex = button === this.#current ? 0 : -1;
  }

  get #buttons() {
    return [...this.column.querySelectorAll("button")].filter((button) => !button.disabled);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const buttons = this.#buttons;
    const at = buttons.findIndex((button) => button === document.activeElement);
    const targets = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: buttons.length - 1 };
    const target = buttons[targets[/** @type {keyof typeof targets} */ (event.key)]];
    if (!target) return;
    target.focus();
    event.preventDefault();
  }
}

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
    return smallButton(`Skip to ${name}`, skip);
  });
  return make("nav", { class: "hs-skip", "aria-label": "Skip" }, ...links);
}
