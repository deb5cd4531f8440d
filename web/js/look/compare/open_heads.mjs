// The open head of each side and their difference: with the same size, the same cell positions and the same colour
// scale.

import { make } from "../../lib/dom.mjs";
import { labelMargin, layout } from "../../lib/drawing/axes.mjs";
import { paintDifference } from "../../lib/drawing/images.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { palette, parseHex } from "../../lib/drawing/palette.mjs";
import { WeightCells } from "../../lib/drawing/weight_cells.mjs";
import { position } from "../../lib/drawing/scale.mjs";
import { scaleOf } from "../../lib/head_masks.mjs";
import { allPictures } from "../../lib/heads.mjs";
import { counted, exact, full, share, withSign } from "../../lib/numbers.mjs";
import { baseName, capitalised, pictureName, spoken, textOf, visible } from "../../lib/words.mjs";
import { HeadWeights } from "../../lib/triangle.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { rampLine, weightLegend } from "../panels/legend.mjs";
import { scaledWords } from "../roles/role_words.mjs";
import { otherSide, SIDES } from "./pair.mjs";
import { badge, LETTERS } from "./names.mjs";
import { fillTable, makeTable } from "../../widgets/table.mjs";
import { effect, onChange, whenever } from "../../lib/reactive.mjs";

/** @import { Layout } from "../../lib/drawing/axes.mjs" */
/** @import { Cell, MatrixCells, MatrixSelection, MatrixSource, PictureId, Token } from "../../types.js" */
/** @import { Context } from "../../lib/drawing/axes.mjs" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Difference } from "./difference.mjs" */
/** @import { Pair } from "./pair.mjs" */

/**
 * Where a side names the key that is pointed at: both names meet at the line between A and B.
 * @type {Record<SideName, "left" | "right">}
 */
const NAMED_AT = { a: "right", b: "left" };

/** @param {Pair} pair @param {SideName} side */
export function sideHead(pair, side) {
  const store = pair.stores[side];
  const matrix = sideMatrix(pair, side);
  const { select, show } = headSelect(pair, side);
  const label = make("span", { class: "hs-same" });
  const top = make("div", { class: "hs-top" }, badge(side), select, label);
  const region = make("section", { class: `hs-panel hs-pair-head hs-side-${side}` }, top, matrix.element);
  region.append(weightLegend(store));
  const scaled = make("p", { class: "hs-scaled-words", role: "status", hidden: true });
  top.after(scaled);
  const name = () => {
    show();
    scaled.textContent = scaledWords(store.pointer, store.open);
    scaled.hidden = !scaled.textContent;
    region.classList.toggle("hs-removed", scaleOf(store.pointer.head_mask, store.open) === 0);
    label.hidden = side === "a" || pair.heads.isUnlinked;
    label.textContent = label.title = label.hidden ? "" : sameWords(pair);
    region.setAttribute("aria-label", `Attention weights ${LETTERS[side]}, ${store.openName}`);
  };
  effect(name);
  return region;
}

/** How the head of side B relates to that of side A. @param {Pair} pair */
function sameWords({ heads, stores: { a, b } }) {
  if (heads.isStandIn) return `B has no counterpart of ${a.openName}; it shows ${b.openName}`;
  const isOneModel = baseName(a.pointer.model) === baseName(b.pointer.model);
  return isOneModel ? "same head as A" : "same place as in A";
}

/**
 * The list of heads of one side: A's list sets both sides, unless B's head was chosen separately.
 * @param {Pair} pair
 * @param {SideName} side
 */
