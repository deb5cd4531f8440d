// A button that opens a menu, by pointer and by keyboard, following the ARIA pattern.

import { make } from "../lib/dom.mjs";
import { Popover } from "./popover.mjs";
import { smallButton } from "./controls.mjs";
import { Roving } from "./roving.mjs";

const EDGE = 8; // CSS pixels between the list and the edge of the screen

/**
 * @param {string} words on the button
 * @param {string} label what assistive technology calls it
 * @param {[words: string, action: () => void][]} items
 */
export function menu(words, label, items) {
  const button = smallButton(words, null, { "aria-haspopup": "menu", "aria-label": label });
  const entries = items.map(([name, action]) => {
    const entry = make("button", { type: "button", role: "menuitem" }, name);
    entry.addEventListener("click", () => {
      popover.toggle(false);
      action();
    });
    return entry;
  });
  const list = make("div", { class: "hs-menu-list", role: "menu", "aria-label": label, hidden: true }, ...entries);
  const element = make("div", { class: "hs-menu" }, button, list);

  const popover = new Popover(element, button, (isOpen) => {
    list.hidden = !isOpen;
    if (!isOpen) return;
    list.style.translate = "";
    const { left, right, bottom } = list.getBoundingClientRect();
    const { clientWidth, clientHeight } = document.documentElement;
    const [over, under] = [clientWidth - EDGE - right, EDGE - left];
    const above = bottom > clientHeight - EDGE ? button.getBoundingClientRect().top - EDGE / 2 - bottom : 0;
    list.style.translate = `${Math.min(0, over) + Math.max(0, under)}px ${above}px`; // keep all of the list in view
    entries[0].focus();
  });
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    popover.toggle(true);
  });
  new Roving(list, () => entries).update();
  return { element, button };
}
