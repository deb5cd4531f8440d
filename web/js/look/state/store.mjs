// One text on the screen: its progress, how much of it is shown, and what is selected in it. Panels listen to it, so
// that a choice in one panel updates all of them.

import { isSamePicture } from "../../lib/heads.mjs";
import { linkedChat } from "../../lib/link.mjs";
import { Emitter } from "../../lib/emitter.mjs";
import { effect, signal } from "../../vendor/signals.mjs";
import { pictureName } from "../../lib/words.mjs";
import { Playback } from "./playback.mjs";
import { completePointer, isBusy, isGiven } from "./pointer.mjs";
import { SelectedHeads } from "./selected_heads.mjs";
import { Selection } from "./selection.mjs";
import { ShownAnswer } from "./shown_answer.mjs";
import { TextSource } from "./text_source.mjs";

/** @import { LinkState, PictureId, Pointer, Roles, SentPointer } from "../../types.js" */
/** @import { View } from "./view.mjs" */

const MIN_REPLAYED = 8; // written tokens
const SHOWN_TOPICS = ["tokens", "thumbnails", "weights", "focus", "step"];
const EVERYTHING = ["state", "open", ...SHOWN_TOPICS];

/**
 * Topics:
 * - state: the pointer, or whether the text grows
 * - open: another picture
 * - tokens, thumbnails: those that are shown
 * - weights: those of the open picture
 * - focus: the cell that is described
 * - step: the step to which the text is shown
 * - heads: which are selected together, or where they look
 * - chosen: the visitor chose a picture on its tile, or by its name
 * - view: the options, or what else decides how the text is shown
 * - problem
 */