function headSelect(pair, side) {
  const store = pair.stores[side];
  const select = make("select", { "aria-label": side === "a" ? "Head of both sides" : "Head of side B" });
  select.addEventListener("change", () => {
    const picture = /** @type {PictureId} */ (select.value.split(".").map(Number));
    if (side === "a") pair.heads.choose(picture);
    else pair.heads.chooseB(select.value === "same" ? null : picture);
  });
  const same = make("option", { value: "same" });
  let shape = "";
  const show = () => {
    const { pointer } = store;
    const isNew = shape !== `${pointer.n_layer}x${pointer.n_head}`;
    shape = `${pointer.n_layer}x${pointer.n_head}`;
    if (isNew) {
      const options = (pointer.n_layer ? allPictures(pointer) : []).map((picture) =>
        make("option", { value: picture.join(".") }, pictureName(picture, pointer)),
      );
      if (side === "b") options.unshift(same);
      select.replaceChildren(...options);
    }
    const { isStandIn } = pair.heads;
    same.textContent = isStandIn ? `${capitalised(store.openName)} (nearest)` : "same as A";
    select.value = side === "b" && isStandIn ? "same" : store.open.join(".");
  };
  return { select, show };
}

/** @param {Pair} pair */
export function differencePanel(pair) {
  const { a, b } = pair.stores;
  const name = () => `the difference, B minus A, ${b.openName} and ${a.openName}`;
  const source = pieceSource(pair, () => pair.difference.values, name);
  const matrix = new Matrix(source, differenceSelection(pair), new DifferenceCells(pair, source));
  matrix.fades = false;
  matrix.element.classList.add("hs-difference");
  const table = rowTable(pair);
  const title = make("h2", {}, "Difference B − A");
  const largest = make("p", { class: "hs-status" });
  const top = make("div", { class: "hs-top" }, title, largest, table.toggle);
  const legend = differenceLegend(pair);
  const region = make("section", { class: "hs-panel hs-pair-difference", "aria-label": "Difference, B minus A" });
  const why = make("p", { role: "status" }); // shown if there is no difference to draw
  region.append(top, why, matrix.element, legend.element, table.element);
  const parts = [largest, table.toggle, matrix.element, legend.element];
  const explain = () => {
    why.textContent = notSubtracted(pair);
    const isNone = why.textContent !== "";
    for (const part of parts) part.hidden = isNone;
    why.hidden = !isNone;
    if (isNone) table.show(false);
  };
  whenever(() => [...pair.progress, ...pair.heads.opened], explain);
  effect(() => {
    const { difference } = pair;
    const isNone = difference.rows > 0 && difference.largest === 0;
    largest.textContent = !difference.rows ? "" : isNone ? "none" : `at most ${exact(difference.largest)}`;
    legend.draw();
  });
  return region;
}

/** Why the open heads are not subtracted; "" if they are. @param {Pair} pair */
function notSubtracted({ isApart, alignment, heads, stores: { a, b } }) {
  if (isApart) {
    const divergence = alignment.divergence ?? 0;
    const more = alignment.shared > divergence ? "hardly more" : "no more";
    return (
      `These are two different texts: they share their first ${counted(divergence, "token")} and ${more}, so their ` +
      "heads are shown side by side, not subtracted. Compare the patterns, not the cells."
    );
  }
  if (!heads.isStandIn) return "";
  return (
    `B has no counterpart of ${a.openName}, so it shows ${b.openName}, which may do something quite different. ` +
    "To subtract two heads, choose one for B in its list, or one that both models have."
  );
}

/**
 * The legend of the difference; its ends are the largest difference of the open head.
 * @param {Pair} pair
 */
function differenceLegend(pair) {
  const { element: line, draw } = rampLine("difference", () =>
    [-1, -0.25, 0, 0.25, 1].map((part) => {
      const value = part * limitOf(pair);
      const text = part ? `${part < 0 ? "−" : "+"}${tickText(Math.abs(value))}` : "0";
      return [0.5 + 0.5 * Math.sign(part) * position(pair.view.options.scale, Math.abs(part)), text];
    }),
  );
  const words = make("p", { class: "hs-hint hs-legend-words" });
  const unknown = make("span", { class: "hs-swatch hs-swatch-unknown" });
  words.append(
    make("span", {}, badge("a"), " more"),
    make("span", {}, unknown, "no shared token"),
    make("span", {}, "more ", badge("b")),
  );
  const element = make("div", { class: "hs-difference-legend" }, line, words);
  return { element, draw };
}

