// What a link says about how to look at the text it leads to.

import { readLink } from "../../lib/link.mjs";
import { DEFAULTS } from "../../lib/options.mjs";

/** @import { Pair } from "../compare/pair.mjs" */
/** @import { Store } from "./store.mjs" */

/**
 * Apply the view that a link describes to its text.
 * @param {Store} store
 * @param {string} search the query of the page's address
 * @param {Pair | null} pair the comparison of that text with another, if there is one
 */
export function restoreLinkedView(store, search, pair = null) {
  const { options, open, openSecond, locked, step, unreadable } = readLink(
    search,
    store.pointer,
    pair?.stores.b.pointer,
  );
  if (unreadable.length) {
    store.notify(`The link is damaged: its text is here, but ${unreadable.join(", ")} cannot be read.`);
  }
  store.view.set({ ...DEFAULTS, ...options });
  if (open) store.view.choose(open);
  pair?.heads.chooseB(openSecond);
  store.restore(locked, step);
}
