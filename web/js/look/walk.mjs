// Moving over the tokens by keys, where one of them is spoken of at a time.

import { sentence } from "./words.mjs";

/** Follow a key event: `back` and `on` lead to other tokens, Enter locks, Escape lets go. The query it leads to, else null. */
export function walk(store, event, back, on, spoken) {
  const { focus } = store;
  const by = { [back]: -1, [on]: 1 }[event.key];
  let query = null;
  if (event.key === "Escape") store.lock(null);
  else if (event.key === "Enter" && focus) store.lock({ query: focus.query }, event.shiftKey);
  else if (by && focus) {
    query = Math.min(Math.max(focus.query + by, 0), store.count - 1);
    store.point({ query });
    const { key } = store.focus;
    spoken.textContent = sentence(store.tokens, query, key, store.weights.at(query, key));
  } else return null;
  event.preventDefault();
  return query;
}