/** @param {number} value */
const tickText = (value) =>
  value >= 0.0995 ? value.toFixed(2) : value >= 0.00095 ? value.toFixed(4) : value.toExponential(1);

const MIN_LIMIT = 0.001; // the smallest difference that gets the strongest colour, so that noise is not drawn

/** The difference at the ends of the colours. @param {Pair} pair */
const limitOf = (pair) => Math.max(pair.difference.largest, MIN_LIMIT);

/**
 * The layout of the cells of both sides: cells in the same places if the texts correspond token by token; otherwise
 * each side has its own cells, in squares of the same size.
 * @param {Pair} pair
 * @param {Context} context
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
  return { margin, cell, high: cell, texts: texts && cell >= 11, isPlain: true };
}

/** The cells of one side, in the same places as those of the other. @implements {MatrixCells} */
class SideCells extends WeightCells {
  /** @param {Pair} pair @param {SideName} side */
  constructor(pair, side) {
    super(pair.stores[side], pair.stores[side].selection);
    this.pair = pair;
  }

  get count() {
    return this.store.count;
  }

  /** @param {Context} context @param {number} n @param {number} width */
  place(context, n, width) {
    return pairLayout(this.pair, context, this.store.tokens, n, width);
  }
}

/** @param {Pair} pair @param {SideName} side */
function sideMatrix(pair, side) {
  const { stores } = pair;
  const matrix = new Matrix(stores[side], stores[side].selection, new SideCells(pair, side));
  matrix.keyAlign = NAMED_AT[side];
  matrix.fades = false;
  // The layout depends on the other side's rows and labels, and on the alignment.
  const other = stores[otherSide(side)];
  onChange(
    () => [...pair.progress, other.weights, other.count],
    () => matrix.draw(),
  );
  return matrix;
}

/** The text of a piece or, inside a character, its bytes. @param {Token[]} tokens */
const pieceName = (tokens) => textOf(tokens) || tokens.map(({ text }) => text).join("");

/**
 * The pieces as the tokens of the difference: "Lily|Mia" where the texts differ.
 * @param {Pair} pair
 * @returns {Token[]}
 */
function pieceTokens({ alignment, stores: { a, b } }) {
  return alignment.pieces.map(({ a0, a1, b0, b1, same }) => {
    const [text, second] = [a.tokens.slice(a0, a1), b.tokens.slice(b0, b1)].map(pieceName);
    const other = same || text === second ? "" : `|${second}`;
    return { id: -1, text: text + other, logprob: null };
  });
}

/**
 * The pieces as one side has them.
 * @param {Pair} pair
 * @param {SideName} side
 * @returns {Token[]}
 */
const sidePieces = (pair, side) =>
  pair.alignment.pieces.map((_, piece) => {
    return { id: -1, text: pieceName(tokensOf(pair, side, piece)), logprob: null };
  });

/**
 * Numbers on the pieces of both texts as the source of a matrix, whose tokens are the pieces.
 * @param {Pair} pair
 * @param {() => HeadWeights} weights
 * @param {() => string} name
 * @param {() => Token[]} [tokens] what the pieces are called
 * @returns {MatrixSource}
 */
const pieceSource = (pair, weights, name, tokens = () => pieceTokens(pair)) => ({
  view: pair.view,
  get tokens() {
    return tokens();
  },
  get weights() {
    return weights();
  },
  get count() {
    return pair.difference.rows;
  },
  get openName() {
    return name();
  },
  get drawn() {
    return [...pair.progress, pair.difference, pair.view.options];
  },
});

/** One side's weights on the pieces of both texts. @implements {MatrixCells} */
class PieceCells extends WeightCells {
  /** @param {Pair} pair @param {MatrixSource} source whose tokens are pieces */
  constructor(pair, source) {
    super(source, differenceSelection(pair));
    this.pair = pair;
  }

  get count() {
    return this.store.count;
  }

