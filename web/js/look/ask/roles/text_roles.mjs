// What the heads do in the text that is shown, where that is clear: of all of them from their metrics, of the open one
// from its exact weights.

import { DISTANCES, METRICS, placeOfDistance } from "../../../lib/metrics.mjs";
import { ROLES } from "./head_roles.mjs";
import { clearestPattern, patternsOf } from "./patterns.mjs";

/** @import { Place } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */
/** @import { CountedPattern, Pattern, PatternName } from "./patterns.mjs" */

/** @type {[PatternName, number, number][]} name, how many tokens back, and where a frame has it */
const MEASURED = [
  ["previous_token", 1, METRICS.previous.place],
  ["first_token", 0, METRICS.first.place],
  ...DISTANCES.map((n) => /** @type {[PatternName, number, number]} */ (["back", n, placeOfDistance(n)])),
];

const harmonic = [0]; // sums of 1 / 1 to 1 / n

/** The mean of 1 / (query + 1) over the queries `first` to `end` - 1. @param {number} first @param {number} end */
function evenBetween(first, end) {
  while (harmonic.length <= end) harmonic.push(harmonic[harmonic.length - 1] + 1 / harmonic.length);
  return (harmonic[end] - harmonic[first]) / Math.max(end - first, 1);
}

/**
 * How much a head looks at the token before, at the first one, and a fixed distance back.
 * @param {Pick<Store, "rows" | "metric">} store
 * @param {Place} head
 * @returns {Pattern[]}
 */
export function measuredPatterns(store, head) {
  const { rows } = store;
  return MEASURED.map(([name, back, place]) => {
    const first = Math.min(Math.max(back, 1), rows); // the first query that has this key
    return { name, back, mean: store.metric(head, place), even: evenBetween(first, rows), places: rows - first };
  });
}

/**
 * Whether the weights of the open picture are there for all of the text. The last token of one that fills the context
 * has no row.
 * @param {Store} store
 */
export const isComplete = ({ count, readable, pointer, isGrowing }) =>
  count > 1 && count === Math.min(readable, pointer.rows) && !isGrowing;

/** @type {WeakMap<Store, { of: string, pattern: CountedPattern | null }>} what was counted last */
const counted = new WeakMap();

/**
 * The clearest pattern of the open head, once all of its weights are there; null where none is clear.
 * @param {Store} store
 */
export function openPattern(store) {
  const { pointer, open, count, weights, ids } = store;
  const of = [pointer.run, open, count].join();
  const last = counted.get(store);
  if (last?.of === of) return last.pattern;
  const pattern = clearestPattern(patternsOf(weights, ids, count));
  counted.set(store, { of, pattern });
  return pattern;
}

/**
 * What a head does in this text; null where it follows no clear pattern.
 * @param {Store} store
 * @param {Place} head
 * @returns {Pattern | null}
 */
export function patternOf(store, head) {
  const isOpen = head.join() === store.open.join();
  return isOpen && isComplete(store) ? openPattern(store) : clearestPattern(measuredPatterns(store, head));
}

/** @param {Pattern} pattern */
export const patternName = ({ name, back }) => (name === "back" ? `${back} tokens back` : ROLES[name].name);

/** @param {Pattern} pattern */
export const patternDoes = ({ name, back }) => (name === "back" ? `looks ${back} tokens back` : ROLES[name].does);

/**
 * The distance at which a head looks in this text, where that is what it does; null where it is not.
 * @param {Store} store
 * @param {Place} head
 */
export function fixedDistance(store, head) {
  const pattern = clearestPattern(measuredPatterns(store, head));
  return pattern?.name === "back" ? pattern : null;
}
