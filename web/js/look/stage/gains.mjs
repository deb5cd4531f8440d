// How much each head matters for the next word, and how that looks: what it adds to the word's logit (direct logit
// attribution) or, where that is not known, how much of its attention it gives to one earlier word.

/** @import { HeadRole } from "../../lens.js" */

/** @typedef {"copies" | "previous" | "first" | "other"} Kind what a head does, by colour */

/** @type {Record<Kind, string>} */
export const KINDS = { copies: "copies", previous: "previous word", first: "first word", other: "other" };

export const MATTERS = 0.1; // of the largest gain: a head with less is fog
const MIN_PREVIOUS = 0.4; // of its attention: a head without a role that gives the word before this much looks there
const MIN_FIRST = 0.3;
const [THIN, FOG] = [0.75, 0.16]; // CSS pixels, opacity
const SEEN = 0.02; // of the largest gain: the thread of a head with less is seen only while the head is pointed at

/**
 * What each head adds, as a part of the largest contribution; those that count against the word have 0.
 * @param {ArrayLike<number>} values
 * @returns {number[]}
 */
export function gainsOf(values) {
  const all = Array.from(values);
  const most = Math.max(0, ...all);
  return all.map((value) => (most ? Math.max(0, value / most) : 0));
}

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
 * What a head does: by its measured role, else by where it looks here.
 * @param {Pick<HeadRole, "label" | "scores"> | null} role
 * @param {ArrayLike<number>} row its weights
 * @param {number} clearCopying the least score of a head that copies
 * @returns {Kind}
 */
export function kindOf(role, row, clearCopying) {
  if (role && (role.label === "induction" || role.scores.copying >= clearCopying)) return "copies";
  const key = strongest(row);
  const last = row.length - 1;
  if (role?.label === "previous token" || (last > 0 && key === last - 1 && row[key] >= MIN_PREVIOUS)) return "previous";
  return role?.label === "first token" || (key === 0 && row[0] >= MIN_FIRST) ? "first" : "other";
}

/** @param {number} gain @param {number} most CSS pixels of the widest thread */
export const widthOf = (gain, most) => THIN + (most - THIN) * gain ** 0.8;

/** @param {number} gain */
export const opacityOf = (gain) => (gain >= MATTERS ? 0.35 + 0.6 * gain : gain >= SEEN ? FOG : 0);

/**
 * What the widths and the ink say.
 * @param {boolean} isAttributed whether what each head adds is known
 * @param {string} word the next one, as it is said
 */
export const gainWords = (isAttributed, word) =>
  isAttributed ? `Strong ink: adds most to ${word}.` : "Strong ink: the most attention to one word.";