  /** @param {Context} context @param {number} n @param {number} width */
  place(context, n, width) {
    return pairLayout(this.pair, context, this.store.tokens, n, width);
  }

  /** @param {number} piece */
  nameOf(piece) {
    return this.pair.alignment.numberOf(piece);
  }
}

/**
 * The open head of a side on the pieces that both texts have, so that its cells stand in the same places as those of
 * the other side whatever the tokens are.
 * @param {Pair} pair
 * @param {SideName} side
 */
export function pieceHead(pair, side) {
  const store = pair.stores[side];
  /** @type {{ of: Difference | null, weights: HeadWeights }} */
  const known = { of: null, weights: new HeadWeights() };
  const weights = () => {
    const { difference } = pair;
    if (known.of !== difference) Object.assign(known, { of: difference, weights: difference.weightsOf(side) });
    return known.weights;
  };
  const name = () => `${LETTERS[side]}, ${store.openName}`;
  const source = pieceSource(pair, weights, name, () => sidePieces(pair, side));
  const matrix = new Matrix(source, differenceSelection(pair), new PieceCells(pair, source));
  matrix.keyAlign = NAMED_AT[side];
  matrix.fades = false;
  const region = make("section", { class: `hs-panel hs-pair-pieces hs-side-${side}` }, matrix.element);
  region.append(weightLegend(store));
  return region;
}

/** @param {Pair} pair @returns {MatrixSelection} A's selection in pieces */
function differenceSelection(pair) {
  const { selection } = pair.stores.a;
  /** @param {Cell} cell of A @returns {{ query: number, key: number | null } | null} */
  const toPiece = ({ query, key = null }) => {
    const row = pair.alignment.pieceOf("a", query);
    const column = key === null ? null : pair.alignment.pieceOf("a", key);
    return row === null ? null : { query: row, key: column };
  };
  return {
    get step() {
      return pair.chosen === null || pair.leading ? null : pair.alignment.pieceAt(pair.chosen);
    },
    get focus() {
      if (!pair.isPointed && !pair.isOneRow) return null; // no such row
      const cell = selection.focus && toPiece({ ...selection.focus });
      if (!cell || cell.query >= pair.difference.rows) return null;
      return { query: cell.query, key: cell.key };
    },
    get queries() {
      const rows = selection.queries.flatMap((query) => pair.alignment.pieceOf("a", query) ?? []);
      return rows.filter((row) => row < pair.difference.rows);
    },
    get locked() {
      return selection.locked.flatMap((cell) => toPiece(cell) ?? []);
    },
    point: (cell) => pair.point(cell && { row: cell.query, key: cell.key ?? null }),
    lock: (cell, more = false) => pair.lock(cell && { row: cell.query, key: cell.key ?? null }, more),
  };
}

/** @implements {MatrixCells} */
class DifferenceCells {
  /** @param {Pair} pair @param {MatrixSource} source whose tokens are pieces */
  constructor(pair, source) {
    this.pair = pair;
    this.source = source;
  }

  get count() {
    return this.source.count;
  }

  /** @param {Context} context @param {number} n @param {number} width */
  place(context, n, width) {
    return pairLayout(this.pair, context, this.source.tokens, n, width);
  }

  /** @param {number} n @param {number} size */
  paint(n, size) {
    const factor = Math.max(1, Math.ceil((n - 1) / (size * (window.devicePixelRatio || 1))));
    const [r, g, b] = parseHex(getComputedStyle(document.body).getPropertyValue("--hs-unknown"));
    return paintDifference(this.source.weights.values, n, {
      ramp: palette().difference,
      limit: limitOf(this.pair),
      options: this.pair.view.options,
      unknown: ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0,
      factor,
    });
  }

