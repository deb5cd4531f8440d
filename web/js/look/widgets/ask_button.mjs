// The ways to open and close Ask: a button in the header of the open head, and two keys.

import { make, setFlag } from "../../lib/dom.mjs";

/** @import { Store } from "../state/store.mjs" */

/** Opens and closes Ask; in the header of the open head. @param {Store} store */
export function askButton(store) {
  const { view } = store;
  const button = make("button", { type: "button", class: "hs-small hs-ask-button", "aria-expanded": "false" }, "Ask");
  button.title = "Questions about this head and this text (key: A)";
  button.addEventListener("click", () => view.set(view.options.ask ? { ask: "", askWith: "" } : { ask: "list" }));
  view.on(() => setFlag(button, "aria-expanded", view.options.ask !== ""));
  return button;
}

/** What Escape closes before it closes Ask. */
const OPEN = ".hs-popover-anchor [aria-expanded=true], .hs-menu [aria-expanded=true], .hs-link-box:not([hidden])";
/** @param {KeyboardEvent} event */
const isTyping = ({ target }) => target instanceof Element && target.closest("input, textarea, select") !== null;

/**
 * "A" opens and closes Ask while the focus is in the workspace and not in a field; Escape closes it from anywhere.
 * @param {Store} store
 * @param {HTMLElement} workspace
 * @param {HTMLElement} panel
 */
export function askKeys({ view }, workspace, panel) {
  // On the window, so that everything else has had its turn.
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || isTyping(event)) return;
    if (!view.options.ask || !workspace.isConnected || document.querySelector(OPEN)) return;
    /** @type {HTMLElement | null} */
    const button = workspace.querySelector(".hs-ask-button");
    if (panel.contains(document.activeElement)) button?.focus();
    view.set({ ask: "", askWith: "" });
  });
  workspace.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "a" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    event.preventDefault();
    view.set(view.options.ask ? { ask: "", askWith: "" } : { ask: "list" });
    // A frame later the panel is there.
    if (view.options.ask) requestAnimationFrame(() => panel.focus({ preventScroll: true }));
  });
}
