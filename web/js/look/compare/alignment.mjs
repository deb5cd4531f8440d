// Which tokens of two texts correspond to each other, as computed by the server.

/**
 * Tokens from `a0` up to `a1` of text A and from `b0` up to `b1` of text B; `same` if they are the same text.
 * Between two pieces either text may have tokens without a counterpart.
 * @typedef {{ a0: number, a1: number, b0: number, b1: number, same: boolean }} Piece
 */

/** @typedef {"a" | "b"} SideName */

/**
 * A step of the clock: the position of each side, the piece being read (the next one if only one side has a token), and
 * the only side with a token, or null if both have one.
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
   * @param {number | null} divergence the first piece after the texts diverge; null if one begins with the other
   */
  constructor(pieces, divergence) {
    this.pieces = pieces;
    this.divergence = divergence;
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

  /** Whether the alignment lies within two texts of these lengths. @param {number} a @param {number} b */
  fits(a, b) {
    return this.end("a") <= a && this.end("b") <= b;
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

  /** Where a piece begins: "7", or "7|9" if B's position differs. @param {number} piece */
  numberOf(piece) {
    const { a0, b0 } = this.pieces[piece];
    return a0 === b0 ? String(a0) : `${a0}|${b0}`;
  }

  /** Where the pieces of a side end. @param {SideName} side */
  end(side) {
    return this.pieces.length ? this.last(side, this.pieces.length - 1) + 1 : 0;
  }

  /** The token of a side at which the texts diverge; null if they do not. @param {SideName} side */
  divergesAt(side) {
    if (this.divergence === null) return null;
    return this.divergence ? this.last(side, this.divergence - 1) + 1 : 0;
  }

  /**
   * Where a side differs from the other after they diverge: the first token of each stretch without shared tokens.
   * @param {SideName} side
   * @param {number} length of its text
   */
  changes(side, length) {
    const first = this.divergesAt(side);
    if (first === null) return [];
    const later = Array.from({ length: Math.max(length - first, 0) }, (_, i) => first + i);
    return later.filter((at) => at === first || (!this.isShared(side, at) && this.isShared(side, at - 1)));
  }

  // The clock: a step for each piece and each token without a counterpart; after the last piece, one for each token.

  /** The step at which a side has a token. @param {SideName} side @param {number} at */
  stepOf(side, at) {
    return this.#stepOf[side][at] ?? this.#steps.length + at - this.end(side);
  }

  /** The token of a side at a step, which may be beyond its end. @param {SideName} side @param {number} step */
  tokenAt(side, step) {
    return this.#steps[step]?.[side] ?? this.end(side) + step - this.#steps.length;
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