  /** @param {number} query @param {number} key @param {boolean} isLocked */
  read(query, key, isLocked) {
    const { a, b, difference } = this.pair.difference.at(query, key);
    const isKnown = !Number.isNaN(difference);
    const number = isLocked ? full : exact;
    const warning = isKnown ? [] : [`${this.unlike(key)}, so not subtracted: `];
    const then = [...warning, "A ", make("b", {}, number(a)), "  B ", make("b", {}, number(b))];
    const text = isKnown ? withSign(difference, number) : "";
    return { text, data: { difference: String(difference) }, then };
  }

  /** @param {number} piece */
  nameOf(piece) {
    return this.pair.alignment.numberOf(piece);
  }

  /** Why the weights of a key are not compared. @param {number} key */
  unlike(key) {
    const { alignment, stores } = this.pair;
    const { a0, b0 } = alignment.pieces[key];
    const isAlike = stores.a.tokens[a0]?.text === stores.b.tokens[b0]?.text;
    return isAlike ? "the same text by coincidence, after the texts diverge" : "a different token on each side";
  }

  /** @param {number} query @param {number} key */
  say(query, key) {
    const { a, b, difference } = this.pair.difference.at(query, key);
    const [row, column] = [query, key].map(
      (piece) => `“${visible(this.source.tokens[piece].text)}” ${this.nameOf(piece)}`,
    );
    if (Number.isNaN(difference)) return `${row} looks at ${column}: ${this.unlike(key)}`;
    return `${row} looks at ${column}: A ${exact(a)}, B ${exact(b)}, difference ${withSign(difference, exact)}`;
  }
}

/** How much both sides look at the cell that is described, in a sentence; "" for none. @param {Pair} pair */
export function focusWords(pair) {
  const { focus } = differenceSelection(pair);
  if (!focus || focus.key === null) return "";
  const { query, key } = focus;
  const { a, b } = pair.difference.at(query, key);
  const [fromA, fromB, toA, toB] = [query, key].flatMap((piece) => SIDES.map((side) => said(pair, side, piece)));
  const from = fromA === fromB ? fromA : `${fromA} in A and ${fromB} in B`;
  if (toA === toB) return `From ${from}, A looks at ${toA} with ${share(a)}, B with ${share(b)}.`;
  return `From ${from}, A looks at ${toA} (${share(a)}), B at ${toB} (${share(b)}).`;
}

/** A piece as a side reads it, in quotes. @param {Pair} pair @param {SideName} side @param {number} piece */
const said = (pair, side, piece) => spoken(pieceName(tokensOf(pair, side, piece)));

/** A table of the selected token's row: its weight for each token on both sides. @param {Pair} pair */
function rowTable(pair) {
  const table = makeTable({});
  const view = new TableView("Show this row as a table", draw, make("div", {}, table));
  whenever(
    () => [pair.difference, ...pair.place],
    () => view.refresh(),
  );
  return view;

  function draw() {
    const { a } = pair.stores;
    const { focus } = a.selection;
    const row = focus && pair.alignment.pieceOf("a", focus.query);
    table.replaceChildren();
    if (row === null || row >= pair.difference.rows) return;
    const rows = [];
    for (let key = 0; key <= row; key++) {
      const { a: left, b: right, difference } = pair.difference.at(row, key);
      const cells = Number.isNaN(difference) ? ["", "", ""] : [exact(left), exact(right), withSign(difference, exact)];
      rows.push([`“${pieceText(pair, key)}” ${pair.alignment.numberOf(key)}`, ...cells]);
    }
    const query = `“${pieceText(pair, row)}” ${pair.alignment.numberOf(row)}`;
    const caption = `What ${query} looks at, ${a.openName} and ${pair.stores.b.openName}`;
    fillTable(table, { caption, titles: ["key", "A", "B", "B − A"], rows });
  }
}

/** @param {Pair} pair @param {number} piece */
function pieceText(pair, piece) {
  return visible(pieceName(tokensOf(pair, "a", piece)));
}

/** The tokens of a piece on one side. @param {Pair} pair @param {SideName} side @param {number} piece */
function tokensOf({ alignment, stores }, side, piece) {
  return stores[side].tokens.slice(alignment.first(side, piece), alignment.last(side, piece) + 1);
}