export class Store extends Emitter {
  /** @type {Pointer} */
  #pointer = completePointer({ state: "loading" });
  #playback = new Playback(
    () => this.#showMore(),
    (n) => this.#source.isReady(n),
  );
  #source = new TextSource(this, (...topics) => this.emit(...topics));
  /** @type {Set<string>} runs that were shown before */
  #abandonedRuns = new Set();
  #problem = "";
  #roles = signal(/** @type {Roles | null} */ (null));

  /** @param {View} view */
  constructor(view) {
    super();
    this.view = view;
    this.answer = new ShownAnswer();
    this.selection = new Selection(this, (...topics) => this.emit(...topics));
    this.selectedHeads = new SelectedHeads(this, () => this.emit("heads"));
    view.on((changed) => {
      if (changed.includes("open")) {
        this.#source.open();
        this.emit("open", "weights", "focus");
      }
      this.emit("view");
    });
  }

  // The text and its data.

  /** @returns {Readonly<Pointer>} */
  get pointer() {
    return this.#pointer;
  }

  /** How the text appears. */
  get playback() {
    return this.#playback;
  }

  /** What is known of the run. */
  get data() {
    return this.#source.data;
  }

  /** The tokens that are shown: the known ones, or fewer while the text appears at its speed. */
  get tokens() {
    return this.data.firstTokens(this.#playback.shown);
  }

  /** How many tokens are shown. */
  get length() {
    return this.tokens.length;
  }

  /** The ids of all tokens that are known, shown or not; of a halted text only the shown ones belong to it. */
  get ids() {
    return this.#playback.hasHalted ? this.tokens.map(({ id }) => id) : this.data.ids;
  }

  /** Whether more of the text will be shown. */
  get isGrowing() {
    return this.#playback.isBehind || isBusy(this.#pointer.state);
  }

  /** How many of the shown tokens have been read: the newest of a growing text is read to write the next one. */
  get readable() {
    const { length } = this.tokens;
    return this.isGrowing && length > Math.max(this.#pointer.n_prompt, 1) ? length - 1 : length;
  }

  get rows() {
    return Math.min(this.data.rows, this.readable);
  }

  /** How many tokens can be drawn: a cell needs its row and its tokens, and either may come last. */
  get count() {
    return Math.min(this.weights.rows, this.readable);
  }

  /** The last row that panels will soon show, so that they can load it ahead. */
  get soonRow() {
    return Math.min(this.#playback.soon - 2, this.#pointer.rows - 1);
  }

  /** The weights of the open picture. */
  get weights() {
    return this.data.weights;
  }

  get open() {
    return this.view.open;
  }

  get openName() {
    return pictureName(this.open, this.#pointer);
  }

  /** The fetcher of this run's data. */
  get fetcher() {
    return this.#source.fetcher;
  }

  /** The first token that was written. */
  get firstStep() {
    return Math.max(this.pointer.n_prompt, 1);
  }

  /** Where a replay begins: with the first written token or, where only few were written, with the text. */
  get firstReplayed() {
    return this.isGrowing || this.length - this.firstStep >= MIN_REPLAYED ? this.firstStep : 1;
  }

  /** Let the text wait for a panel before it shows more. @param {(n: number) => boolean} isReady for n tokens */
  waitFor(isReady) {
    this.#source.waitFor(isReady);
  }

  // Another text, or more of it.

  /**
   * Show nothing, of a model with the shape of `like`, until the server points to a run.
   * @param {Partial<Pick<Pointer, "n_layer" | "n_head" | "sha256">>} [like]
   */
  begin({ n_layer = 0, n_head = 0, sha256 = "" } = {}) {
    this.#leave();
    this.#pointer = completePointer({ n_layer, n_head, sha256 });
    this.#reset();
    this.emit(...EVERYTHING);
  }

  /** Apply a pointer: to a new run, or further in this one. @param {SentPointer | null} pointer */
  follow(pointer) {
    if (!pointer || this.isLate(pointer)) return;
    const before = this.#pointer;
    if (!pointer.run) {
      this.#pointer = before.run
        ? completePointer(before, { notices: pointer.notices ?? [] })
        : completePointer(pointer);
      this.emit("state");
      return;
    }
    const isNew = pointer.run !== before.run;
    if (isNew) this.#leave();
    const wasGrowing = this.isGrowing;
    this.#pointer = completePointer({ notices: before.notices }, pointer);
    const hasEnded = wasGrowing && !this.isGrowing;
    if (isNew) {
      this.#reset();
      this.view.openAgain(this.#pointer, before);
    }
    const written = pointer.new ?? [];
    this.data.addTokens(this.#pointer.tokens - written.length, written);
    // The beginning of a text is shown at once, the rest at its speed.
    this.#playback.extend(this.data.tokens.length, isNew || isGiven(pointer.state));
    if (isNew) this.emit(...EVERYTHING);
    else this.emit("state", ...(hasEnded ? SHOWN_TOPICS : []));
    void this.#source.update();
  }

  /** The server has the prepared opening that is shown. @param {SentPointer} pointer to its run */
  confirm(pointer) {
    this.#pointer = completePointer(pointer);
    this.fetcher.name(this.#pointer.run);
    this.emit("state", "tokens", "focus", "step"); // everything drawn per run is redrawn, unchanged
  }

  /**
   * An opening may arrive late, when its model is already writing; an abandoned text may still report its end.
   * @param {SentPointer} pointer
   */
  isLate(pointer) {
    return isGiven(pointer.state)
      ? isBusy(this.#pointer.state) && pointer.model === this.#pointer.model
      : this.#abandonedRuns.has(pointer.run ?? "");
  }

  /** Show the text of another store, which is about to show something else. @param {Store} other */
  adopt(other) {
    this.#leave();
    this.#abandonedRuns.delete(other.pointer.run);
    this.#pointer = other.#pointer;
    this.#reset(other.data);
    if (!isSamePicture(this.open, other.open)) this.data.forgetWeights();
    this.#playback.reset(other.length);
    if (other.#playback.hasHalted) this.#playback.halt();
    else this.#playback.extend(this.data.tokens.length, true);
    this.data.show(this.readable);
    this.emit(...EVERYTHING);
    void this.#source.update();
  }

  /** End the text with what is shown of it. */
  halt() {
    this.#playback.halt();
    this.emit("state", ...SHOWN_TOPICS);
  }

  /** Stop following the text that is being written. */
  abandon() {
    if (!isBusy(this.#pointer.state)) return;
    this.#leave();
    this.#pointer = completePointer(this.#pointer, { state: "stopped" });
    this.emit("state");
  }

  #leave() {
    if (this.#pointer.run) this.#abandonedRuns.add(this.#pointer.run);
  }

  /** Another run. @param {import("./run_data.mjs").RunData} [data] what is known of it */
  #reset(data) {
    this.#source.begin(data);
    this.#playback.reset(0);
    this.selection.clear();
  }

  /** What has arrived moves on with the text, in the same frame; the rest is drawn when it arrives. */
  #showMore() {
    const rows = this.#playback.shown - 1;
    const late = [...(this.data.rows < rows ? ["thumbnails"] : []), ...(this.weights.rows < rows ? ["weights"] : [])];
    this.data.show(this.readable);
    this.emit(...SHOWN_TOPICS.filter((topic) => !late.includes(topic)));
    if (this.#playback.needsRows(this.data.rows, this.#pointer.rows)) void this.#source.update();
  }

  /** Draw everything again: the page's colours changed. */
  redraw() {
    this.emit("thumbnails", "weights", "focus", "view");
  }

  /** Something changed that decides how the text is shown, and is no option of the view. */
  refreshView() {
    this.emit("view");
  }

  // Messages to the visitor.

  /** The latest problem; "" for none. */
  get problem() {
    return this.#problem;
  }

  /** @param {string} problem what went wrong; "" for nothing */
  report(problem) {
    if (this.#problem === problem) return;
    this.#problem = problem;
    this.emit("problem");
  }

  /** Add a notice to those that the server sent. @param {string} notice */
  notify(notice) {
    this.#pointer = { ...this.#pointer, notices: [...this.#pointer.notices, notice] };
    this.emit("state");
  }

  /** The roles of the model's heads; null until they are known. */
  get roles() {
    return this.#roles.value;
  }

  /** @param {Roles | null} roles */
  setRoles(roles) {
    this.#roles.value = roles;
  }

  /** Resolves once the roles are known. */
  async rolesKnown() {
    /** @type {(() => void) | undefined} */
    let end;
    await new Promise((resolve) => (end = effect(() => this.roles && resolve(null))));
    end?.();
  }

  // For links, and between the panels.

  /** @returns {LinkState} */
  get linkState() {
    const { model, sha256, n_prompt, head_mask, settings } = this.pointer;
    const { ids, open } = this;
    const { locked, step } = this.selection;
    const chat = this.pointer.chat ? { chat: linkedChat(this.pointer.chat, this.data.tokens) } : {};
    const text = { model, sha256, ids, n_prompt, head_mask, settings, ...chat };
    return { ...text, open, locked, step, options: this.view.options };
  }

  /** Open a picture that the visitor chose on its tile, or by its name. @param {PictureId} picture */
  choosePicture(picture) {
    this.view.choose(picture);
    this.emit("chosen");
  }
}
