// Copying to the clipboard, and saying whether that worked.

import { make } from "../lib/dom.mjs";

const SAID_FOR = 2500; // milliseconds
export const REFUSED = "The browser does not let this page copy";

/** Copy a text; false if the browser refuses. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages served over plain HTTP have no clipboard, but may copy what is selected.
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const field = make("textarea", { style: "position: fixed; opacity: 0", readonly: true }, text);
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    focused?.focus({ preventScroll: true });
    return isCopied;
  }
}

/**
 * Let a button copy, and say for a moment whether that worked. `said` says it to assistive technology.
 * @param {HTMLElement} button
 */
export function copying(button) {
  const said = make("span", { class: "hs-hidden", role: "status" });
  const words = button.textContent;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @param {string} text @param {string} [done] what is said if it worked */
  const copyAndSay = async (text, done = "Copied") => {
    said.textContent = button.textContent = (await copy(text)) ? done : REFUSED;
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = words;
      said.textContent = "";
    }, SAID_FOR);
  };
  return { said, copy: copyAndSay };
}
