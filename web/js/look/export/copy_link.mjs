// "Copy link": the address of what is shown.

import { make } from "../../lib/dom.mjs";
import { copying } from "../../widgets/copy.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { effect } from "../../lib/reactive.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * @param {ShownText} store
 * @param {() => string} linkNow
 */
export function copyLink(store, linkNow) {
  const button = smallButton("Copy link", () => copy(linkNow(), "Link copied"));
  const { said, copy } = copying(button);
  effect(() => void (button.disabled = !(store.length && store.pointer.sha256)));
  return make("div", { class: "hs-link" }, button, said);
}
