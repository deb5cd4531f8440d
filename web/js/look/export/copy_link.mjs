// "Copy link": the address of what is shown.

import { make } from "../../lib/dom.mjs";
import { copying } from "../../widgets/copy.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Store } from "../state/store.mjs" */

/**
 * @param {Store} store
 * @param {() => string} linkNow
 */
export function copyLink(store, linkNow) {
  const button = smallButton("Copy link", () => copy(linkNow(), "Link copied"));
  const { said, copy } = copying(button);
  const show = () => (button.disabled = !(store.tokens.length && store.pointer.sha256));
  store.on("state tokens", show);
  show();
  return make("div", { class: "hs-link" }, button, said);
}
