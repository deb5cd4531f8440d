// Two texts that are compared: they share a clock, a selection and the view's options; each has an open head.

import { onChange, whenever } from "../../lib/reactive.mjs";
import { computed, signal } from "../../vendor/signals.mjs";
import { isOwn } from "../state/pointer.mjs";
import { NOTHING } from "../state/selection.mjs";
import { ShownText } from "../state/shown_text.mjs";
import { Alignment } from "./alignment.mjs";
import { AlignmentRequests } from "./alignment_requests.mjs";
import { areReadDifferently, Difference, firstDifferingRow } from "./difference.mjs";
import { LinkedHeads } from "./linked_heads.mjs";

/** @import { Cell } from "../../types.js" */
/** @import { Selected } from "../state/selection.mjs" */
/** @import { View } from "../state/view.mjs" */
/** @import { SideName } from "./alignment.mjs" */

/** @type {SideName[]} */
export const SIDES = ["a", "b"];

/** @param {SideName} side @returns {SideName} */
export const otherSide = (side) => (side === "a" ? "b" : "a");

/** @type {Record<SideName, Cell | null>} */
const NOWHERE = { a: null, b: null };

const MIN_SHARED_PART = 0.1; // of the longer text: if less is shared, a picture of the difference is nearly empty

export class Pair {
  #alignment = signal(new Alignment([], null));
  #requests = new AlignmentRequests(
    (alignment) => this.#show(alignment),
    (error) => this.stores.b.report(`Could not align the texts: ${error.message}`),
  );
  #difference = computed(() => {
    const { a, b } = this.stores;
    void [a.drawing, a.count, b.drawing, b.count]; // the weights of a picture grow
    return new Difference(this.alignment, { a: a.weights, b: b.weights });
  });
  /** The step that the visitor chose; null to follow the writing. */
  #clock = signal(/** @type {number | null} */ (null));
  /** @type {Record<SideName, Selected>} what was selected last on each side */
  #selected = { a: NOTHING, b: NOTHING };
  #runs = { a: "", b: "" };
  #alignedRun = ""; // of A
  #rested = NOWHERE; // the rows shown at rest, as cells that nobody points at
  /** The side whose cell is described on both. */
  #pointed = signal(/** @type {SideName} */ ("a"));

  /** @param {View} view of A, whose options B follows */
  constructor(view) {
    this.view = view;
    this.heads = new LinkedHeads(view, () => this.stores);
    /** @type {Record<SideName, ShownText>} */
    this.stores = { a: new ShownText(view), b: new ShownText(this.heads.viewB) };
    const [a, b] = SIDES.map((side) => this.stores[side]);
    whenever(
      () => [...a.progress, ...b.progress],
      () => this.#grow(),
    );
    for (const side of SIDES) {
      const store = this.stores[side];
      onChange(
        () => [store.selection.selected, store.pointer.run],
        () => this.#follow(side),
      );
    }
    onChange(
      () => [a.open, a.weights, a.count, b.open, b.weights, b.count],
      () => this.isComplete && this.#mirrorFrom(this.#pointed.peek()), // the strongest key of its row may be another
    );
    /** Controls the playback of both texts. */
    this.playback = {
      isPaused: false,
      pause: (/** @type {boolean} */ isPaused) => {
        SIDES.forEach((side) => this.stores[side].playback.pause(isPaused));
        this.playback.isPaused = isPaused;
      },
      skip: () => SIDES.forEach((side) => this.stores[side].playback.skip()),
      setSpeed: (/** @type {number} */ speed) => SIDES.forEach((side) => this.stores[side].playback.setSpeed(speed)),
    };
  }

  get alignment() {
    return this.#alignment.value;
  }

  /** All that changes while the texts are written and aligned. */
  get progress() {
    return [this.alignment, ...SIDES.flatMap((side) => this.stores[side].progress)];
  }

  /** What both sides describe. */
  get place() {
    return [this.step, this.chosen, ...SIDES.map((side) => this.stores[side].selection.selected)];
  }

  get isComplete() {
    return SIDES.every((side) => this.stores[side].pointer.run);
  }

  /** Whether a text is still being written or shown. */
  get isGrowing() {
    return SIDES.some((side) => this.stores[side].isGrowing);
  }

  /** The difference between the open heads of both sides. */
  get difference() {
    return this.#difference.value;
  }

  /** Whether the texts diverge so early that hardly any of their tokens can be compared. */
  get isApart() {
    const { divergence, shared } = this.alignment;
    const longest = Math.max(...SIDES.map((side) => this.stores[side].length));
    return divergence !== null && shared < MIN_SHARED_PART * longest;
  }

  /** The first piece from which the two can differ. */
  get firstRow() {
    return firstDifferingRow(this.alignment, this.stores.a.pointer, this.stores.b.pointer);
  }

  // The clock.

  /** The token of a side at a step, which may be beyond its end. @param {SideName} side @param {number} step */
  tokenAt(side, step) {
    return this.alignment.tokenAt(side, step);
  }

  /** The token of a side at a step; undefined where it has none. @param {SideName} side @param {number} step */
  tokenOf(side, step) {
    return this.alignment.isGap(side, step) ? undefined : this.stores[side].tokens[this.tokenAt(side, step)];
  }

  /** The number of steps. */
  get length() {
    return Math.max(...SIDES.map((side) => this.alignment.stepOf(side, this.stores[side].length - 1) + 1), 0);
  }

  get firstStep() {
    return Math.min(...SIDES.map((side) => this.alignment.stepOf(side, this.stores[side].firstStep)));
  }

  get firstReplayed() {
    return this.firstStep;
  }

  /** The step that the clock was set to; null while it follows the writing. */
  get step() {
    return this.#clock.value;
  }

  /** The locked cell that both sides describe; null while they describe a step. */
  get leading() {
    return this.stores[this.#pointed.value].selection.leading;
  }

  /** The step that both sides name: the one after the locked row, else that of the clock. */
  get chosen() {
    const { leading, length } = this;
    if (!leading) return this.#shown;
    const step = this.alignment.stepOf(this.#pointed.value, leading.query + 1);
    return this.isComplete && step < length ? step : null;
  }

  /**
   * The step of the clock. While it follows the writing, the newest step that both sides have; of complete texts, the
   * last one before which neither has ended.
   */
  get #shown() {
    if (!this.isComplete || this.length <= this.firstStep) return null;
    const growing = SIDES.filter((side) => this.stores[side].isGrowing);
    const newest = growing.map((side) => this.alignment.stepOf(side, this.stores[side].length - 1));
    const ends = SIDES.map((side) => this.alignment.stepOf(side, this.stores[side].length));
    const live = Math.min(...(newest.length ? newest : ends));
    return Math.max(this.firstStep, Math.min(this.#clock.value ?? live, this.length - 1));
  }

  /**
   * The last word of each side whose next word is compared while nothing is chosen: the last one of texts that end
   * alike or were given, else the one after which two models part. Null if these texts have no such words.
   * @returns {Record<SideName, number> | null}
   */
  get #resting() {
    const { alignment, isAligned, isGrowing, stores } = this;
    const { a, b } = stores;
    if (!this.isComplete || !isAligned || isGrowing || this.#clock.value !== null || this.leading) return null;
    const [lastA, lastB] = [a, b].map(({ length, pointer }) => Math.min(length, pointer.context_length) - 1);
    const isAlike = alignment.stepOf("a", lastA) === alignment.stepOf("b", lastB) && alignment.isShared("a", lastA);
    if (isAlike || (isOwn(a.pointer) && isOwn(b.pointer))) return { a: lastA, b: lastB };
    if (!alignment.divergence || !areReadDifferently(a.pointer, b.pointer)) return null;
    return { a: (alignment.divergesAt("a") ?? 0) - 1, b: (alignment.divergesAt("b") ?? 0) - 1 };
  }

  /** The word of a side whose next word is compared; -1 for none. @param {SideName} side */
  asked(side) {
    const { leading, chosen } = this;
    if (leading) return this.tokenAt(side, this.alignment.stepOf(this.#pointed.value, leading.query + 1)) - 1;
    return this.#resting?.[side] ?? (chosen === null ? -1 : this.tokenAt(side, chosen) - 1);
  }

  get pointer() {
    return this.stores.a.pointer;
  }

  /** @param {number | null} step */
  goto(step) {
    this.#clock.value = step ?? (this.isGrowing ? null : this.length - 1);
    for (const side of SIDES) this.#inspect(side, { ...this.stores[side].selection.selected, isCellLatest: false });
    this.#showStep();
  }

  /** Restore A's selection from before the comparison. @param {number | null} step @param {Cell[]} locked */
  restore(step, locked) {
    if (step !== null) this.goto(this.alignment.stepOf("a", step));
    for (const cell of locked) this.stores.a.selection.lock(cell, true);
  }

  /** Set both sides to the clock, and keep the rest of the selection. */
  #showStep() {
    const rest = this.#resting;
    if (rest) {
      this.#rest(rest);
      return;
    }
    const at = this.#shown;
    if (at === null) return;
    for (const side of SIDES) {
      const { selection, length } = this.stores[side];
      this.#inspect(side, { ...selection.selected, step: Math.min(this.tokenAt(side, at), length - 1) });
    }
    this.#mirrorFrom(this.#pointed.value);
  }

  /** Show the row of each side whose next word is compared. @param {Record<SideName, number>} rest */
  #rest(rest) {
    this.#rested = { a: { query: rest.a }, b: { query: rest.b } };
    for (const side of SIDES) {
      this.#inspect(side, { ...this.stores[side].selection.selected, hover: this.#rested[side], step: null });
    }
  }

  // The selection.

  /** Select on one side, not as the visitor's choice. @param {SideName} side @param {Selected} selected */
  #inspect(side, selected) {
    this.#selected[side] = selected;
    this.stores[side].selection.inspect(selected);
  }

  /** Mirror the visitor's selection on one side to the other. @param {SideName} from */
  #follow(from) {
    const { pointer, selection } = this.stores[from];
    const { selected } = selection;
    const { hover, locked, step, isCellLatest } = selected;
    if (pointer.run !== this.#runs[from]) {
      this.#runs[from] = pointer.run; // a new text: its empty selection is not the visitor's choice
      this.#selected[from] = selected;
      this.#showStep();
      return;
    }
    const before = this.#selected[from];
    const isSame =
      hover === before.hover &&
      locked === before.locked &&
      step === before.step &&
      isCellLatest === before.isCellLatest;
    if (!this.isComplete || isSame) return;
    this.#selected[from] = selected;
    this.#pointed.value = hover || locked.length ? from : "a";
    if (!hover && this.#pointed.value !== from) {
      this.#inspect("a", { ...this.#selected.a, hover: null, locked: [], isCellLatest: false });
    }
    if (step !== before.step) {
      this.#clock.value = step === null ? null : this.alignment.stepOf(from, step);
      this.#showStep();
    } else {
      this.#mirrorFrom(this.#pointed.value);
    }
  }

  /** Whether the row that led to the chosen step exists on both sides, and its token is not on one side only. */
  get isOneRow() {
    const at = this.chosen;
    if (at === null) return true;
    const [a, b] = SIDES.map((side) => this.alignment.pieceOf(side, this.tokenAt(side, at) - 1));
    return a !== null && a === b;
  }

  /** Whether a cell is pointed at or locked. */
  get isPointed() {
    const { hover, leading } = this.stores[this.#pointed.value].selection;
    return hover !== null || leading !== null;
  }

  /** Show the same cell on the other side. @param {SideName} from */
  #mirrorFrom(from) {
    const [source, to] = [this.stores[from].selection, otherSide(from)];
    const rest = source.hover && source.hover !== this.#rested[from] ? null : this.#resting;
    if (rest) {
      this.#rest(rest);
      return;
    }
    const isSame = this.isPointed || this.isOneRow;
    const locked = source.locked.flatMap((cell) => this.#mapCell(from, cell) ?? []);
    this.#inspect(to, {
      hover: source.focus && isSame ? this.#mapCell(from, source.focus) : null,
      locked,
      step: this.stores[to].selection.selected.step,
      isCellLatest: source.leading !== null && locked.length > 0,
    });
  }

  /** The same cell on the other side; null if there is none. @param {SideName} from @param {Cell} cell */
  #mapCell(from, { query, key = null }) {
    const { alignment } = this;
    const to = otherSide(from);
    const row = alignment.pieceOf(from, query);
    if (row === null) return null;
    if (key === null) return { query: alignment.last(to, row) };
    const column = alignment.pieceOf(from, key);
    return column === null ? null : { query: alignment.last(to, row), key: alignment.first(to, column) };
  }

  /** Point at a cell of the difference. @param {{ row: number, key: number | null } | null} cell */
  point(cell) {
    this.stores.a.selection.point(cell && this.#cellOf("a", cell));
  }

  /** Lock a cell of the difference. @param {{ row: number, key: number | null } | null} cell @param {boolean} more */
  lock(cell, more) {
    this.stores.a.selection.lock(cell && this.#cellOf("a", cell), more);
  }

  /** @param {SideName} side @param {{ row: number, key: number | null }} cell @returns {Cell} */
  #cellOf(side, { row, key }) {
    const query = this.alignment.last(side, row);
    return key === null ? { query } : { query, key: this.alignment.first(side, key) };
  }

  #grow() {
    this.#align();
    this.#showStep();
  }

  /** Whether the alignment is that of the current texts, not of an earlier state of them, and all tokens have come. */
  get isAligned() {
    return (
      this.#requests.isCurrent && SIDES.every((side) => this.stores[side].length >= this.stores[side].pointer.tokens)
    );
  }

  /** Ask how the texts align. Until the answer arrives, the previous alignment stays if it fits these texts. */
  #align() {
    const { a, b } = this.stores;
    if (this.#alignedRun !== a.pointer.run) this.#clock.value = null;
    const isOther = this.#alignedRun !== a.pointer.run || !this.alignment.fits(a.length, b.length);
    this.#alignedRun = a.pointer.run;
    if (isOther) this.#replaceAlignment(new Alignment([], null));
    if (!this.isComplete) {
      this.#requests.want(null);
      return;
    }
    const [left, right] = [a, b].map(({ pointer, ids, length }) => {
      const { run, sha256, n_prompt } = pointer;
      return { run, sha256, n_prompt, ids, n_tokens: length };
    });
    const { isGrowing } = this;
    const key = [left, right].flatMap(({ run, n_prompt, n_tokens }) => [run, n_prompt, n_tokens]);
    this.#requests.want({
      key: [...key, isGrowing].join(),
      a: left,
      b: right,
      isGiven: isOwn(b.pointer),
      isGrowing,
    });
  }

  /** @param {Alignment} alignment from the server */
  #show(alignment) {
    const at = this.#clock.value === null ? null : this.tokenAt("a", this.#clock.value);
    this.#replaceAlignment(alignment);
    if (at !== null) this.#clock.value = alignment.stepOf("a", at); // the current token
    this.#showStep();
  }

  /** @param {Alignment} alignment */
  #replaceAlignment(alignment) {
    this.#alignment.value = alignment;
  }

  /** End the comparison. */
  clear() {
    this.#clock.value = null;
    this.heads.link();
    this.#selected = { a: NOTHING, b: NOTHING };
    for (const side of SIDES) this.stores[side].begin();
  }
}
