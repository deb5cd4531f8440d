// What is selected in one text: the cell under the pointer, the locked cells, and the step to which the text is shown.

import { clamp } from "../../lib/numbers.mjs";
import { keysOf } from "../../lib/triangle.mjs";
import { isBusy } from "./pointer.mjs";
import { batch, signal } from "../../vendor/signals.mjs";

/** @import { Cell, Focus } from "../../types.js" */
/** @import { ShownText } from "./shown_text.mjs" */

/**
 * A selection as it was made.
 * @typedef {object} Selected
 * @property {Cell | null} hover under the pointer
 * @property {Cell[]} locked cells that were clicked
 * @property {number | null} step the inspected token; null for the newest
 * @property {boolean} isCellLatest whether the cell locked last was chosen after the step
 */

/** @type {Selected} */
export const NOTHING = { hover: null, locked: [], step: null, isCellLatest: false };

/** @param {Cell | null} one @param {Cell | null} other */
const isSameCell = (one, other) => one?.query === other?.query && (one?.key ?? null) === (other?.key ?? null);

export class Selection {
  #selected = signal(NOTHING);
  #picks = signal(0);

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
  }

  /** The selection as it was made, to show it again. */
  get selected() {
    return this.#selected.value;
  }

  get hover() {
    return this.selected.hover;
  }

  get locked() {
    return this.selected.locked;
  }

  /** The locked cell that all panels describe; null while they describe a step. */
  get leading() {
    const { locked, isCellLatest } = this.selected;
    return isCellLatest ? (locked.at(-1) ?? null) : null;
  }

  /** The step to which the text is shown; null for all of it, as while another row is locked. */
  get step() {
    const { leading } = this;
    const { step } = this.selected;
    return !leading || leading.query + 1 === step ? step : null;
  }

  /** Whether neither a step nor a cell is selected. */
  get isEmpty() {
    return this.step === null && !this.locked.length;
  }

  /** The token that all panels name: the one after the locked row, else that of the step; null before there is one. */
  get chosen() {
    const newest = this.store.length - 1;
    const { leading } = this;
    if (leading) return leading.query < newest ? leading.query + 1 : null;
    return newest < this.store.firstStep ? null : Math.min(this.selected.step ?? newest, newest);
  }

  /** The query whose row led to the chosen token. All panels show it, unless another is pointed at. */
  get currentRow() {
    return this.leading?.query ?? (this.chosen === null ? this.store.count - 1 : this.chosen - 1);
  }

  /** The token whose logits predict the chosen one; -1 if nothing is known yet. */
  get predictor() {
    const { length, pointer } = this.store;
    if (this.leading) return Math.min(this.leading.query, length - 1);
    if (this.chosen !== null) return this.chosen - 1;
    // Before anything is written, the last token's logits predict the first step.
    return isBusy(pointer.state) ? -1 : length - 1;
  }

  /**
   * The cell to describe: the one under the pointer, else the leading one, else the strongest of the current row; null
   * before there is one.
   * @returns {Focus | null}
   */
  get focus() {
    const { count, view, weights } = this.store;
    if (!count) return null;
    const { query, key } = this.hover ?? this.leading ?? { query: this.currentRow };
    const first = view.options.hideFirst ? 1 : 0;
    return { query, key: query < count && keysOf(query) ? (key ?? weights.strongest(query, first)) : null };
  }

  /** The tokens whose attention is drawn: that of the focus, and all that are locked. */
  get queries() {
    const queries = [this.focus, ...this.locked].flatMap((cell) => (cell ? [cell.query] : []));
    return [...new Set(queries)].filter((query) => query < this.store.count);
  }

  /** @param {Cell | null} cell */
  point(cell) {
    if (isSameCell(this.hover, cell)) return;
    this.#change({ hover: cell });
  }

  /**
   * Lock a cell instead of those locked before, or unlock it; null unlocks all. All panels go to its row, and back to
   * the step when it is unlocked.
   * @param {Cell | null} cell
   * @param {boolean} [more] whether those locked before stay locked
   */
  lock(cell, more = false) {
    const { locked } = this;
    const others = locked.filter((other) => !isSameCell(other, cell));
    const wasLocked = others.length < locked.length;
    if (!cell || (wasLocked && !more && locked.length === 1)) this.#lock([]);
    else if (more) this.#lock(wasLocked ? others : [...others, cell]);
    else this.#lock([cell]);
  }

  /** @param {Cell[]} locked */
  #lock(locked) {
    this.#change({ locked, isCellLatest: locked.length > 0 });
  }

  /** Show the step of one token; null for the newest. Locked cells stay locked. @param {number | null} step */
  goto(step) {
    const shown = step === null || step >= this.store.length ? null : Math.max(step, 1);
    this.#change({ step: shown, isCellLatest: false });
  }

  /** How often a token was selected, or another text begun. */
  get picks() {
    return this.#picks.value;
  }

  #pick() {
    this.#picks.value = this.#picks.peek() + 1;
  }

  /** Select the newest token if nothing is selected: the panels then mark the prediction that they describe anyway. */
  settle() {
    if (this.isEmpty && this.chosen !== null) this.goto(this.chosen);
  }

  /** Select a token: the step at which it was written or, in the prompt, its row. @param {number} position */
  select(position) {
    this.#pick();
    const { firstStep, length, isGrowing } = this.store;
    if (position < firstStep) this.lock({ query: position });
    else {
      batch(() => {
        this.#change({ locked: [] });
        // While more is coming, selecting the newest token pins it; once the text is complete, it just means the end.
        this.goto(position === length - 1 && !isGrowing ? null : position);
      });
    }
  }

  /**
   * Show where a token looks, and what comes next after it: the step that wrote the next one or, in the prompt, its own
   * row.
   * @param {number} position
   */
  look(position) {
    const { firstStep, length } = this.store;
    if (position + 1 >= firstStep && position + 1 < length) this.select(position + 1);
    else {
      this.#pick();
      if (this.leading?.query !== position) this.lock({ query: position });
    }
  }

  /** Go some steps forward, or back if negative. @param {number} by */
  stepBy(by) {
    const { firstStep, length } = this.store;
    const newest = length - 1;
    if (newest >= firstStep) this.select(clamp((this.chosen ?? newest) + by, firstStep, newest));
  }

  /** Lock the query of the selected step, or unlock everything. */
  pinSelected() {
    const { focus } = this;
    if (this.locked.length || !focus) this.lock(null);
    else this.lock({ query: focus.query });
  }

  /** Replace the whole selection. @param {Selected} selected */
  inspect(selected) {
    this.#selected.value = selected;
  }

  /**
   * Restore the selection of a link: a step in it was chosen after its cells.
   * @param {Cell[]} locked
   * @param {number | null} step
   */
  restore(locked, step) {
    this.#selected.value = { hover: null, locked, step, isCellLatest: step === null && locked.length > 0 };
  }

  /** Select nothing. */
  clear() {
    this.#pick();
    this.#selected.value = NOTHING;
  }

  /** @param {Partial<Selected>} changes */
  #change(changes) {
    this.#selected.value = { ...this.#selected.peek(), ...changes };
  }
}
