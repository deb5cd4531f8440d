// What the browser knows of the run on the screen. Panels listen to it, and what is chosen in one moves all.

import { RunFetcher } from "./fetch.mjs";
import { HeadWeights, Thumbnails } from "./triangle.mjs";

export class Store {
  constructor() {
    this.listeners = {};
    this.pointer = { state: "loading" };
    this.open = [0, 0];
    this.left = new Set(); // runs that another one has followed
    this.reset();
  }

  /** Topics: state, tokens, thumbnails, weights (of the open head), focus, problem. */
  on(topics, callback) {
    for (const topic of topics.split(" ")) (this.listeners[topic] ??= []).push(callback);
  }

  emit(...topics) {
    const called = new Set(topics.flatMap((topic) => this.listeners[topic] ?? []));
    for (const callback of called) callback();
  }

  reset() {
    this.tokens = [];
    this.rows = 0;
    this.thumbnails = new Thumbnails((this.pointer.n_layer ?? 0) * (this.pointer.n_head ?? 0));
    this.weights = new HeadWeights();
    this.hover = null; // {query, key?} under the pointer
    this.locked = null; // {query, key?} that was clicked
    const text = () => ({
      sha256: this.pointer.sha256,
      ids: this.tokens.map((token) => token.id),
      n_prompt: this.pointer.n_prompt,
    });
    this.fetcher = new RunFetcher(this.pointer.run, text);
  }

  /** Go where the server points: to a new run, or further in this one. */
  follow(pointer) {
    if (!pointer) return;
    const before = this.pointer;
    // An opening may come late, when its model already writes; a text that was left may still report its end.
    const writing = ["waiting", "writing"].includes(before.state);
    if (pointer.state === "opening" ? writing && pointer.model === before.model : this.left.has(pointer.run)) return;
    if (!pointer.run) {
      this.pointer = before.run ? { ...before, notices: pointer.notices } : pointer;
      this.emit("state");
      return;
    }
    this.pointer = { notices: before.notices, ...pointer };
    if (pointer.run !== before.run) {
      this.left.add(before.run);
      const shape = pointer.n_layer !== before.n_layer || pointer.n_head !== before.n_head;
      if (pointer.head && (shape || before.sha256 !== pointer.sha256)) this.open = pointer.head;
      this.open = [Math.min(this.open[0], pointer.n_layer - 1), Math.min(this.open[1], pointer.n_head - 1)];
      this.reset();
      this.emit("state", "tokens", "thumbnails", "weights", "focus");
    } else {
      this.emit("state");
    }
    this.refresh();
  }

  /** Open a head. */
  choose(layer, head) {
    if (this.open[0] === layer && this.open[1] === head) return;
    this.open = [layer, head];
    this.weights = new HeadWeights();
    this.emit("weights", "focus");
    this.refresh();
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
    const [header, data] = await fetcher.rows(this.rows);
    if (fetcher !== this.fetcher) return; // another run came meanwhile
    header.tokens.forEach((text, i) => {
      this.tokens[header.start + i] = { text, id: header.ids[i], logprob: header.logprobs[i] };
    });
    this.thumbnails.merge(header.rows, header.factor, header.first, data);
    this.rows = header.rows;
    this.emit("tokens", "thumbnails", "focus");
  }

  async pullHead() {
    const { fetcher, weights } = this;
    if (weights.rows >= this.rows) return;
    const floats = await fetcher.head(...this.open, weights.rows);
    if (fetcher !== this.fetcher || weights !== this.weights) return;
    weights.append(floats);
    this.emit("weights", "focus");
  }

  /** The cell that is spoken of: under the pointer, else locked, else of the newest token. */
  get focus() {
    const rows = Math.min(this.weights.rows, this.tokens.length);
    if (!rows) return null;
    const chosen = this.hover ?? this.locked ?? { query: rows - 1 };
    if (chosen.query >= rows) return { query: chosen.query, key: null };
    return { query: chosen.query, key: chosen.key ?? this.weights.strongest(chosen.query) };
  }

  point(cell) {
    if (this.hover?.query === cell?.query && this.hover?.key === cell?.key && !this.hover === !cell) return;
    this.hover = cell;
    this.emit("focus");
  }

  lock(cell) {
    const same = this.locked && cell && this.locked.query === cell.query && this.locked.key === cell.key;
    this.locked = same ? null : cell;
    this.emit("focus");
  }
}
