// Where heads look in the current text: the open head by its exact weights, all others by their metrics.

import { isSamePicture } from "../../lib/heads.mjs";
import { DISTANCES, METRICS, indexOfDistance } from "../../lib/metrics.mjs";
import { CLEAR, ROLES } from "./head_roles.mjs";

/** @import { HeadWeights } from "../../lib/triangle.mjs" */
/** @import { PictureId, RoleName } from "../../types.js" */
/** @import { RunData } from "../state/run_data.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {RoleName | "back"} PatternName */

/**
 * The share of its attention that a head gives to the keys of a pattern, averaged over the queries with such keys.
 * @typedef {object} Pattern
 * @property {PatternName} name
 * @property {number} back how many tokens back, for the pattern "back"
 * @property {number} mean
 * @property {number} even the same for uniform attention
 * @property {number} queries how many queries have such keys
 */

/** @typedef {Pattern & { keys: (query: number) => number[] }} CountedPattern `keys` of a query, if it has any */

// With fewer queries, a mean says nothing about a head. In a short text, "n tokens back" is often just the first token.
const MIN_QUERIES = 12;
const MIN_REPEATS = 4; // for patterns that need earlier copies of a token, which are rare
const MIN_TIMES_UNIFORM = 3; // as CLEAR_TIMES_UNIFORM in head_roles.py

/**
 * All patterns of the first `count` rows. The first token is left out as a query, since it can only look at itself.
 * @param {Pick<HeadWeights, "at">} weights
 * @param {number[]} ids of the tokens
 * @param {number} count
 * @returns {CountedPattern[]}
 */
export function patternsOf(weights, ids, count) {
  /** @type {number[][]} for each token, the positions of its earlier copies */
  const earlier = [];
  /** @type {Map<number, number[]>} */
  const seen = new Map();
  for (let query = 0; query < count; query++) {
    const positions = seen.get(ids[query]) ?? [];
    earlier.push([...positions]);
    seen.set(ids[query], [...positions, query]);
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
    let [sum, even, queries] = [0, 0, 0];
    for (let query = 1; query < count; query++) {
      const at = keys(query);
      if (!at.length) continue;
      queries++;
      even += at.length / (query + 1);
      for (const key of at) sum += weights.at(query, key);
    }
    return { name, back: n, mean: sum / Math.max(queries, 1), even: even / Math.max(queries, 1), queries, keys };
  });
}

/** Whether it is well above the value of uniform attention. @param {Pattern} pattern */
export function isAboveChance({ name, mean, even, queries }) {
  const least = name === "duplicate_token" || name === "induction" ? MIN_REPEATS : MIN_QUERIES;
  return queries >= least && mean >= MIN_TIMES_UNIFORM * even;
}

/** Whether no pattern can be told from noise in a text. @param {Pick<ShownText, "rows">} store */
export const isTooShort = ({ rows }) => rows - 1 < MIN_QUERIES;

/** Whether a head may be said to look there. @param {Pattern} pattern */
export const isClear = (pattern) => pattern.mean >= CLEAR && isAboveChance(pattern);

/**
 * The strongest clear pattern; null if none is clear.
 * @template {Pattern} P
 * @param {P[]} patterns
 * @returns {P | null}
 */
export function clearestPattern(patterns) {
  const clear = patterns.filter(isClear);
  return clear.length ? clear.reduce((best, one) => (one.mean > best.mean ? one : best)) : null;
}

/** @type {[PatternName, number, number][]} name, how many tokens back, and index in a frame */
const MEASURED = [
  ["previous_token", 1, METRICS.previous.index],
  ["first_token", 0, METRICS.first.index],
  ...DISTANCES.map((n) => /** @type {[PatternName, number, number]} */ (["back", n, indexOfDistance(n)])),
];

const harmonic = [0]; // sums of 1 / 1 to 1 / n

/** The mean of 1 / (query + 1) over the queries `first` to `end` - 1. @param {number} first @param {number} end */
function evenBetween(first, end) {
  while (harmonic.length <= end) harmonic.push(harmonic[harmonic.length - 1] + 1 / harmonic.length);
  return (harmonic[end] - harmonic[first]) / Math.max(end - first, 1);
}

/**
 * How much a head looks at the token before, at the first one, and a fixed distance back.
 * @param {{ rows: number, data: Pick<RunData, "metric"> }} store
 * @param {PictureId} head
 * @returns {Pattern[]}
 */
export function measuredPatterns(store, head) {
  const { rows, data } = store;
  return MEASURED.map(([name, back, index]) => {
    const first = Math.min(Math.max(back, 1), rows); // the first query that has this key
    return { name, back, mean: data.metric(head, index), even: evenBetween(first, rows), queries: rows - first };
  });
}

/**
 * Whether the weights of the open picture have arrived for the whole text. The last token of a full context has no row.
 * @param {ShownText} store
 */
const isComplete = ({ count, readable, pointer, isGrowing }) =>
  count > 1 && count === Math.min(readable, pointer.rows) && !isGrowing;

/** @type {WeakMap<ShownText, { of: string, patterns: CountedPattern[] }>} the latest result */
const counted = new WeakMap();

/** All patterns of the open head, once all of its weights have arrived. @param {ShownText} store */
function openPatterns(store) {
  const { pointer, open, count, weights, ids } = store;
  const of = [pointer.run, open, count].join();
  const last = counted.get(store);
  if (last?.of === of) return last.patterns;
  const patterns = patternsOf(weights, ids, count);
  counted.set(store, { of, patterns });
  return patterns;
}

/** The clearest pattern of the open head; null if none is clear. @param {ShownText} store */
const openPattern = (store) => clearestPattern(openPatterns(store));

/**
 * The share of its attention that a head gives, in this text, to the keys of a role; null if that is not known, or if
 * no query has such keys.
 * @param {ShownText} store
 * @param {PictureId} head
 * @param {RoleName} role
 */
export function shareInText(store, head, role) {
  const isOpen = isSamePicture(head, store.open) && isComplete(store);
  const patterns = isOpen ? openPatterns(store) : measuredPatterns(store, head);
  const pattern = patterns.find(({ name }) => name === role);
  return pattern?.queries ? pattern.mean : null;
}

/**
 * What a head does in this text; null if it follows no clear pattern.
 * @param {ShownText} store
 * @param {PictureId} head
 * @returns {Pattern | null}
 */
export function patternOf(store, head) {
  const isOpen = isSamePicture(head, store.open);
  return isOpen && isComplete(store) ? openPattern(store) : clearestPattern(measuredPatterns(store, head));
}

/** @param {Pattern} pattern */
export const patternName = ({ name, back }) => (name === "back" ? `${back} tokens back` : ROLES[name].name);

/** @param {Pattern} pattern */
export const patternDoes = ({ name, back }) => (name === "back" ? `looks ${back} tokens back` : ROLES[name].does);

/**
 * The fixed distance at which a head looks in this text; null if it follows another pattern, or none.
 * @param {ShownText} store
 * @param {PictureId} head
 */
export function fixedDistance(store, head) {
  const pattern = clearestPattern(measuredPatterns(store, head));
  return pattern?.name === "back" ? pattern : null;
}
