// Where one head looks in one text, counted from its exact weights.

/** @import { RoleName } from "../ask/roles/head_roles.mjs" */
/** @import { HeadWeights } from "../../lib/triangle.mjs" */

/** @typedef {RoleName | "back"} PatternName */

/**
 * How much of its attention a head puts where a pattern says, on average over the queries that have such keys.
 * @typedef {object} Pattern
 * @property {PatternName} name
 * @property {number} back how many tokens, for the pattern of that name
 * @property {number} mean
 * @property {number} even the same of even attention
 * @property {number} places how many queries there are
 * @property {(query: number) => number[]} keys where it looks from a query; none where it cannot
 */

const MOST_BACK = 6;

/**
 * All patterns of the first `count` rows. A first token is left out as a query: it can only look at itself.
 * @param {Pick<HeadWeights, "at">} weights
 * @param {number[]} ids of the tokens
 * @param {number} count
 * @returns {Pattern[]}
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
  for (let n = 2; n <= MOST_BACK; n++) all.push(["back", n, back(n)]);
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

const CLEAR = 0.3; // mean weight from which a head is said to look there
/** And from which it may be said to do so with a part of its attention. */
export const MUCH = 0.1;
const TIMES = 3; // as much as even attention, at least

/**
 * The pattern that says most about a head: that of its role where the text shows it, else the strongest. null for a
 * head that follows none.
 * @param {Pattern[]} patterns
 * @param {string} role its name on random tokens; "" where there is none
 */
export function tellingPattern(patterns, role) {
  const found = patterns.filter(({ places, mean, even }) => places && mean >= TIMES * even);
  const own = found.find(({ name, mean }) => name === role && mean >= MUCH);
  if (own) return own;
  found.sort((a, b) => b.mean - a.mean);
  return found[0]?.mean >= MUCH ? found[0] : null;
}

/** Whether a head looks there more than anywhere else. @param {Pattern | null} pattern */
export const isClear = (pattern) => pattern !== null && pattern.mean >= CLEAR;

/**
 * The word that a head looks at most, summed over all places at which it was written, with its share of all attention.
 * Where no token is a word, null.
 * @param {Pick<HeadWeights, "at">} weights
 * @param {{ text: string }[]} tokens
 * @param {number} count
 */
export function favouriteWord(weights, tokens, count) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (let key = 0; key < count; key++) {
    const word = tokens[key].text.trim();
    if (!/^\p{L}{2,}$/u.test(word)) continue;
    let sum = 0;
    for (let query = Math.max(key, 1); query < count; query++) sum += weights.at(query, key);
    sums.set(word, (sums.get(word) ?? 0) + sum);
  }
  const [best] = [...sums].sort((a, b) => b[1] - a[1]);
  return best && count > 1 ? { word: best[0], share: best[1] / (count - 1) } : null;
}

/**
 * A place in the middle of the text at which a head shows a pattern best, words if possible; its most attended key
 * without one. null where the text is too short.
 * @param {Pick<HeadWeights, "at" | "strongest">} weights
 * @param {{ text: string }[]} tokens
 * @param {number} count
 * @param {Pattern | null} pattern
 * @param {number} first query
 */
export function clearestPlace(weights, tokens, count, pattern, first) {
  const isWord = (/** @type {number} */ at) => /^\s?[\p{L}]+$/u.test(tokens[at]?.text ?? "");
  let [best, most] = [-1, 0];
  for (let query = Math.max(first, Math.floor(count / 4)); query < Math.floor(0.9 * count); query++) {
    const key = weights.strongest(query, 0);
    if (pattern && !pattern.keys(query).includes(key)) continue;
    const isClearPlace = key < query && [query, key, query + 1].every(isWord);
    const score = weights.at(query, key) + (isClearPlace ? 1 : 0);
    if (score > most) [best, most] = [query, score];
  }
  return best < 0 ? null : best;
}
