// Which tokens of two texts belong together. Where both have the same tokenizer, the tokens at the same place; where
// they have not, the least pieces of text that end where both have a token's end. From where the texts part, each
// follows its own tokens at the same distance.

/** @import { Token } from "../../types.js" */

/**
 * Tokens from `a0` up to `a1` of text A and from `b0` up to `b1` of text B; `same` where they are the same text.
 * @typedef {{ a0: number, a1: number, b0: number, b1: number, same: boolean }} Piece
 */

/**
 * As much of a text as its alignment depends on.
 * @typedef {{ tokens: Pick<Token, "id" | "text">[], n_prompt: number }} Tokens
 */

/** @typedef {"a" | "b"} SideName */

/** @type {Record<SideName, ["a0" | "b0", "a1" | "b1"]>} */
const ENDS = { a: ["a0", "a1"], b: ["b0", "b1"] };

export class Alignment {
  /** @type {Record<SideName, number[]>} the piece of each token */
  #pieceOf = { a: [], b: [] };

  /**
   * @param {Piece[]} pieces in order, of both texts from the first token on
   * @param {number | null} parting the piece at which the texts part; null where one is the beginning of the other
   */
  constructor(pieces, parting) {
    this.pieces = pieces;
    this.parting = parting;
    pieces.forEach(({ a0, a1, b0, b1 }, i) => {
      for (let at = a0; at < a1; at++) this.#pieceOf.a[at] = i;
      for (let at = b0; at < b1; at++) this.#pieceOf.b[at] = i;
    });
    /** Whether each piece is one token of each text. */
    this.isTokenByToken = pieces.every(({ a0, a1, b0, b1 }) => a0 === b0 && a1 - a0 === 1 && b1 - b0 === 1);
  }

  /** The piece of a token; null for one beyond the end of the other text. @param {SideName} side @param {number} at */
  pieceOf(side, at) {
    return this.#pieceOf[side][at] ?? null;
  }

  /** The first token of a piece. @param {SideName} side @param {number} piece */
  first(side, piece) {
    return this.pieces[piece][ENDS[side][0]];
  }

  /** The last token of a piece, whose row has read all of it. @param {SideName} side @param {number} piece */
  last(side, piece) {
    return this.pieces[piece][ENDS[side][1]] - 1;
  }

  /** The token of a side at which the texts part; null where they do not. @param {SideName} side */
  partsAt(side) {
    return this.parting === null ? null : this.first(side, this.parting);
  }

  /**
   * Where one side has the step that the other has at a token; beyond the end of the shorter text at the same distance.
   * @param {SideName} from
   * @param {number} at
   */
  map(from, at) {
    const to = from === "a" ? "b" : "a";
    const piece = this.pieceOf(from, at);
    if (piece !== null) return this.first(to, piece);
    const last = this.pieces[this.pieces.length - 1];
    if (!last) return at;
    return last[ENDS[to][1]] + at - last[ENDS[from][1]];
  }
}

/**
 * @param {Tokens} a
 * @param {Tokens} b
 * @param {boolean} sameTokenizer whether equal ids mean equal tokens
 */
export function align(a, b, sameTokenizer) {
  return sameTokenizer ? alignTokens(a, b) : alignCharacters(a, b);
}

/** @param {Tokens} a @param {Tokens} b */
function alignTokens(a, b) {
  const n = Math.min(a.tokens.length, b.tokens.length);
  const parting = firstDifference(a, b, n);
  // Prompts were given, so that equal tokens in them are no coincidence even after a difference: "Tom and Jim".
  const given = Math.min(a.n_prompt, b.n_prompt);
  const pieces = Array.from({ length: n }, (_, i) => {
    const same = a.tokens[i].id === b.tokens[i].id && (i < parting || i < given);
    return { a0: i, a1: i + 1, b0: i, b1: i + 1, same };
  });
  return new Alignment(pieces, parting < n ? parting : null);
}

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
