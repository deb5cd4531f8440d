// Which heads the introduction leads through: those that surprise first.

import { METRICS } from "../../lib/metrics.mjs";
import { MUCH } from "./patterns.mjs";
import { CLEAR, clearRole, COPYING, copies, roleOf } from "../ask/roles/head_roles.mjs";

/** @import { Place } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const FOCUSED = 2; // bits of entropy: as if spread over four tokens
const LEAST = 4; // examples, as far as there are heads
const MOST = 6;
const COPYING_HEADS = 2; // of those that copy, the most focused ones
const BY_SURPRISE = ["induction", COPYING.name, "duplicate token", "focused", "first token", "self", "previous token"];

/**
 * The heads to lead through, once a text is there.
 * @param {Store} store
 * @returns {Place[]}
 */
export function examplesOf(store) {
  if (!store.rows) return [];
  const entropy = (/** @type {Place} */ head) => store.metric(head, METRICS.entropy.place);
  const metric = (/** @type {"previous" | "first"} */ name) => (/** @type {Place} */ head) =>
    store.metric(head, METRICS[name].place);
  const heads = store.heads.sort((a, b) => entropy(a) - entropy(b));
  const strongest = (/** @type {(head: Place) => number} */ value) =>
    heads.filter((head) => value(head) >= CLEAR).sort((a, b) => value(b) - value(a));
  /** @type {Record<string, Place[]>} */
  const kinds = {
    focused: heads.filter((head) => entropy(head) < FOCUSED && metric("previous")(head) < CLEAR),
    "first token": strongest(metric("first")),
    "previous token": strongest(metric("previous")),
  };
  for (const head of heads) {
    const label = clearRole(store, head)?.name;
    if (label && !kinds[label]?.some((place) => place.join() === head.join())) (kinds[label] ??= []).push(head);
  }
  kinds[COPYING.name] = heads.filter((head) => copies(roleOf(store, head))).slice(0, COPYING_HEADS);
  /** @type {Map<string, Place>} */
  const found = new Map();
  /** @param {Place[]} places @param {number} most of all */
  const add = (places, most) => {
    for (const place of places) if (found.size < most) found.set(place.join(), place);
  };
  for (const kind of BY_SURPRISE) add(kinds[kind]?.slice(0, COPYING_HEADS) ?? [], MOST);
  add(
    store.pointer.suggested_heads.filter(({ score }) => score >= MUCH).map(({ head }) => head),
    MOST,
  );
  add(heads, LEAST);
  return [...found.values()];
}
