// Which tokens of two texts belong together. Where both have the same tokenizer: equal tokens, at equal places or in
// the same order; where they have not, the least pieces of text that end where both have a token's end.

import { matchedPieces } from "./matching.mjs";

/** @import { Token } from "../../types.js" */

/**
 * Tokens from `a0` up to `a1` of text A and from `b0` up to `b1` of text B; `same` where they are the same text.
 * Between two pieces either text may have tokens without a counterpart.
 * @typedef {{ a0: number, a1: number, b0: number, b1: number, same: boolean }} Piece
 */

/**
 * As much of a text as its alignment depends on.
 * `isGiven` is true of a text that no model wrote.
 * @typedef {{ tokens: Pick<Token, "id" | "text">[], n_prompt: number, isGiven?: boolean }} Tokens
 */

/** @typedef {"a" | "b"} SideName */

/**
 * A step of the clock: where each side is then, the piece that is read (the next one where a side has a token of its
 * own), and the side that alone has a token; null where both have one.
 * @typedef {{ a: number, b: number, piece: number, alone: SideName | null }} Step
 */

/** @type {Record<SideName, ["a0" | "b0", "a1" | "b1"]>} */
const ENDS = { a: ["a0", "a1"], b: ["b0", "b1"] };

export class Alignment {
  /** @type {Record<SideName, number[]>} the piece of each token */
  #pieceOf = { a: [], b: [] };
  /** @type {Step[]} */
  #steps = [];
  /** @type {Record<SideName, number[]>} the step of each token */
  #stepOf = { a: [], b: [] };

  /**
   * @param {Piece[]} pieces in order
   * @param {number | null} parting the first piece after the texts part; null where one is the beginning of the other
   */
  constructor(pieces, parting) {
    this.pieces = pieces;
    this.parting = parting;
    let [a, b] = [0, 0];
    pieces.forEach(({ a0, a1, b0, b1 }, piece) => {
      for (; a < a0; a++) this.#addStep({ a, b, piece, alone: "a" });
      for (; b < b0; b++) this.#addStep({ a, b, piece, alone: "b" });
      this.#addStep({ a, b, piece, alone: null });
      for (; a < a1; a++) this.#put("a", a, piece);
      for (; b < b1; b++) this.#put("b", b, piece);
    });
    /** Whether each piece is one token of each text. */
    this.isTokenByToken = pieces.every(({ a0, a1, b0, b1 }) => a0 === b0 && a1 - a0 === 1 && b1 - b0 === 1);
    /** How many pieces are the same on both sides. */
    this.shared = pieces.filter(({ same }) => same).length;
  }

  /** @param {Step} step */
  #addStep(step) {
    if (step.alone) this.#stepOf[step.alone][step[step.alone]] = this.#steps.length;
    this.#steps.push(step);
  }

  /** Note where a token is. @param {SideName} side @param {number} at @param {number} piece */
  #put(side, at, piece) {
    this.#pieceOf[side][at] = piece;
    this.#stepOf[side][at] = this.#steps.length - 1;
  }

  /** The piece of a token; null for one without a counterpart. @param {SideName} side @param {number} at */
  pieceOf(side, at) {
    return this.#pieceOf[side][at] ?? null;
  }

  /** Whether a token is the same on both sides. @param {SideName} side @param {number} at */
  isShared(side, at) {
    const piece = this.pieceOf(side, at);
    return piece !== null && this.pieces[piece].same;
  }

  /** The first token of a piece. @param {SideName} side @param {number} piece */
  first(side, piece) {
    return this.pieces[piece][ENDS[side][0]];
  }

  /** The last token of a piece, whose row has read all of it. @param {SideName} side @param {number} piece */
  last(side, piece) {
    return this.pieces[piece][ENDS[side][1]] - 1;
  }

  /** Where a piece begins: "7", or "7|9" where that is another token of B. @param {number} piece */
  numberOf(piece) {
    const { a0, b0 } = this.pieces[piece];
    return a0 === b0 ? String(a0) : `${a0}|${b0}`;
  }

  /** Where the pieces of a side end. @param {SideName} side */
  #end(side) {
    return this.pieces.length ? this.last(side, this.pieces.length - 1) + 1 : 0;
  }

  /** The token of a side at which the texts part; null where they do not. @param {SideName} side */
  partsAt(side) {
    if (this.parting === null) return null;
    return this.parting ? this.last(side, this.parting - 1) + 1 : 0;
  }

  /**
   * Where a side differs from the other after they part: the first token of each stretch without a shared one.
   * @param {SideName} side
   * @param {number} length of its text
   */
  changes(side, length) {
    const parts = this.partsAt(side);
    if (parts === null) return [];
    const later = Array.from({ length: Math.max(length - parts, 0) }, (_, i) => parts + i);
    return later.filter((at) => at === parts || (!this.isShared(side, at) && this.isShared(side, at - 1)));
  }

  // The clock: a step for each piece and each token without a counterpart; after the last piece, one for each token.

  /** The step at which a side has a token. @param {SideName} side @param {number} at */
  stepOf(side, at) {
    return this.#stepOf[side][at] ?? this.#steps.length + at - this.#end(side);
  }

  /** The token of a side at a step, which may be beyond its end. @param {SideName} side @param {number} step */
  tokenAt(side, step) {
    return this.#steps[step]?.[side] ?? this.#end(side) + step - this.#steps.length;
  }

  /** Whether a side has no token at a step at which the other has one. @param {SideName} side @param {number} step */
  isGap(side, step) {
    const alone = this.#steps[step]?.alone ?? null;
    return alone !== null && alone !== side;
  }

  /** The piece of a step; the last one after all of them. @param {number} step */
  pieceAt(step) {
    return this.#steps[step]?.piece ?? this.pieces.length - 1;
  }
}

