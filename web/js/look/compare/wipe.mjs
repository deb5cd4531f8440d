// One head of both texts on one matrix: A at the left of a line that is dragged or moved by keys, and at its right B or
// the difference. Tokens of other lengths stand in the place of the text that they make up. Where the texts have no
// cells in common, and for whoever prefers it, the matrices stand side by side.

import { make, setText } from "../../lib/dom.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { effect, onResize, whenever } from "../../lib/reactive.mjs";
import { capitalised, spokenPicture } from "../../lib/words.mjs";
import { signal } from "../../vendor/signals.mjs";
import { rangeInput, setRange, tabs } from "../../widgets/controls.mjs";
import { readStored, writeStored } from "../../widgets/storage.mjs";
import { focusWords, pieceHead } from "./open_heads.mjs";
import { badge } from "./names.mjs";
import { SIDES } from "./pair.mjs";

/** @import { Pair } from "./pair.mjs" */

/** @typedef {"b" | "difference" | "apart"} Mode what stands at the right of the line, or that there is none */

const STORED = "headscope-wipe";
/** @type {Record<Mode, string>} */
const MODES = { b: "A | B", difference: "A | difference", apart: "side by side" };
const READ = "A row is a word, a column what it looks at. Drag the line, or use the arrow keys.";
const ONLY_BOTH = "Text that only one of them has is left out.";

/**
 * @param {Pair} pair
 * @param {HTMLElement} a the open head of A
 * @param {HTMLElement} difference
 * @param {HTMLElement} b
 */
export function wipe(pair, a, difference, b) {
  const stored = readStored(STORED);
  const mode = signal(/** @type {Mode} */ (stored in MODES ? stored : "b"));
  const choice = tabs("What is shown beside A", MODES, (chosen) => {
    mode.value = /** @type {Mode} */ (chosen);
    writeStored(STORED, chosen);
  });
  const title = make("h2", {});
  const words = make("p", { class: "hs-wipe-words", role: "status" });
  const line = rangeInput({ min: 0, max: 100, value: 50, "aria-label": "Where A ends" });
  const stack = make("div", { class: "hs-wipe-stack" }, a, difference, b);
  const slide = make("div", { class: "hs-wipe-line" }, line);
  const grip = make("div", { class: "hs-wipe-grip", "aria-hidden": "true" }, badge("a"), badge("b"));
  stack.append(make("div", { class: "hs-wipe-rail" }, grip));
  const hint = make("p", { class: "hs-hint" });
  const top = make("div", { class: "hs-top" }, title, choice.element);
  const element = make("section", { class: "hs-panel hs-wipe", "aria-label": "The open head of both texts" });
  element.append(top, words, slide, stack, hint);
  const pieces = piecesWhereNeeded(pair, element, stack, hint);
  let placed = ""; // the comparison in which the line has its place
  const move = () => element.style.setProperty("--wipe", String(Number(line.value) / 100));
  line.addEventListener("input", move);
  move();
  const boardOf = () => shownBoard(pair.alignment.isTokenByToken ? a : pieces[0]);
  const place = () => {
    const board = boardOf();
    if (!board) return;
    element.style.setProperty("--margin", `${Number(board.dataset.margin ?? 0)}px`);
    const { run } = pair.stores.b.pointer;
    const part = placed === run ? null : partOfA(pair, Number(board.dataset.count));
    if (part === null) return;
    placed = run;
    setRange(line, Math.round(100 * part));
    move();
  };
  onResize(() => requestAnimationFrame(place), stack);
  dragged(grip, boardOf, (part) => {
    setRange(line, 100 * part);
    move();
  });
  effect(() => {
    const { isApart, heads } = pair;
    const hasCells = !isApart && !heads.isStandIn;
    choice.element.hidden = !hasCells;
    choice.show(mode.value);
    element.dataset.mode = hasCells ? mode.value : "apart";
  });
  whenever(
    () => [...pair.progress, pair.difference, ...pair.place, ...pair.heads.opened],
    () => {
      const { open, pointer } = pair.stores.a;
      setText(title, capitalised(spokenPicture(open, pointer)));
      setText(words, focusWords(pair));
      requestAnimationFrame(() => requestAnimationFrame(place)); // once the matrix is drawn
    },
  );
  return element;
}

/** The cells in an element; null while they have no size. @param {HTMLElement} element */
function shownBoard(element) {
  const board = element.querySelector(".hs-board");
  return board instanceof HTMLElement && board.clientWidth ? board : null;
}

/**
 * Follow a pointer that drags the line over a matrix.
 * @param {HTMLElement} grip
 * @param {() => HTMLElement | null} boardOf
 * @param {(part: number) => void} move gets the part of the cells at the left of the pointer
 */
function dragged(grip, boardOf, move) {
  grip.addEventListener("pointerdown", (event) => {
    grip.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  grip.addEventListener("pointermove", ({ pointerId, clientX }) => {
    const board = grip.hasPointerCapture(pointerId) ? boardOf() : null;
    if (!board) return;
    const { left, width } = board.getBoundingClientRect();
    const margin = Number(board.dataset.margin);
    move(clamp((clientX - left - margin) / (width - margin), 0, 1));
  });
}

/**
 * The part of the cells at the left of the line at first; null while it is not known.
 * @param {Pair} pair
 * @param {number} count of the pieces
 */
function partOfA(pair, count) {
  const column = changedColumn(pair);
  const { a, b } = pair.stores;
  const columns = pair.alignment.isTokenByToken ? Math.max(a.count, b.count) : count;
  return column === null || !columns ? null : (column + 1) / columns;
}

/**
 * Where two texts do not correspond token by token, their matrices are of the pieces that do.
 * @param {Pair} pair
 * @param {HTMLElement} element is marked with what its cells are
 * @param {HTMLElement} stack
 * @param {HTMLElement} hint
 */
function piecesWhereNeeded(pair, element, stack, hint) {
  /** @type {HTMLElement[]} made once there are such texts */
  const pieces = [];
  whenever(
    () => [pair.alignment.isTokenByToken],
    () => {
      const { isTokenByToken } = pair.alignment;
      if (!isTokenByToken && !pieces.length) pieces.push(...SIDES.map((side) => pieceHead(pair, side)));
      stack.append(...pieces);
      element.dataset.cells = isTokenByToken ? "tokens" : "pieces";
      setText(hint, isTokenByToken ? READ : `${READ} ${ONLY_BOTH}`);
    },
  );
  return pieces;
}

/**
 * The column that ends at the line at first: the first word that is another one, else the one with the largest
 * difference; null while it is not known.
 * @param {Pair} pair
 */
function changedColumn({ alignment: { divergence, pieces }, difference, isGrowing }) {
  if (isGrowing || !difference.rows) return null;
  if (divergence !== null && divergence < pieces.length) return divergence;
  let largest = 0;
  /** @type {number | null} */
  let column = null;
  for (let row = 0; row < difference.rows; row++) {
    for (let key = 0; key <= row; key++) {
      const size = Math.abs(difference.at(row, key).difference);
      if (size > largest) [largest, column] = [size, key];
    }
  }
  return column;
}
