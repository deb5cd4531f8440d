// One head of both texts on one matrix: A at the left of a line that is dragged or moved by keys, and at its right B or
// the difference. Where the texts have no cells in common, and for whoever prefers it, the matrices stand side by side.

import { make, setText } from "../../lib/dom.mjs";
import { effect, whenever } from "../../lib/reactive.mjs";
import { capitalised, spokenPicture } from "../../lib/words.mjs";
import { signal } from "../../vendor/signals.mjs";
import { rangeInput, setRange, tabs } from "../../widgets/controls.mjs";
import { readStored, writeStored } from "../state/storage.mjs";
import { focusWords } from "./open_heads.mjs";

/** @import { Pair } from "./pair.mjs" */

/** @typedef {"b" | "difference" | "apart"} Mode what stands at the right of the line, or that there is none */

const STORED = "headscope-wipe";
/** @type {Record<Mode, string>} */
const MODES = { b: "A | B", difference: "A | difference", apart: "side by side" };
const MIDDLE = 50;

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
  const line = rangeInput({ min: 0, max: 100, value: MIDDLE, "aria-label": "Where A ends" });
  const stack = make("div", { class: "hs-wipe-stack" }, a, difference, b);
  const slide = make("div", { class: "hs-wipe-line" }, line);
  const hint = make(
    "p",
    { class: "hs-hint" },
    "A row is a word, a column what it looks at. Drag the line, or use the arrow keys.",
  );
  const top = make("div", { class: "hs-top" }, title, choice.element);
  const element = make("section", { class: "hs-panel hs-wipe", "aria-label": "The open head of both texts" });
  element.append(top, words, slide, stack, hint);
  let placed = ""; // the comparison in which the line has its place
  const move = () => element.style.setProperty("--wipe", String(Number(line.value) / 100));
  line.addEventListener("input", move);
  move();
  const place = () => {
    const board = a.querySelector(".hs-board");
    const { run } = pair.stores.b.pointer;
    if (placed === run || !(board instanceof HTMLElement) || !board.clientWidth) return;
    const column = changedColumn(pair);
    if (column === null) return;
    const [margin, count] = [Number(board.dataset.margin), Number(board.dataset.count)];
    if (!count) return;
    placed = run;
    const cell = (board.clientWidth - margin) / count;
    setRange(line, Math.round((100 * (margin + (column + MIDDLE / 100) * cell)) / board.clientWidth));
    move();
  };
  effect(() => {
    const { isApart, alignment, heads } = pair;
    const hasCells = !isApart && !heads.isStandIn && alignment.isTokenByToken;
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

/**
 * The column through which the line goes at first, so that what differs is seen on both of its sides: the first word
 * that is another one, else the one with the largest difference; null while it is not known.
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
