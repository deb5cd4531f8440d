// The open head of each side, and their difference between them: of one size, with their cells in the same places.

import { make } from "../../../lib/dom.mjs";
import { labelMargin, layout } from "../../../lib/drawing/axes.mjs";
import { paintDifference } from "../../../lib/drawing/images.mjs";
import { Matrix } from "../../../lib/drawing/matrix.mjs";
import { palette } from "../../../lib/drawing/palette.mjs";
import { exact, full, signed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { otherSide } from "../pair.mjs";

/** @import { Layout } from "../../../lib/drawing/axes.mjs" */
/** @import { Cell, MatrixSource, Token } from "../../../types.js" */
/** @import { SideName } from "../alignment.mjs" */
/** @import { Pair } from "../pair.mjs" */

export const LEAST_LIMIT = 0.001; // the smallest difference at the end of the colours: below, noise would be drawn

/**
 * Where the cells of both sides lie: token by token in the same places, else each side's own in a square of one size.
 * @param {Pair} pair
 * @param {CanvasRenderingContext2D} context
 * @param {Token[]} tokens of the picture
 * @param {number} n
 * @param {number} width
 * @returns {Layout}
 */
function pairLayout(pair, context, tokens, n, width) {
  const { a, b } = pair.stores;
  const own = pair.alignment.isTokenByToken ? Math.max(a.count, b.count, n) : n;
  const longest = a.count >= b.count ? a.tokens : b.tokens;
  const { texts } = layout(context, longest, Math.max(a.count, b.count, 1), width);
  const labelled = [a.tokens.slice(0, a.count), b.tokens.slice(0, b.count), pieceTokens(pair)];
  const margins = labelled.map((each) => (each.length ? labelMargin(context, each, each.length) : 0));
  const margin = texts ? Math.max(...margins) : layout(context, tokens, 10_000, width).margin;
  const cell = (width - margin) / own;
  return { margin, cell, texts: texts && cell >= 11 };
}

export class SideMatrix extends Matrix {
  /** @param {Pair} pair @param {SideName} side */
  constructor(pair, side) {
    super(pair.stores[side]);
    this.compared = pair;
    pair.stores[otherSide(side)].on("weights tokens", () => this.draw()); // its labels may need more room
  }

  /** @param {CanvasRenderingContext2D} context @param {number} n @param {number} width */
  place(context, n, width) {
    return pairLayout(this.compared, context, this.store.tokens, n, width);
  }
}

/**
 * The pieces as the tokens of the difference: "Lily|Mia" where the texts differ.
 * @param {Pair} pair
 * @returns {Token[]}
 */
function pieceTokens({ alignment, stores: { a, b } }) {
  return alignment.pieces.map(({ a0, a1, b0, b1, same }) => {
    const [text, second] = [a.tokens.slice(a0, a1), b.tokens.slice(b0, b1)].map((tokens) =>
      tokens.map((token) => token.text).join(""),
    );
    const other = same || text === second ? "" : `|${second}`;
    return { id: -1, text: text + other, logprob: null };
  });
}

/** @param {Pair} pair @returns {MatrixSource} the difference as the source of a matrix, whose tokens are pieces */
function differenceSource(pair) {
  const { a, b } = pair.stores;
  /** @param {Cell} cell of A @returns {{ query: number, key: number | null } | null} */
  const toPiece = ({ query, key = null }) => {
    const row = pair.alignment.pieceOf("a", query);
    const column = key === null ? null : pair.alignment.pieceOf("a", key);
    return row === null ? null : { query: row, key: column };
  };
  return {
    view: pair.view,
    get tokens() {
      return pieceTokens(pair);
    },
    get weights() {
      return pair.difference.values;
    },
    get count() {
      return pair.difference.rows;
    },
    get openName() {
      return `the difference, B less A, ${b.openName} and ${a.openName}`;
    },
    get step() {
      return pair.chosen === null ? null : pair.alignment.pieceAt(pair.chosen);
    },
    get focus() {
      if (!pair.isPointed && !pair.isOneRow) return null; // there is no such row
      const cell = a.focus && toPiece({ ...a.focus });
      if (!cell || cell.query >= pair.difference.rows) return null;
      return { query: cell.query, key: cell.key };
    },
    get queries() {
      const rows = a.queries.flatMap((query) => pair.alignment.pieceOf("a", query) ?? []);
      return rows.filter((row) => row < pair.difference.rows);
    },
    get locked() {
      return a.locked.flatMap((cell) => toPiece(cell) ?? []);
    },
    point: (cell) => pair.point(cell && { row: cell.query, key: cell.key ?? null }),
    lock: (cell, more = false) => pair.lock(cell && { row: cell.query, key: cell.key ?? null }, more),
    on: (topics, callback) => pair.on(topics, callback),
  };
}

export class DifferenceMatrix extends Matrix {
  /** @param {Pair} pair */
  constructor(pair) {
    super(differenceSource(pair));
    this.compared = pair;
    this.element.classList.add("hs-difference");
  }

  /** @param {CanvasRenderingContext2D} context @param {number} n @param {number} width */
  place(context, n, width) {
    return pairLayout(this.compared, context, this.store.tokens, n, width);
  }

  /** The difference at the ends of the colours. */
  get limit() {
    return Math.max(this.compared.difference.largest, LEAST_LIMIT);
  }

  /** @param {number} n @param {number} size */
  paint(n, size) {
    const factor = Math.max(1, Math.ceil((n - 1) / (size * (window.devicePixelRatio || 1))));
    const [r, g, b] = rgb(getComputedStyle(this.element).getPropertyValue("--hs-unknown"));
    return paintDifference(this.store.weights.values, n, {
      ramp: palette().difference,
      limit: this.limit,
      options: this.store.view.options,
      unknown: ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0,
      factor,
    });
  }

  /** @param {number} query @param {number} key @param {boolean} isLocked */
  write(query, key, isLocked) {
    const { a, b, difference } = this.compared.difference.at(query, key);
    const isKnown = !Number.isNaN(difference);
    const number = isLocked ? full : exact;
    this.number.textContent = isKnown ? signed(difference, number) : "";
    this.number.classList.toggle("hs-full", isLocked);
    this.number.dataset.difference = String(difference);
    const said = isKnown ? [] : [`${this.unlike(key)}, so not subtracted: `];
    this.prediction.replaceChildren(...said, "A ", make("b", {}, number(a)), "  B ", make("b", {}, number(b)));
  }

  /** @param {number} piece */
  numberOf(piece) {
    return this.compared.alignment.numberOf(piece);
  }

  /** Why what is looked at on both sides is not compared. @param {number} key */
  unlike(key) {
    const { alignment, stores } = this.compared;
    const { a0, b0 } = alignment.pieces[key];
    const isAlike = stores.a.tokens[a0]?.text === stores.b.tokens[b0]?.text;
    return isAlike ? "the same token by coincidence, after the texts part" : "another token on each side";
  }

  /** @param {number} query @param {number} key */
  say(query, key) {
    const { a, b, difference } = this.compared.difference.at(query, key);
    const [row, column] = [query, key].map(
      (piece) => `“${visible(this.store.tokens[piece].text)}” ${this.numberOf(piece)}`,
    );
    if (Number.isNaN(difference)) return `${row} looks at ${column}: ${this.unlike(key)}`;
    return `${row} looks at ${column}: A ${exact(a)}, B ${exact(b)}, difference ${signed(difference, exact)}`;
  }
}

/** @param {string} hex @returns {number[]} */
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.trim().slice(i, i + 2), 16));
