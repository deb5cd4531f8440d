// One text on the screen: its progress, how much of it is shown, and what is selected in it. All of it is signals, so
// that a choice in one panel updates the others.

import { linkedChat } from "../../lib/link.mjs";
import { onChange, until } from "../../lib/reactive.mjs";
import { batch, signal } from "../../vendor/signals.mjs";
import { isJoined, spokenPicture } from "../../lib/words.mjs";
import { Playback } from "./playback.mjs";
import { completePointer, isBusy, isGiven } from "./pointer.mjs";
import { SelectedHeads } from "./selected_heads.mjs";
import { Selection } from "./selection.mjs";
import { ShownAnswer } from "./shown_answer.mjs";
import { TextSource } from "./text_source.mjs";

/** @import { LinkState, PictureId, Pointer, Roles, SentPointer } from "../../types.js" */
/** @import { KnownAttribution } from "./prepared.mjs" */
/** @import { View } from "./view.mjs" */

const MIN_REPLAYED = 8; // written tokens

export class ShownText {
  #pointer = signal(completePointer({ state: "loading" }));
  #playback = new Playback(
    () => this.#showMore(),
    // The token after it tells whether a word goes on.
    (n) => this.#source.isReady(n) && (n < this.data.tokens.length || !isBusy(this.pointer.state)),
    (n) => isJoined(this.data.tokens, n),
  );
  #source = new TextSource(this);
  /** @type {Set<string>} runs that were shown before */
  #abandonedRuns = new Set();
  #problem = signal("");
  #roles = signal(/** @type {Roles | null} */ (null));
  #drawing = signal(0);
  #clicks = signal(0);
  /** @type {KnownAttribution | null} of the step that is shown; a file keeps it */
  attribution = null;

  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.answer = new ShownAnswer();
    this.selection = new Selection(this);
    this.selectedHeads = new SelectedHeads(this);
    onChange(
      () => [this.open],
      () => this.#source.open(),
    );
  }

  // The text and its data.

  /** @returns {Readonly<Pointer>} */
  get pointer() {
    return this.#pointer.value;
  }

  /** How the text appears. */
  get playback() {
    return this.#playback;
  }

  /** What is known of the run. It arrives while the text is written; `drawing` tells when it is to be drawn. */
  get data() {
    void this.#drawing.value;
    return this.#source.data;
  }

  /** The number of the drawing: another one when data has arrived, or the page's colours have changed. */
  get drawing() {
    return this.#drawing.value;
  }

  /** The tokens that are shown: the known ones, or fewer while the text appears at its speed. */
  get tokens() {
    return this.data.firstTokens(this.#playback.shown);
  }

  /** What the matrix of the open picture shows. */
  get drawn() {
    return [this.open, this.weights, this.length, this.drawing, this.view.options];
  }

  /** All that changes while the text is written and shown. */
  get progress() {
    return [this.pointer, this.isGrowing, this.length, this.drawing];
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
    return this.#playback.isBehind || isBusy(this.pointer.state);
  }

  /** How many of the shown tokens have been read: the newest of a growing text is read to write the next one. */
  get readable() {
    const { length } = this.tokens;
    return this.isGrowing && length > Math.max(this.pointer.n_prompt, 1) ? length - 1 : length;
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
    return Math.min(this.#playback.soon - 2, this.pointer.rows - 1);
  }

  /** The weights of the open picture. */
  get weights() {
    void this.#drawing.value;
    return this.#source.weights;
  }

  get open() {
    return this.view.open;
  }

  /** The name of the open picture in a sentence. */
  get openName() {
    return spokenPicture(this.open, this.pointer);
  }

  /** The fetcher of this run's data. */
  get fetcher() {
    void this.#pointer.value; // a run's own
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
    batch(() => {
      this.#leave();
      this.#pointer.value = completePointer({ n_layer, n_head, sha256 });
      this.#reset();
    });
  }

  /** Apply a pointer: to a new run, or further in this one. @param {SentPointer | null} pointer */
  follow(pointer) {
    if (!pointer || this.isLate(pointer)) return;
    const before = this.#pointer.peek();
    if (!pointer.run) {
      this.#pointer.value = before.run
        ? completePointer(before, { notices: pointer.notices ?? [] })
        : completePointer(pointer);
      return;
    }
    batch(() => {
      const isNew = pointer.run !== before.run;
      if (isNew) this.#leave();
      const now = completePointer({ notices: before.notices }, pointer);
      this.#pointer.value = now;
      if (isNew) {
        this.#reset();
        this.view.openAgain(now, before);
      }
      const written = pointer.new ?? [];
      this.data.addTokens(now.tokens - written.length, written);
      // The beginning of a text is shown at once, the rest at its speed.
      this.#playback.extend(this.data.tokens.length, isNew || isGiven(pointer.state));
    });
    void this.#source.update();
  }

  /** The server has the prepared opening that is shown. @param {SentPointer} pointer to its run */
  confirm(pointer) {
    batch(() => {
      this.#pointer.value = completePointer(pointer);
      this.#source.fetcher.name(pointer.run ?? "");
      this.redraw(); // everything drawn per run is redrawn, unchanged
    });
  }

  /**
   * An opening may arrive late, when its model is already writing; an abandoned text may still report its end.
   * @param {SentPointer} pointer
   */
  isLate(pointer) {
    return isGiven(pointer.state)
      ? isBusy(this.pointer.state) && pointer.model === this.pointer.model
      : this.#abandonedRuns.has(pointer.run ?? "");
  }

  /** Show the text of another store, which is about to show something else. @param {ShownText} other */
  adopt(other) {
    batch(() => {
      this.#leave();
      this.#abandonedRuns.delete(other.pointer.run);
      this.#pointer.value = other.pointer;
      this.#reset(other.data);
      this.#playback.reset(other.length);
      if (other.#playback.hasHalted) this.#playback.halt();
      else this.#playback.extend(this.data.tokens.length, true);
      this.data.show(this.readable);
    });
    void this.#source.update();
  }

  /** End the text with what is shown of it. */
  halt() {
    this.#playback.halt();
  }

  /** Stop following the text that is being written. */
  abandon() {
    if (!isBusy(this.pointer.state)) return;
    this.#leave();
    this.#pointer.value = completePointer(this.pointer, { state: "stopped" });
  }

  #leave() {
    const { run } = this.#pointer.peek();
    if (run) this.#abandonedRuns.add(run);
  }

  /** Another run. @param {import("./run_data.mjs").RunData} [data] what is known of it */
  #reset(data) {
    this.#source.begin(data);
    this.attribution = null;
    this.#playback.reset(0);
    this.selection.clear();
    this.redraw();
  }

  #showMore() {
    this.data.show(this.readable);
    if (this.#playback.needsRows(this.data.rows, this.pointer.rows)) void this.#source.update();
  }

  /** Draw everything again: more has arrived, or the page's colours have changed. */
  redraw() {
    this.#drawing.value = this.#drawing.peek() + 1;
  }

  // Messages to the visitor.

  /** The latest problem; "" for none. */
  get problem() {
    return this.#problem.value;
  }

  /** @param {string} problem what went wrong; "" for nothing */
  report(problem) {
    this.#problem.value = problem;
  }

  /** Add a notice to those that the server sent. @param {string} notice */
  notify(notice) {
    const { notices } = this.pointer;
    this.#pointer.value = { ...this.pointer, notices: [...notices, notice] };
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
  rolesKnown() {
    return until(() => this.roles);
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
    batch(() => {
      this.view.choose(picture);
      this.#clicks.value = this.#clicks.peek() + 1;
    });
  }

  /** How often the visitor chose a picture in this way. */
  get clicks() {
    return this.#clicks.value;
  }
}
