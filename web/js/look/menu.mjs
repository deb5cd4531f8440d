// A button that opens a menu, by pointer and by keyboard as the ARIA pattern has it.

import { make } from "./dom.mjs";

const MOVES = { ArrowDown: 1, ArrowUp: -1 };

/** `items` are [words, action] pairs; the button says `words`, and `label` to those who do not see where it stands. */
export function menu(words, label, items) {
  const button = make("button", { type: "button", class: "hs-small", "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": label });
  button.append(words);
  const entries = items.map(([name, action]) => {
    const entry = make("button", { type: "button", role: "menuitem", tabindex: -1 }, name);
    entry.addEventListener("click", () => {
      show(false);
      action();
    });
    return entry;
  });
  const list = make("div", { class: "hs-menu-list", role: "menu", "aria-label": label, hidden: true }, ...entries);
  const element = make("div", { class: "hs-menu" }, button, list);

  const show = (open) => {
    if (list.hidden === !open) return;
    list.hidden = !open;
    button.setAttribute("aria-expanded", open);
    if (open) {
      list.style.translate = "";
      const over = document.documentElement.clientWidth - 8 - list.getBoundingClientRect().right;
      const under = 8 - list.getBoundingClientRect().left;
      list.style.translate = `${Math.min(0, over) + Math.max(0, under)}px`; // whole on a narrow screen
      entries[0].focus();
    } else if (element.contains(document.activeElement)) button.focus();
  };
  button.addEventListener("click", () => show(list.hidden));
  element.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    if (event.key === "Escape" && !list.hidden) show(false);
    else if (event.key === "ArrowDown" && at < 0) show(true);
    else if (MOVES[event.key] && at >= 0) entries.at((at + MOVES[event.key]) % entries.length).focus();
    else if (event.key === "Home" && at >= 0) entries[0].focus();
    else if (event.key === "End" && at >= 0) entries.at(-1).focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // a press must not close it before its click
  element.addEventListener("focusout", (event) => element.contains(event.relatedTarget) || show(false));
  return { element, button };
}
