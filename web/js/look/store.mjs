// What the browser knows of one text on the screen. Panels listen to it, and what is chosen in one moves all.

import { RunFetcher } from "./fetch.mjs";
import { Pace } from "./pace.mjs";
import { HeadWeights, Thumbnails, cells } from "./triangle.mjs";
import { N_METRICS, UNIFORM } from "./view.mjs";
import { pictureName } from "./words.mjs";

const UNTRAINED = 0.1; // total variation distance from looking everywhere alike, below which nothing was learned

export class Store {
  constructor(view) {
    this.view = view;
    this.listeners = {};
    this.pointer = { state: "loading" };
    this.pace = new Pace();
    this.left = new Set(); // runs that another one has followed
    this.reset();
    view.on((changed) => {
      if (changed.includes("open")) {
        this.weights = new HeadWeights();
        this.emit("open", "weights", "focus");
        this.pace.hurry();
        this.refresh();
      }
      this.emit("view");
    });
  }

  /** Topics: state, tokens, thumbnails, open (another picture), weights (of it), focus, step, view, problem. */
  on(topics, callback) {
    for (const topic of topics.split(" ")) (this.listeners[topic] ??= []).push(callback);
  }

  emit(...topics) {
    const called = new Set(topics.flatMap((topic) => this.listeners[topic] ?? []));
    for (const callback of called) callback();
  }

  reset() {
    const { n_layer = 0, n_head = 0 } = this.pointer;
    this.tokens = [];
    this.rows = 0;
    this.pictures = n_layer ? n_layer * (n_head + 2) + 1 : 0;
    this.thumbnails = new Thumbnails(this.pictures);
    this.metrics = new Float32Array(this.pictures * N_METRICS);
    this.weights = new HeadWeights();
    this.hover = null; // {query, key?} under the pointer
    this.locked = []; // of the same, those that were clicked
    this.step = null; // the token whose writing is looked at; null for the newest
    const text = () => ({
      sha256: this.pointer.sha256,
      ids: this.tokens.map((token) => token.id),
      n_prompt: this.pointer.n_prompt,
    });
    this.fetcher = new RunFetcher(this.pointer.run, text);
  }

  get open() {
    return this.view.open;
  }

  get openName() {
    return pictureName(this.open, this.pointer);
  }

  /** The number of a picture, as the server counts them. */
  index([layer, column]) {
    return layer * (this.pointer.n_head + 2) + (layer === this.pointer.n_layer ? 0 : column);
  }

  metric(index, place) {
    return this.metrics[index * N_METRICS + place];
  }

  /** Whether no head has learned where to look. */
  get untrained() {
    const { n_layer, n_head } = this.pointer;
    if (this.rows < 8) return false;
    for (let layer = 0; layer < n_layer; layer++) {
      for (let head = 0; head < n_head; head++) if (this.metric(this.index([layer, head]), UNIFORM) > UNTRAINED) return false;
    }
    return true;
  }

  /** Show nothing, of a model with the shape of `like`, until the server points to a run. */
  begin({ n_layer, n_head, sha256 } = {}) {
    this.left.add(this.pointer.run);
    this.pointer = { state: "none", notices: [], n_layer, n_head, sha256 };
    this.reset();
    this.emit("state", "tokens", "thumbnails", "open", "weights", "focus", "step");
  }

  /** Go where the server points: to a new run, or further in this one. */
  follow(pointer) {
    if (!pointer) return;
    const before = this.pointer;
    // An opening may come late, when its model already writes; a text that was left may still report its end.
    const writing = ["waiting", "writing"].includes(before.state);
    if (["opening", "linked"].includes(pointer.state) ? writing && pointer.model === before.model : this.left.has(pointer.run)) return;
    if (!pointer.run) {
      this.pointer = before.run ? { ...before, notices: pointer.notices } : pointer;
      this.emit("state");
      return;
    }
    this.pointer = { notices: before.notices, ...pointer };
    if (pointer.run !== before.run) {
      this.left.add(before.run);
      this.reset();
      this.openAgain(before);
      this.emit("state", "tokens", "thumbnails", "open", "weights", "focus", "step");
    } else {
      this.emit("state");
    }
    this.refresh();
  }

  /** For another model: the picture that its opening names, or the nearest there is to the one that was open. */
  openAgain(before) {
    const { n_layer, n_head, head, sha256 } = this.pointer;
    const [layer, column] = this.open;
    const same = n_layer === before.n_layer && n_head === before.n_head;
    if (head && !(same && before.sha256 === sha256)) this.view.open = head;
    else if (!same) this.view.open = [Math.min(layer, n_layer - 1), Math.min(column, n_head - 1)];
  }

