// Moving over tokens by keyboard, where one of them is in focus at a time.

import { hasModifier } from "../../lib/keys.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { sentence } from "../../lib/words.mjs";

/** @import { Store } from "../state/store.mjs" */

/**
 * Follow a key event: two keys move to other tokens, Enter locks, Escape unlocks.
 * @param {Store} store
 * @param {KeyboardEvent} event
 * @param {{ back: string, forward: string }} keys
 * @param {HTMLElement} announcement what screen readers announce
 * @returns {number | null} the query it moved to
 */
export function moveByKey(store, event, { back, forward }, announcement) {
  if (hasModifier(event)) return null;
  const { focus } = store;
  const by = event.key === back ? -1 : event.key === forward ? 1 : 0;
  let query = null;
  if (event.key === "Escape") store.lock(null);
  else if (event.key === "Enter" && focus) store.lock({ query: focus.query }, event.shiftKey);
  else if (by && focus) {
    query = clamp(focus.query + by, 0, store.count - 1);
    store.point({ query });
    const key = store.focus?.key ?? 0;
    announcement.textContent = sentence(store.tokens, query, key, store.weights.at(query, key));
  } else return null;
  event.preventDefault();
  return query;
}
