// Where one head looks in one text, counted from its exact weights.

import { DISTANCES } from "../../../lib/metrics.mjs";
import { CLEAR } from "./head_roles.mjs";

/** @import { RoleName } from "./head_roles.mjs" */
/** @import { HeadWeights } from "../../../lib/triangle.mjs" */

/** @typedef {RoleName | "back"} PatternName */

/**
 * How much of its attention a head puts where a pattern says, on average over the queries that have such keys.
 * @typedef {object} Pattern
 * @property {PatternName} name
 * @property {number} back how many tokens, for the pattern of that name
 * @property {number} mean
 * @property {number} even the same of attention that is spread evenly
 * @property {number} places how many queries there are
 */

/** @typedef {Pattern & { keys: (query: number) => number[] }} CountedPattern where it looks from a query, if it can */

// Below these a mean says nothing of a head. In a short text, some tokens back is often just the first token.
const LEAST_PLACES = 12;
const LEAST_REPEATS = 4; // for what depends on earlier copies of a token, which are rare
const TIMES = 3; // as much as attention that is spread evenly, at least (CLEAR_TIMES_UNIFORM in head_roles.py)

/**
 * All patterns of the first `count` rows. A first token is left out as a query: it can only look at itself.
 * @param {Pick<HeadWeights, "at">} weights
 * @param {number[]} ids of the tokens
 * @param {number} count
 * @returns {CountedPattern[]}
 */
export function patternsOf(weights, ids, count) {
  /** @type {number[][]} for each token, where it was before */
  const earlier = [];
  /** @type {Map<number, number[]>} */
  const seen = new Map();
  for (let query = 0; query < count; query++) {
    const places = seen.get(ids[query]) ?? [];
    earlier.push([...places]);
    seen.set(ids[query], [...places, query]);
  }
  const back = (/** @type {number} */ n) => (/** @type {number} */ query) => (query >= n ? [query - n] : []);
  /** @type {[PatternName, number, (query: number) => number[]][]} */
  const all = [
    ["previous_token", 1, back(1)],
    ["first_token", 0, () => [0]],
    ["self", 0, (query) => [query]],
    ["duplicate_token", 0, (query) => earlier[query]],
    ["induction", 0, (query) => earlier[query].map((key) => key + 1).filter((key) => key < query)],
  ];
  for (const n of DISTANCES) all.push(["back", n, back(n)]);
  return all.map(([name, n, keys]) => {
    let [sum, even, places] = [0, 0, 0];
    for (let query = 1; query < count; query++) {
      const at = keys(query);
      if (!at.length) continue;
      places++;
      even += at.length / (query + 1);
      for (const key of at) sum += weights.at(query, key);
    }
    return { name, back: n, mean: sum / Math.max(places, 1), even: even / Math.max(places, 1), places, keys };
  });
}

/** Whether it is well above what attention that is spread evenly would give. @param {Pattern} pattern */
export function isAboveChance({ name, mean, even, places }) {
  const least = name === "duplicate_token" || name === "induction" ? LEAST_REPEATS : LEAST_PLACES;
  return places >= least && mean >= TIMES * even;
}

/** Whether a head may be said to look there. @param {Pattern} pattern */
export const isClear = (pattern) => pattern.mean >= CLEAR && isAboveChance(pattern);

/**
 * The strongest of those that are clear; null where none is.
 * @template {Pattern} P
 * @param {P[]} patterns
 * @returns {P | null}
 */
export function clearestPattern(patterns) {
  const clear = patterns.filter(isClear);
  return clear.length ? clear.reduce((best, one) => (one.mean > best.mean ? one : best)) : null;
}

/**
 * The query at which a head puts most weight on one of the keys of a pattern, or on any earlier token where it follows
 * none. null where there is none from `first` on.
 * @param {Pick<HeadWeights, "at">} weights
 * @param {CountedPattern | null} pattern
 * @param {number} first query
 * @param {number} end the query behind the last
 * @returns {{ query: number, key: number } | null}
 */
export function strongestPlace(weights, pattern, first, end) {
  let [place, most] = [/** @type {{ query: number, key: number } | null} */ (null), 0];
  for (let query = Math.max(first, 1); query < end; query++) {
    const keys = pattern ? pattern.keys(query) : Array.from({ length: query }, (_, key) => key);
    for (const key of keys) {
      const weight = weights.at(query, key);
      if (weight > most) [place, most] = [{ query, key }, weight];
    }
  }
  return place;
}
