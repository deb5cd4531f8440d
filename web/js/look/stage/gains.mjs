// How much each head matters for the next word, and how that looks: what it adds to the word's logit (direct logit
// attribution) or, where that is not known, how much of its attention it gives to one earlier word.

/** @import { HeadRole } from "../../lens.js" */

/** @typedef {"copies" | "previous" | "first" | "other"} Kind what a head does, by colour */

/** What each kind does, by the name of a token. @param {"word" | "letter"} unit @returns {Record<Kind, string>} */
export const kindWords = (unit) => ({
  copies: "copies",
  previous: `previous ${unit}`,
  first: `first ${unit}`,
  other: "other",
});

export const MATTERS = 0.1; // of the largest gain, for the word or against it: a head with less is fog
const MIN_PREVIOUS = 0.4; // of the attention of a head whose role is not known
const MIN_FIRST = 0.3;
const [THIN, FOG] = [0.75, 0.16]; // CSS pixels, opacity
const SEEN = 0.02; // of the largest gain: the thread of a head with less is seen only while the head is pointed at

/**
 * What each head adds, as a part of the largest contribution; below 0 for those that work against the word.
 * @param {ArrayLike<number>} values
 * @returns {number[]}
 */
export function gainsOf(values) {
  const all = Array.from(values);
  const most = Math.max(0, ...all.map(Math.abs));
  return all.map((value) => (most ? value / most : 0));
}

/** @param {number} gain */
export const matters = (gain) => Math.abs(gain) >= MATTERS;

/**
 * The weight of each head on the word that it looks at most, instead of what it adds. Resting on the first word, or
 * looking at the word itself, counts as looking nowhere.
 * @param {readonly ArrayLike<number>[]} rows of the weights of each head
 */
export const looksOf = (rows) =>
  rows.map((row) => {
    const key = strongest(row);
    return key === 0 || key === row.length - 1 ? 0 : row[key];
  });

/** The key with the largest weight; the first of equal ones. @param {ArrayLike<number>} row */
export function strongest(row) {
  let best = 0;
  for (let key = 1; key < row.length; key++) if (row[key] > row[best]) best = key;
  return best;
}

/**
 * What a head does at a step: its measured role, which counts where the head does that here, too. One look at the word
 * before is no role; it counts only as long as the role is not known, as at the steps of a training.
 * @param {Pick<HeadRole, "label"> | null} role
 * @param {ArrayLike<number>} row its weights
 * @param {boolean} isCopying whether it copies the next word
 * @returns {Kind}
 */
export function kindOf(role, row, isCopying) {
  if (isCopying) return "copies";
  const key = strongest(row);
  const isPrevious = role ? role.label === "previous token" : row[key] >= MIN_PREVIOUS;
  if (isPrevious && key === row.length - 2) return "previous";
  const isFirst = role ? role.label === "first token" : row[0] >= MIN_FIRST;
  return isFirst && key === 0 ? "first" : "other";
}

/** @param {number} gain @param {number} most CSS pixels of the widest thread */
export const widthOf = (gain, most) => THIN + (most - THIN) * Math.abs(gain) ** 0.8;

/** @param {number} gain @param {boolean} isNamed whether the sentence is about the head */
export function opacityOf(gain, isNamed) {
  const part = Math.abs(gain);
  return isNamed ? 0.6 + 0.35 * part : part >= SEEN ? FOG : 0;
}

/**
 * What a frame says, and the width of a thread.
 * @param {boolean} isAttributed whether what each head adds is known
 * @param {number} n heads that the sentence names, or its button
 * @param {boolean} isOff whether they are off
 */
export function namedWords(isAttributed, n, isOff) {
  if (!n) return "";
  if (isOff) return n === 1 ? "Dashed: the head that is off." : "Dashed: the heads that are off.";
  const heads = n === 1 ? "this head" : `these ${n} heads`;
  return isAttributed ? `Framed: ${heads}.` : `Framed: ${heads}, with the most attention to one word.`;
}
