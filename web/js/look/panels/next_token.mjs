// The distribution of the next token at the selected step. The bars follow the sliders without the server. While heads
// are muted or scaled, the bars show the changed model's prediction, and outlines the unchanged one.

import { mouseOrTouch, make, setFlag, setHidden } from "../../lib/dom.mjs";
import { LatestLoader, pauseFor } from "../../lib/latest.mjs";
import { counted, exact, signed } from "../../lib/numbers.mjs";
import { drawnHow, logSoftmax, mostProbable, probabilities, softmax } from "../../lib/sampling.mjs";
import { comparedIds } from "../../lib/without_heads.mjs";
import { readAfter, visible } from "../../lib/words.mjs";
import { isBusy } from "../state/pointer.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";
import { makeCell, makeRow, makeTable, makeTitle } from "../../widgets/table.mjs";
import { bar, setPart } from "../../widgets/controls.mjs";
import { Roving } from "../../widgets/roving.mjs";
import { onChange, whenever } from "../../lib/reactive.mjs";

/** @import { Mixer } from "../state/mixer.mjs" */
/** @import { Sliders, Writing } from "../../types.js" */
/** @import { RunFetcher } from "../state/run_fetcher.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * The logits after one token, with everything that does not depend on the sliders.
 * @typedef {object} NextLogits
 * @property {Float32Array} logits
 * @property {string[]} texts of all tokens of the vocabulary
 * @property {Float64Array} own the model's own probabilities
 * @property {number[]} most ids of the most probable tokens
 */

/**
 * The probabilities of a token: `drawn` with the settings, and the model's `own`. While heads are muted or scaled,
 * `plain` are the same two without that change, and `change` is the difference in log-probability.
 * @typedef {{ drawn: number, own: number, plain?: { drawn: number, own: number }, change?: number }} Shown
 */

/** @typedef {{ element: HTMLElement, fill: (id: number, shown: Shown) => void }} Row */

const MAX_TOKENS = 20; // tokens, plus the written one
const MAX_CACHED = 24; // positions whose logits are cached
const MAX_NUMBERS = 1024; // loaded at a time when several positions are requested
// In a file that lacks most logits, with which settings cannot be applied.
const NO_SETTINGS = "This file has the model’s own probabilities: no temperature or other setting is applied to them.";

/**
 * @param {ShownText} store
 * @param {Sliders} settings whose sliders the bars follow
 * @param {Writing | undefined} writing undefined in a file
 * @param {Mixer} mixer
 */