  /** Fetch what is missing; one request at a time, and again if more came meanwhile. */
  async refresh() {
    this.stale = true;
    if (this.busy) return;
    this.busy = true;
    while (this.stale) {
      this.stale = false;
      try {
        await this.pullRows();
        await this.pullHead();
        this.report("");
        if (this.isWritten) await this.pace.rest();
      } catch (error) {
        this.report(`Could not fetch the attention weights: ${error.message}`);
      }
    }
    this.busy = false;
  }

  report(problem) {
    if (this.problem === problem) return;
    this.problem = problem;
    this.emit("problem");
  }

  async pullRows() {
    const { fetcher, pointer } = this;
    if (!pointer.run || (this.rows >= pointer.rows && this.tokens.length >= pointer.tokens)) return;
    const { header, metrics, thumbnails } = await fetcher.rows(this.rows);
    if (fetcher !== this.fetcher) return; // another run came meanwhile
    header.tokens.forEach((text, i) => {
      this.tokens[header.start + i] = { text, id: header.ids[i], logprob: header.logprobs[i] };
    });
    this.thumbnails.merge(header.rows, header.factor, header.first, thumbnails);
    this.metrics = metrics;
    this.rows = header.rows;
    await this.draw("tokens", "thumbnails", "focus", "step");
  }

  async pullHead() {
    const { fetcher, weights } = this;
    if (weights.rows >= this.rows) return;
    const floats = await fetcher.head(...this.open, weights.rows);
    if (fetcher !== this.fetcher || weights !== this.weights) return;
    weights.append(floats);
    await this.draw("weights", "focus");
  }

  get isWritten() {
    return this.pointer.state === "writing";
  }

  /** Tell the panels; while the text is written, only go on once it is seen. */
  async draw(...topics) {
    if (this.isWritten) await this.pace.draw(() => this.emit(...topics));
    else this.emit(...topics);
  }

  /** The first token that was written. */
  get firstStep() {
    return Math.max(this.pointer.n_prompt ?? 0, 1);
  }

  /** The token whose writing is looked at; null before one was written. */
  get chosen() {
    const newest = this.tokens.length - 1;
    return newest < this.firstStep ? null : Math.min(this.step ?? newest, newest);
  }

  /** How many tokens can be drawn: a cell needs its row and its tokens, and either may come last. */
  get count() {
    return Math.min(this.weights.rows, this.tokens.length);
  }

  /** The cell that is spoken of: under the pointer, else locked last, else of the step or the newest token. */
  get focus() {
    if (!this.count) return null;
    const newest = this.step === null ? this.count - 1 : this.step - 1;
    const chosen = this.hover ?? this.locked.at(-1) ?? { query: newest };
    if (chosen.query >= this.count) return { query: chosen.query, key: null };
    const first = this.view.options.hideFirst ? 1 : 0;
    return { query: chosen.query, key: chosen.key ?? this.weights.strongest(chosen.query, first) };
  }

  /** The tokens whose gaze is drawn: the one that is spoken of, and all that are locked. */
  get queries() {
    const { focus } = this;
    const chosen = [focus, ...this.locked].filter((cell) => cell && cell.query < this.count);
    return [...new Set(chosen.map((cell) => cell.query))];
  }

  /** A row of the open picture. */
  row(query) {
    return this.weights.values.subarray(cells(query), cells(query + 1));
  }

  point(cell) {
    if (this.hover?.query === cell?.query && this.hover?.key === cell?.key && !this.hover === !cell) return;
    this.hover = cell;
    this.emit("focus");
  }

  /** Lock a cell in the place of those that were, or let go of it; with `more` it joins them. */
  lock(cell, more = false) {
    const same = (other) => other.query === cell?.query && (other.key ?? null) === (cell?.key ?? null);
    const others = this.locked.filter((other) => !same(other));
    const had = others.length < this.locked.length;
    if (!cell) this.locked = [];
    else if (more) this.locked = had ? others : [...others, cell];
    else this.locked = had && this.locked.length === 1 ? [] : [cell];
    this.emit("focus");
  }

  /** Look at the writing of one token, or at the newest again with null. */
  goto(step) {
    this.step = step === null || step >= this.tokens.length ? null : Math.max(step, this.firstStep);
    this.emit("step", "focus", "thumbnails");
  }
}
