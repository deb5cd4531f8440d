// The heads that the introduction shows: heads with a clear pattern in the current text.

import { METRICS } from "../../lib/metrics.mjs";
import { copies, roleOf } from "../roles/head_roles.mjs";
import { patternName, patternOf } from "../roles/text_patterns.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const MOST_ALIKE = 2; // heads shown for the same pattern

/**
 * The heads to show, the clearest first, then those that copy. If no head does anything clearly, the most focused one;
 * none before there is a text.
 * @param {Store} store
 * @returns {PictureId[]}
 */
export function examplesOf(store) {
  if (!store.rows) return [];
  const clear = store.heads.flatMap((head) => {
    const pattern = patternOf(store, head);
    return pattern ? [{ head, name: patternName(pattern), mean: pattern.mean }] : [];
  });
  clear.sort((a, b) => b.mean - a.mean);
  const isFew = (/** @type {string} */ name, /** @type {number} */ at) =>
    clear.slice(0, at).filter((other) => other.name === name).length < MOST_ALIKE;
  const found = clear.filter(({ name }, at) => isFew(name, at)).map(({ head }) => head);
  const entropy = (/** @type {PictureId} */ head) => store.metric(head, METRICS.entropy.index);
  const others = store.heads
    .filter((head) => !clear.some((one) => one.head.join() === head.join()))
    .sort((a, b) => entropy(a) - entropy(b));
  found.push(...others.filter((head) => copies(roleOf(store, head))).slice(0, MOST_ALIKE));
  return found.length ? found : others.slice(0, 1);
}