export function nextTokenPanel(store, settings, writing, mixer) {
  /**
   * Write another text with this token at a position.
   * @param {number} token
   * @param {number} at
   */
  const branchAt = (token, at) => {
    const { run, model, sha256, n_prompt } = store.pointer;
    const ids = [...store.tokens.slice(0, at).map(({ id }) => id), token];
    const instead = store.tokens[at]?.id ?? null;
    writing?.branch({ of: run, model, sha256, n_prompt: Math.min(n_prompt, at), ids, instead });
  };
  const { isLookOnly } = store.view;
  const hint = make(
    "p",
    { class: "hs-status", hidden: isLookOnly },
    mouseOrTouch("click one to branch", "tap one to branch"),
  );
  const title = make("h2", {}, "Next token");
  const top = make("div", { class: "hs-top" }, title, hint);
  const next = new NextToken(store, settings, branchAt, mixer);
  next.onShown(() => (title.title = next.isChanged ? "Lines: with these heads" : ""));
  const how = make("p", { class: "hs-hint" });
  const explain = () =>
    (how.textContent = Object.keys(settings.values).length ? drawnHow(settings.values) : NO_SETTINGS);
  settings.on(explain);
  explain();
  const element = make("section", { class: "hs-panel hs-next", "aria-label": "Next token" }, top, how, next.element);
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
  /** @type {RunFetcher | null} of the run that is shown */
  #source = null;
  /** @type {number | null} the token that was written there */
  #written = null;

  /**
   * @param {ShownText} store
   * @param {Sliders} settings
   * @param {(token: number, at: number) => void} branch
   * @param {Mixer} mixer
   */
  constructor(store, settings, branch, mixer) {
    this.store = store;
    this.mixer = mixer;
    this.settings = settings;
    this.branch = branch;
    this.caption = make("caption", {});
    const titles = [
      "token",
      makeTitle("drawn with", { title: "The probability after temperature, top-k, top-p and min-p" }),
      makeTitle("model’s", { title: "The model’s own probability, before sampling settings" }),
    ];
    const change = "How much the log-probability changes because heads are muted or scaled";
    this.changeTitle = makeTitle("Δ nats", { title: change }); // only while they are
    this.table = makeTable({ caption: this.caption, titles });
    this.titles = this.table.rows[0];
    this.body = this.table.tBodies[0];
    const buttons = () => [...this.body.querySelectorAll("button")].filter((button) => !button.disabled);
    this.roving = new Roving(this.body, buttons);
    this.rest = makeRow([""], { class: "hs-rest" });
    this.element = make("div", { class: "hs-bars" }, this.table);
    /** @type {LatestLoader<RunFetcher, NextLogits>} */
    this.loader = new LatestLoader({
      load: (fetcher, position, last) => this.load(fetcher, position, last),
      show: (found, position) => this.show(found, position),
      report: (error) => store.report(`Could not fetch the logits: ${error.message}`),
      size: MAX_CACHED,
    });
    store.waitFor((n) => n < 2 || !store.view.options.details || this.loader.has(store.fetcher, n - 2));
    whenever(
      () => [...store.progress, store.selection.selected, store.count, store.open, store.view.options],
      () => this.want(),
    );
    settings.on(() => this.draw());
    onChange(
      () => [store.view.options.details, mixer.changed],
      () => {
        this.draw();
        this.#listeners.forEach((listener) => listener());
      },
    );
  }

  /** The token after which the probabilities are shown. */
  get position() {
    return this.#position;
  }

  want() {
    const { store } = this;
    const { run, state } = store.pointer;
    const position = store.selection.predictor;
    const isShown = store.view.options.details && run !== "" && position >= 0;
    // Until another text begins, the bars of the previous one keep their space.
    setHidden(this.element, !isShown && !(this.#found && isBusy(state)));
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
    const count = Math.min(last - position + 1, Math.max(1, Math.floor(MAX_NUMBERS / size)));
    const logits = await fetcher.logits(position, count);
    return Array.from({ length: logits.length / size }, (_, i) => {
      const row = logits.subarray(i * size, (i + 1) * size);
      return { logits: row, texts, own: softmax(row), most: mostProbable(row, MAX_TOKENS) };
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

  /** @param {() => void} callback called whenever other tokens are shown */
  onShown(callback) {
    this.#listeners.push(callback);
  }

  /** How a token would read here. @param {number} id */
  #textAt(id) {
    return readAfter(this.#found?.texts[id] ?? "", this.store.tokens.slice(0, this.#position + 1));
  }

  /**
   * The most probable tokens other than the written one at the position shown; null if they are not known.
   * @param {number} count
   */
  alternatives(count) {
    const found = this.#found;
    if (!found || this.#source !== this.store.fetcher || this.#position + 2 > this.store.pointer.context_length)
      return null;
    const ids = found.most.filter((id) => id !== this.writtenId).slice(0, count);
    const tokens = ids.map((id) => ({ id, text: visible(this.#textAt(id)), probability: found.own[id] }));
    return { at: this.#position + 1, tokens };
  }

  /** Whether the probabilities are those without some heads. */
  get isChanged() {
    return this.#source === this.store.fetcher && this.mixer.logitsAt(this.#position) !== null;
  }

  /** The id of the token that was written there; null before there is one. */
  get writtenId() {
    return this.store.tokens[this.#position + 1]?.id ?? null;
  }

  draw() {
    if (!this.#found) return;
    const { logits, own, most } = this.#found;
    const changed = this.#source === this.store.fetcher ? this.mixer.logitsAt(this.#position) : null;
    const prediction = changed ? changedPrediction(logits, changed, this.settings.values) : null;
    const plain = probabilities(logits, this.settings.values);
    const [drawn, shownOwn] = prediction ? [prediction.drawn, prediction.own] : [plain, own];
    const written = (this.#written = this.writtenId);
    const likely = most.slice(0, MAX_TOKENS);
    const ids = prediction // the order stays while a head is scaled
      ? comparedIds(own, prediction.own, { count: MAX_TOKENS, written, by: own })
      : written === null || likely.includes(written)
        ? likely
        : [...likely, written];
    const before = visible(this.store.tokens[this.#position]?.text ?? "");
    const which = prediction ? ", with heads muted or scaled; outlines: without that" : "";
    this.caption.textContent = `Token ${this.#position + 1}, after “${before}”${which}`;
    if (prediction) this.titles.append(this.changeTitle);
    else this.changeTitle.remove();
    while (this.#rows.length < ids.length) this.#rows.push(this.makeRow());
    const rows = this.#rows.slice(0, ids.length);
    rows.forEach((row, i) => {
      const id = ids[i];
      const more = prediction && { plain: { drawn: plain[id], own: own[id] }, change: prediction.change[id] };
      row.fill(id, { drawn: drawn[id], own: shownOwn[id], ...more });
    });
    const others = logits.length - ids.length;
    if (others) {
      /** @param {Float64Array} all */
      const remainder = (all) => Math.max(0, 1 - ids.reduce((sum, id) => sum + all[id], 0));
      const { cells, set } = numberCells();
      const more = prediction && { plain: { drawn: remainder(plain), own: remainder(own) } };
      set({ drawn: remainder(drawn), own: remainder(shownOwn), ...more });
      this.rest.replaceChildren(...makeRow([counted(others, "other"), ...cells]).cells);
    }
    const shown = [...rows.map((row) => row.element), ...(others ? [this.rest] : [])];
    // Only if the number of rows changes, so that a button keeps the focus.
    if (this.body.children.length !== shown.length) this.body.replaceChildren(...shown);
    this.roving.update();
  }

  /** A row that can be reused for other tokens. @returns {Row} */
  makeRow() {
    const button = make("button", { type: "button", class: "hs-alternative" });
    const mark = make("span", { class: "hs-mark" }, "written");
    const { cells, set } = numberCells();
    const element = makeRow([[button, mark], ...cells]);
    let token = 0;
    button.addEventListener("click", () => this.branch(token, this.#position + 1));
    /** @type {Row["fill"]} */
    const fill = (id, shown) => {
      token = id;
      const text = visible(this.#textAt(id));
      const isWritten = id === this.#written;
      const fits = this.#position + 2 <= this.store.pointer.context_length;
      button.textContent = text;
      const isName = isWritten || this.store.view.isLookOnly;
      const does = `Write another text with “${text}” here`;
      const label = `Branch here with “${text}”`;
      button.disabled = isName || !fits;
      button.setAttribute("aria-label", isName ? `“${text}”` : label);
      button.title = isName ? "" : fits ? does : "The context is full";
      setHidden(mark, !isWritten);
      element.classList.toggle("hs-is-written", isWritten);
      element.dataset.id = String(id);
      set(shown);
    };
    return { element, fill };
  }
}

/** A bar with the probability of drawing a token, the model's own probability, and how much that changed. */
function numberCells() {
  const amount = bar(0, "hs-amount");
  const [drawnNumber, ownCell, changeCell] = [make("span"), makeCell(""), makeCell("", { class: "hs-change" })];
  /** @param {Shown} shown */
  const set = ({ drawn, own, plain, change }) => {
    const before = plain?.drawn;
    setPart(amount, drawn);
    amount.style.setProperty("--plain", String(before ?? 0));
    amount.classList.toggle("hs-outlined", before !== undefined);
    amount.title = before === undefined ? "" : `${exact(before)} with these heads`;
    drawnNumber.textContent = exact(drawn);
    ownCell.textContent = exact(own);
    changeCell.textContent = change === undefined ? "" : signed(change, 3);
    if (plain === undefined) changeCell.remove();
    else ownCell.after(changeCell);
  };
  return { cells: [makeCell(make("div", {}, amount, drawnNumber), { class: "hs-drawn" }), ownCell], set };
}

/**
 * The changed model's prediction, and its difference from the unchanged one.
 * @param {Float32Array} plain logits
 * @param {Float32Array} changed logits
 * @param {Record<string, number>} settings of the sliders
 */
function changedPrediction(plain, changed, settings) {
  const before = logSoftmax(plain);
  const change = logSoftmax(changed).map((logprob, id) => logprob - before[id]);
  return { drawn: probabilities(changed, settings), own: softmax(changed), change };
}
