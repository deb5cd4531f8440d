// "Copy link": to the clipboard; if the browser refuses the clipboard, into a field to copy from.

import { make, smallButton } from "../../lib/dom.mjs";

/** @import { Store } from "../state/store.mjs" */

const CONFIRMATION_TIME = 2500; // milliseconds for which the button confirms the copy

/**
 * @param {Store} store
 * @param {() => string} linkNow
 */
export function copyLink(store, linkNow) {
  const button = smallButton("Copy link");
  const announcement = make("span", { class: "hs-hidden", role: "status" });
  const field = make("input", { type: "text", readonly: true, "aria-label": "Link to this view" });
  const box = make("div", { class: "hs-link-box", hidden: true }, field);
  field.addEventListener("focus", () => field.select());
  const close = () => {
    if (!box.hidden && box.contains(document.activeElement)) button.focus();
    box.hidden = true;
  };
  const element = make("div", { class: "hs-link" }, button, announcement, box);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    event.preventDefault();
    close();
  });
  element.addEventListener("focusout", (event) => {
    if (!element.contains(/** @type {Node | null} */ (event.relatedTarget))) close();
  });

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const confirm = () => {
    announcement.textContent = button.textContent = "Link copied";
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = "Copy link";
      announcement.textContent = "";
    }, CONFIRMATION_TIME);
  };
  button.addEventListener("click", async () => {
    const link = linkNow();
    try {
      await navigator.clipboard.writeText(link);
      confirm();
    } catch {
      // The clipboard is refused, or missing: pages served over plain HTTP have none.
      field.value = link;
      box.hidden = false;
      field.focus();
      field.select();
    }
  });
  const show = () => (button.disabled = !(store.tokens.length && store.pointer.sha256));
  store.on("state tokens", show);
  show();
  return element;
}