/**
 * @param {Tokens} a
 * @param {Tokens} b
 * @param {boolean} sameTokenizer whether equal ids mean equal tokens
 * @param {boolean} [isGrowing] whether there is more of a text to come
 */
export function align(a, b, sameTokenizer, isGrowing = false) {
  return sameTokenizer ? alignTokens(a, b, isGrowing) : alignCharacters(a, b);
}

/** @param {Tokens} a @param {Tokens} b @param {boolean} isGrowing */
function alignTokens(a, b, isGrowing) {
  const n = Math.min(a.tokens.length, b.tokens.length);
  const parting = firstDifference(a, b, n);
  if (!isGrowing && parting < n) {
    const [left, right] = [a, b].map(({ tokens }) => tokens.slice(parting).map(({ id }) => id));
    // Where one text was given as a whole, an equal token is no coincidence; in two that were written it may be.
    const isGiven = [a, b].some((text) => text.isGiven || text.n_prompt >= text.tokens.length);
    const matched = matchedPieces(left, right, isGiven);
    if (matched) {
      const shifted = matched.map(({ at, to, same }) => pieceOfTokens(parting + at, parting + to, same));
      return new Alignment([...shared(parting), ...shifted], parting);
    }
  }
  // Prompts were given, so that equal tokens in them are no coincidence even after a difference: "Tom and Jim".
  const given = Math.min(a.n_prompt, b.n_prompt);
  const pieces = Array.from({ length: n }, (_, i) =>
    pieceOfTokens(i, i, a.tokens[i].id === b.tokens[i].id && (i < parting || i < given)),
  );
  return new Alignment(pieces, parting < n ? parting : null);
}

/** @param {number} at @param {number} to @param {boolean} same @returns {Piece} of one token of each text */
const pieceOfTokens = (at, to, same) => ({ a0: at, a1: at + 1, b0: to, b1: to + 1, same });

/** What both texts begin with. @param {number} count */
const shared = (count) => Array.from({ length: count }, (_, i) => pieceOfTokens(i, i, true));

/** @param {Tokens} a @param {Tokens} b @param {number} n */
function firstDifference(a, b, n) {
  let i = 0;
  while (i < n && a.tokens[i].id === b.tokens[i].id) i++;
  return i;
}

/** @param {Tokens} a @param {Tokens} b */
function alignCharacters(a, b) {
  /** @type {Piece[]} */
  const pieces = [];
  let [i, j] = [0, 0]; // tokens that belong to pieces
  while (i < a.tokens.length && j < b.tokens.length) {
    const end = pieceEnd(a.tokens, b.tokens, i, j);
    if (!end) break;
    pieces.push({ a0: i, a1: end[0], b0: j, b1: end[1], same: true });
    [i, j] = end;
  }
  const parting = i < a.tokens.length && j < b.tokens.length ? pieces.length : null;
  // Only where the texts differ: a piece that one of them does not have all of yet is left out.
  if (parting !== null && differ(a.tokens, b.tokens, i, j)) {
    for (; i < a.tokens.length && j < b.tokens.length; i++, j++) {
      pieces.push({ a0: i, a1: i + 1, b0: j, b1: j + 1, same: false });
    }
    return new Alignment(pieces, parting);
  }
  return new Alignment(pieces, null);
}

/**
 * Where the piece that begins with two tokens ends; null where the texts differ before, or one of them ends.
 * @param {Tokens["tokens"]} a
 * @param {Tokens["tokens"]} b
 * @param {number} startA
 * @param {number} startB
 * @returns {[number, number] | null}
 */
function pieceEnd(a, b, startA, startB) {
  let [i, j] = [startA + 1, startB + 1];
  let [left, right] = [a[startA].text, b[startB].text];
  for (;;) {
    const n = Math.min(left.length, right.length);
    if (left.slice(0, n) !== right.slice(0, n)) return null;
    if (left.length === right.length) return [i, j];
    if (left.length < right.length) {
      if (i === a.length) return null;
      left += a[i++].text;
    } else {
      if (j === b.length) return null;
      right += b[j++].text;
    }
  }
}

/**
 * Whether the texts from two tokens on differ, rather than one being the beginning of the other.
 * @param {Tokens["tokens"]} a
 * @param {Tokens["tokens"]} b
 * @param {number} i
 * @param {number} j
 */
function differ(a, b, i, j) {
  const [left, right] = [a.slice(i), b.slice(j)].map((tokens) => tokens.map(({ text }) => text).join(""));
  return !left.startsWith(right) && !right.startsWith(left);
}
