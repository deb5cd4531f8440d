// One text on the screen and what is selected of it. Panels listen to it, and a choice in one of them moves all.

import { clamp } from "../../lib/numbers.mjs";
import { isBusy } from "./pointer.mjs";
import { Selection } from "./selection.mjs";
import { TextSource } from "./text_source.mjs";

/** @import { Cell, LinkState } from "../../types.js" */
/** @import { Roles } from "../ask/head_roles.mjs" */
/** @import { Overlay } from "../ask/question.js" */

export class Store extends TextSource {
  #selection = new Selection();
  /** @type {Overlay | null} */
  #overlay = null;
  #hidesOverlay = false;
  /** @type {Roles | null} */
  #roles = null;

  /** What an answer says of every head; null for nothing. Topic: overlay. */
  get overlay() {
    return this.#overlay;
  }

  /** What colours the grid; null for the attention. */
  get shownOverlay() {
    return this.#hidesOverlay ? null : this.#overlay;
  }

  /** @param {Overlay | null} overlay */
  setOverlay(overlay) {
    if (overlay === this.#overlay) return;
    this.#overlay = overlay;
    if (!overlay) this.#hidesOverlay = false;
    this.emit("overlay");
  }

  /** Between the answer and the attention. */
  toggleOverlay() {
    this.#hidesOverlay = !this.#hidesOverlay;
    this.emit("overlay");
  }

  /** What the heads of the model do; null until it is known. Topic: roles. */
  get roles() {
    return this.#roles;
  }

  /** @param {Roles | null} roles */
  setRoles(roles) {
    if (roles === this.#roles) return;
    this.#roles = roles;
    this.emit("roles");
  }

  get hover() {
    return this.#selection.hover;
  }

  get locked() {
    return this.#selection.locked;
  }

  get step() {
    return this.#selection.step;
  }

  /** How many tokens are shown. */
  get length() {
    return this.tokens.length;
  }

  /** The first token that was written. */
  get firstStep() {
    return Math.max(this.pointer.n_prompt, 1);
  }

  /** The token whose writing is looked at; null before one was written. */
  get chosen() {
    const newest = this.tokens.length - 1;
    return newest < this.firstStep ? null : Math.min(this.step ?? newest, newest);
  }

  /** The query whose row led to the chosen token: all panels show this one, unless another is pointed at or locked. */
  get currentRow() {
    return this.chosen === null ? this.count - 1 : this.chosen - 1;
  }

  /** The token whose logits say what comes at the step that is shown; -1 where nothing can be said yet. */
  get predictor() {
    if (this.chosen !== null) return this.chosen - 1;
    // Where nothing has been written yet, the last token's logits say what may come.
    return isBusy(this.pointer.state) ? -1 : this.tokens.length - 1;
  }

  /** The cell to describe; null before there is one. */
  get focus() {
    if (!this.count) return null;
    const first = this.view.options.hideFirst ? 1 : 0;
    return this.#selection.focus(this.currentRow, this.count, (query) => this.weights.strongest(query, first));
  }

  /** The tokens whose attention is drawn: that of the focus, and all that are locked. */
  get queries() {
    const queries = [this.focus, ...this.locked].flatMap((cell) => (cell ? [cell.query] : []));
    return [...new Set(queries)].filter((query) => query < this.count);
  }

  /** @returns {LinkState} */
  get linkState() {
    const { model, sha256, n_prompt, head_mask, settings } = this.pointer;
    const { ids, open, locked, step } = this;
    return { model, sha256, ids, n_prompt, head_mask, settings, open, locked, step, options: this.view.options };
  }

  /** @param {Cell | null} cell */
  point(cell) {
    if (this.#selection.point(cell)) this.emit("focus");
  }

  /**
   * Lock a cell instead of those locked before, or unlock it; null unlocks all.
   * @param {Cell | null} cell
   * @param {boolean} [more] whether it joins those locked before
   */
  lock(cell, more = false) {
    this.#selection.lock(cell, more);
    this.emit("focus");
  }

  /** Look at the writing of one token, or with null at the newest again. @param {number | null} step */
  goto(step) {
    this.#selection.step = step === null || step >= this.tokens.length ? null : Math.max(step, this.firstStep);
    this.emit("step", "focus", "thumbnails");
  }

  /** Select a token: the step at which it was written, or the row of one of the prompt. @param {number} position */
  select(position) {
    const newest = this.tokens.length - 1;
    if (position < this.firstStep) this.lock({ query: position });
    else {
      this.#selection.locked = [];
      // While more is to come, the newest token is held; later it is where the text ends.
      this.goto(position === newest && !this.isGrowing ? null : position);
    }
  }

  /** Go some steps on, or back with a negative number. @param {number} by */
  stepBy(by) {
    const newest = this.tokens.length - 1;
    const step = clamp((this.chosen ?? newest) + by, this.firstStep, newest);
    if (newest >= this.firstStep) this.select(step);
  }

  /** Lock the query of the selected step, or let go of all that is locked. */
  pinSelected() {
    const { focus } = this;
    if (this.locked.length || !focus) this.lock(null);
    else this.lock({ query: focus.query });
  }

  /**
   * Select exactly this.
   * @param {{ hover: Cell | null, locked: Cell[], step: number | null }} selection
   */
  inspect({ hover, locked, step }) {
    const isOtherStep = step !== this.step;
    this.#selection = new Selection(locked, step);
    this.#selection.point(hover);
    this.emit("focus", ...(isOtherStep ? ["step"] : []));
  }

  /** Select what a link says. @param {Cell[]} locked @param {number | null} step */
  restore(locked, step) {
    this.#selection = new Selection(locked, step);
    this.emit("state", "focus", "step", "thumbnails");
  }

  clearSelection() {
    this.#selection = new Selection();
  }
}
