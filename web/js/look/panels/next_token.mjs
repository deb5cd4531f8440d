// What the next token is drawn from at the selected step. The bars follow the sliders without the server.

import { make, setFlag } from "../../lib/dom.mjs";
import { LatestLoader, pauseFor } from "../../lib/server/latest.mjs";
import { exact } from "../../lib/numbers.mjs";
import { mostProbable, probabilities, softmax } from "../../lib/sampling.mjs";
import { isBusy } from "../../lib/states.mjs";
import { visible } from "../../lib/words.mjs";
import { vocabulary } from "../state/vocabulary.mjs";
import { OneStop } from "../widgets/one_stop.mjs";

/** @import { Settings } from "../bar/settings.mjs" */
/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { Store } from "../state/store.mjs" */

/**
 * The logits after one token, with everything that does not depend on the sliders.
 * @typedef {object} NextLogits
 * @property {Float32Array} logits
 * @property {string[]} texts of all tokens of the vocabulary
 * @property {Float64Array} own the model's own probabilities
 * @property {number[]} most ids of the most probable tokens
 */

/** @typedef {{ element: HTMLElement, fill: (id: number, drawn: number, own: number) => void }} Row */

const SHOWN = 20; // tokens, and the one that was written
const KEPT = 24; // places whose logits are kept
const MOST_NUMBERS = 1024; // that are loaded at a time where several places are wanted

/**
 * @param {Store} store
 * @param {Settings} settings whose sliders the bars follow
 * @param {(data: object) => void} branch
 */
export function nextTokenPanel(store, settings, branch) {
  /**
   * Write another text with this token at a position.
   * @param {number} token
   * @param {number} at
   */
  const branchAt = (token, at) => {
    const { run, model, sha256, n_prompt } = store.pointer;
    const ids = [...store.tokens.slice(0, at).map(({ id }) => id), token];
    branch({ of: run, model, sha256, n_prompt, ids, instead: store.tokens[at]?.id ?? null });
  };
  const hint = make("p", { class: "hs-status" }, "click one to branch");
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Next token"), hint);
  const next = new NextToken(store, settings, branchAt);
  const element = make("section", { class: "hs-panel hs-next", "aria-label": "Next token" }, top, next.element);
  return { element, next };
}

export class NextToken {
  /** @type {Row[]} */
  #rows = [];
  /** @type {(() => void)[]} */
  #listeners = [];
  /** @type {NextLogits | null} */
  #found = null;
  #position = 0; // of the token before
  /** @type {RunFetcher | null} the run that is shown */
  #source = null;
  /** @type {number | null} the token that was written there */
  #written = null;

  /**
   * @param {Store} store
   * @param {Settings} settings
   * @param {(token: number, at: number) => void} branch
   */
  constructor(store, settings, branch) {
    this.store = store;
    this.settings = settings;
    this.branch = branch;
    this.caption = make("caption", {});
    this.body = make("tbody", {});
    this.stop = new OneStop(this.body);
    const titles = ["token", "drawn with", "model’s"].map((title) => make("th", { scope: "col" }, title));
    titles[1].title = "The probability after temperature, top-k, top-p and min-p";
    titles[2].title = "The model’s own probability, before sampling settings";
    this.table = make("table", {}, this.caption, make("thead", {}, make("tr", {}, ...titles)), this.body);
    this.rest = make("tr", { class: "hs-rest" });
    this.element = make("div", { class: "hs-bars" }, this.table);
    /** @type {LatestLoader<RunFetcher, NextLogits>} */
    this.loader = new LatestLoader({
      load: (fetcher, position, last) => this.load(fetcher, position, last),
      show: (found, position) => this.show(found, position),
      report: (error) => store.report(`Could not fetch the logits: ${error.message}`),
      kept: KEPT,
    });
    store.waitFor((n) => n < 2 || this.loader.has(store.fetcher, n - 2));
    store.on("state tokens step", () => this.want());
    settings.on(() => this.draw());
  }

