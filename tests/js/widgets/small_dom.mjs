// A small DOM in place of a browser: no layout, and no styles.

import { Window } from "happy-dom";

/** Open a window whose names are global, as a page's are. @param {string} html of its body */
export function openWindow(html) {
  const window = new Window({ url: "http://page.test/" });
  const own = ["Event", "CustomEvent"]; // of Node.js itself, whose events the elements would not take
  const names = Object.getOwnPropertyNames(window).filter((name) => own.includes(name) || !(name in globalThis));
  for (const name of names) globalThis[name] = window[name];
  const section = globalThis.HTMLTableSectionElement.prototype; // which lacks this
  Object.defineProperty(section, "rows", { configurable: true, get: rowsOf });
  window.document.body.innerHTML = html;
  return window;
}

function rowsOf() {
  return [...this.children];
}

/** @param {Element} element @param {string} key */
export const press = (element, key) =>
  element.dispatchEvent(new globalThis.KeyboardEvent("keydown", { key, bubbles: true }));

/** @param {Element} within @param {string} selector */
export const texts = (within, selector) => [...within.querySelectorAll(selector)].map(({ textContent }) => textContent);
