// Which tokens of two texts are the same ones, where the texts differ: at equal places where both are equally long,
// else a longest common subsequence (model/lens/alignment.py aligns texts in the same way).

/** A token of A and one of B, at the same place. @typedef {{ at: number, to: number, same: boolean }} Match */

/** How many tokens of each text are the same, or differ. @typedef {{ same: boolean, a: number, b: number }} Stretch */

const RELATED = 0.5; // of the longer text: where less is shared, the two are not versions of one text
const MOST_CELLS = 4_500_000; // of the table of subsequences: stretches of more than 2,048 tokens are taken to differ

/**
 * The tokens that belong together, in order; null where what is equal is likely to be a coincidence.
 * @param {number[]} a ids of tokens, of which the first differ
 * @param {number[]} b
 * @param {boolean} isGiven whether one of the texts was given, not written by a model
 * @returns {Match[] | null}
 */
export function matchedPieces(a, b, isGiven) {
  const longest = Math.max(a.length, b.length);
  if (a.length === b.length) {
    const matches = a.map((id, i) => ({ at: i, to: i, same: id === b[i] }));
    return isGiven || matches.filter(({ same }) => same).length > RELATED * longest ? matches : null;
  }
  const stretches = commonStretches(a, b);
  const isRelated = stretches.reduce((sum, { same, a: n }) => sum + (same ? n : 0), 0) > RELATED * longest;
  if (!isRelated && !isGiven) return null;
  return pairs(isRelated ? stretches : withoutCoincidences(stretches));
}

/**
 * As stretches that are the same and stretches that differ, in turn.
 * @param {number[]} a
 * @param {number[]} b
 */
export function commonStretches(a, b) {
  let tail = 0;
  while (tail < Math.min(a.length, b.length) && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [n, m] = [a.length - tail, b.length - tail];
  /** @type {Stretch[]} */
  const stretches = [];
  /** @param {boolean} same @param {number} inA @param {number} inB */
  const add = (same, inA, inB) => {
    const last = stretches[stretches.length - 1];
    if (!inA && !inB) return;
    if (last?.same === same) {
      last.a += inA;
      last.b += inB;
    } else stretches.push({ same, a: inA, b: inB });
  };
  if ((n + 1) * (m + 1) > MOST_CELLS) add(false, n, m);
  else {
    const longest = subsequenceLengths(a, b, n, m);
    let [i, j] = [0, 0];
    while (i < n && j < m) {
      const here = i * (m + 1) + j;
      if (a[i] === b[j]) {
        add(true, 1, 1);
        i++;
        j++;
      } else if (longest[here + m + 1] >= longest[here + 1]) {
        add(false, 1, 0);
        i++;
      } else {
        add(false, 0, 1);
        j++;
      }
    }
    add(false, n - i, m - j);
  }
  add(true, tail, tail);
  return stretches;
}

/**
 * How long the longest common subsequences of all pairs of ends are: `(n + 1, m + 1)`, row after row.
 * @param {number[]} a
 * @param {number[]} b
 * @param {number} n
 * @param {number} m
 */
function subsequenceLengths(a, b, n, m) {
  const lengths = new Uint16Array((n + 1) * (m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      const here = i * (m + 1) + j;
      lengths[here] = a[i] === b[j] ? lengths[here + m + 2] + 1 : Math.max(lengths[here + m + 1], lengths[here + 1]);
    }
  }
  return lengths;
}

/**
 * Without what is shorter than the differences on both of its sides: the words that any two texts have in common.
 * @param {Stretch[]} stretches
 */
export function withoutCoincidences(stretches) {
  /** @param {Stretch} [stretch] */
  const size = (stretch) => (stretch ? Math.max(stretch.a, stretch.b) : 0);
  /** @type {Stretch[]} */
  const kept = [];
  for (const stretch of stretches) {
    kept.push({ ...stretch });
    while (kept.length > 2 && !kept[kept.length - 1].same) {
      const [before, common, after] = kept.slice(-3);
      if (common.a >= size(before) || common.a >= size(after)) break;
      const merged = { same: false, a: before.a + common.a + after.a, b: before.b + common.b + after.b };
      kept.splice(-3, 3, merged);
    }
  }
  return kept;
}

/**
 * Token by token: in stretches that differ, only where both have as many, one was put in the other's place.
 * @param {Stretch[]} stretches
 */
function pairs(stretches) {
  /** @type {Match[]} */
  const found = [];
  let [at, to] = [0, 0];
  for (const { same, a, b } of stretches) {
    if (a === b) for (let i = 0; i < a; i++) found.push({ at: at + i, to: to + i, same });
    at += a;
    to += b;
  }
  return found;
}
