// The visitor's selection in one text.

/** @import { Cell, Focus } from "../../types.js" */

/** @param {Cell | null} one @param {Cell | null} other */
const isSameCell = (one, other) => one?.query === other?.query && (one?.key ?? null) === (other?.key ?? null);

export class Selection {
  /** @type {Cell | null} under the pointer */
  hover = null;

  /**
   * @param {Cell[]} [locked] cells that were clicked
   * @param {number | null} [step] the inspected token; null for the newest
   * @param {boolean} [isCellLatest] whether the cell locked last was chosen after the step
   */
  constructor(locked = [], step = null, isCellLatest = locked.length > 0) {
    this.locked = locked;
    this.step = step;
    this.isCellLatest = isCellLatest;
  }

  /** The locked cell that everything describes; null while that is a step. */
  get leading() {
    return this.isCellLatest ? (this.locked.at(-1) ?? null) : null;
  }

  /**
   * The cell to describe: the one under the pointer, else the leading one, else the strongest cell of a row.
   * @param {number} row
   * @param {number} count number of tokens that can be drawn
   * @param {(query: number) => number} strongest key of a query
   * @returns {Focus}
   */
  focus(row, count, strongest) {
    const { query, key } = this.hover ?? this.leading ?? { query: row };
    return { query, key: query < count ? (key ?? strongest(query)) : null };
  }

  /** Move the pointer. Return whether the cell changed. @param {Cell | null} cell */
  point(cell) {
    const changed = !isSameCell(this.hover, cell);
    this.hover = cell;
    return changed;
  }

  /**
   * Lock a cell in place of those locked before, or unlock it if it was locked; null unlocks all.
   * @param {Cell | null} cell
   * @param {boolean} more whether to keep those locked before
   */
  lock(cell, more) {
    const others = this.locked.filter((other) => !isSameCell(other, cell));
    const wasLocked = others.length < this.locked.length;
    if (!cell) this.locked = [];
    else if (more) this.locked = wasLocked ? others : [...others, cell];
    else this.locked = wasLocked && this.locked.length === 1 ? [] : [cell];
    this.isCellLatest = this.locked.length > 0;
  }

  /** Go to a step; locked cells stay locked, next to it. @param {number | null} step */
  goto(step) {
    this.step = step;
    this.isCellLatest = false;
  }
}