  want() {
    const { store } = this;
    const { run, state } = store.pointer;
    const { chosen, tokens } = store;
    // Where nothing has been written yet, the last token's logits say what may come.
    const position = chosen !== null ? chosen - 1 : isBusy(state) ? -1 : tokens.length - 1;
    const isShown = run !== "" && position >= 0;
    this.element.hidden = !isShown;
    setFlag(this.table, "aria-busy", this.#source !== store.fetcher || this.#position !== position);
    const { isBehind } = store.playback;
    const pause = isBehind ? 0 : pauseFor(state === "writing");
    this.loader.want(store.fetcher, isShown ? position : null, pause, isBehind ? store.soonRow : position);
  }

  /**
   * @param {RunFetcher} fetcher
   * @param {number} position
   * @param {number} last
   * @returns {Promise<NextLogits[]>}
   */
  async load(fetcher, position, last) {
    const texts = await vocabulary(this.store.pointer.sha256);
    const size = texts.length;
    const count = Math.min(last - position + 1, Math.max(1, Math.floor(MOST_NUMBERS / size)));
    const logits = await fetcher.logits(position, count);
    return Array.from({ length: logits.length / size }, (_, i) => {
      const row = logits.subarray(i * size, (i + 1) * size);
      return { logits: row, texts, own: softmax(row), most: mostProbable(row, SHOWN) };
    });
  }

  /**
   * @param {NextLogits} found
   * @param {number} position
   */
  show(found, position) {
    const changed = found !== this.#found;
    this.#found = found;
    this.#position = position;
    this.#source = this.store.fetcher;
    setFlag(this.table, "aria-busy", false);
    if (changed || this.#written !== this.writtenId) this.draw();
    this.#listeners.forEach((listener) => listener());
  }

  /** @param {() => void} callback whenever other tokens are shown */
  onShown(callback) {
    this.#listeners.push(callback);
  }

  /**
   * The most probable tokens that were not written at the position that is shown; null where they are not known.
   * @param {number} count
   */
  alternatives(count) {
    const found = this.#found;
    if (!found || this.#source !== this.store.fetcher || this.#position + 2 > this.store.pointer.context_length)
      return null;
    const ids = found.most.filter((id) => id !== this.writtenId).slice(0, count);
    const tokens = ids.map((id) => ({ id, text: visible(found.texts[id] ?? ""), probability: found.own[id] }));
    return { at: this.#position + 1, tokens };
  }

  /** The id of the token that was written there; null before there is one. */
  get writtenId() {
    return this.store.tokens[this.#position + 1]?.id ?? null;
  }

  draw() {
    if (!this.#found) return;
    const { logits, own, most } = this.#found;
    const drawn = probabilities(logits, this.settings.values);
    const written = (this.#written = this.writtenId);
    const ids = written === null || most.includes(written) ? most : [...most, written];
    const before = visible(this.store.tokens[this.#position]?.text ?? "");
    this.caption.textContent = `Token ${this.#position + 1}, after “${before}”`;
    while (this.#rows.length < ids.length) this.#rows.push(this.makeRow());
    const rows = this.#rows.slice(0, ids.length);
    rows.forEach((row, i) => row.fill(ids[i], drawn[ids[i]], own[ids[i]]));
    const others = logits.length - ids.length;
    /** @param {Float64Array} all */
    const remainder = (all) => Math.max(0, 1 - ids.reduce((sum, id) => sum + all[id], 0));
    const name = make("th", { scope: "row" }, `${others.toLocaleString("en")} others`);
    const { cells, set } = numberCells();
    set(remainder(drawn), remainder(own));
    this.rest.replaceChildren(name, ...cells);
    const shown = [...rows.map((row) => row.element), ...(others ? [this.rest] : [])];
    // Only when there are more or fewer, so that a button keeps the focus.
    if (this.body.children.length !== shown.length) this.body.replaceChildren(...shown);
    this.stop.update();
  }

  /** A row that is reused for other tokens. @returns {Row} */
  makeRow() {
    const button = make("button", { type: "button", class: "hs-alternative" });
    const mark = make("span", { class: "hs-mark" }, "written");
    const { cells, set } = numberCells();
    const element = make("tr", {}, make("th", { scope: "row" }, button, mark), ...cells);
    let token = 0;
    button.addEventListener("click", () => this.branch(token, this.#position + 1));
    /** @type {Row["fill"]} */
    const fill = (id, drawn, own) => {
      token = id;
      const text = visible(this.#found?.texts[id] ?? "");
      const isWritten = id === this.#written;
      const fits = this.#position + 2 <= this.store.pointer.context_length;
      button.textContent = text;
      button.disabled = isWritten || !fits;
      button.setAttribute("aria-label", isWritten ? `“${text}”` : `Branch here with “${text}”`);
      button.title = isWritten ? "" : fits ? `Write another text with “${text}” here` : "The context is full";
      mark.hidden = !isWritten;
      element.classList.toggle("hs-is-written", isWritten);
      element.dataset.id = String(id);
      set(drawn, own);
    };
    return { element, fill };
  }
}

/** A bar with the probability that a token is drawn with, and the model's own probability. */
function numberCells() {
  const bar = make("span", { class: "hs-amount", "aria-hidden": "true" });
  const [drawnNumber, ownCell] = [make("span"), make("td")];
  /** @param {number} drawn @param {number} own */
  const set = (drawn, own) => {
    bar.style.setProperty("--part", String(drawn));
    drawnNumber.textContent = exact(drawn);
    ownCell.textContent = exact(own);
  };
  return { cells: [make("td", { class: "hs-drawn" }, make("div", {}, bar, drawnNumber)), ownCell], set };
}
