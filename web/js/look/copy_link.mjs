// "Copy link": to the clipboard and into the address bar; where the clipboard is refused, in a field to copy it from.

import { make } from "./dom.mjs";
import { makeLink } from "./link.mjs";

const SAID = 2500; // milliseconds for which the button says that it worked

export function copyLink(store) {
  const button = make("button", { type: "button", class: "hs-small" }, "Copy link");
  const spoken = make("span", { class: "hs-hidden", role: "status" });
  const field = make("input", { type: "text", readonly: true, "aria-label": "Link to this view" });
  const box = make("div", { class: "hs-link-box", hidden: true }, field);
  field.addEventListener("focus", () => field.select());
  const close = () => {
    if (!box.hidden && box.contains(document.activeElement)) button.focus();
    box.hidden = true;
  };
  const element = make("div", { class: "hs-link" }, button, spoken, box);
  element.addEventListener("keydown", (event) => event.key === "Escape" && close());
  element.addEventListener("focusout", (event) => element.contains(event.relatedTarget) || close());

  let timer = 0;
  const say = (words) => {
    spoken.textContent = words;
    clearTimeout(timer);
    button.textContent = "Link copied";
    timer = setTimeout(() => {
      button.textContent = "Copy link";
      spoken.textContent = "";
    }, SAID);
  };
  button.addEventListener("click", async () => {
    const link = makeLink(store);
    history.replaceState(history.state, "", link);
    try {
      await navigator.clipboard.writeText(link);
      say("Link copied");
    } catch {
      // Refused, or there is none: pages that came over plain http have no clipboard.
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
