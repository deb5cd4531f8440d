// "Which tokens does this head use?": four measures of one head, how well they agree, and the head as a whole.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make, setFlag } from "../../../lib/dom.mjs";
import { spokenHead } from "../../../lib/heads.mjs";
import { exact, fixed, probabilityMove, signed } from "../../../lib/numbers.mjs";
import { capitalised, spoken } from "../../../lib/words.mjs";
import { amountCell, signedCell } from "../bars.mjs";
import { headAndPrediction } from "../subject.mjs";
import { fourBars, largestSizes, wordButton } from "./four_bars.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeCell, makeRow, makeTable, makeTitle } from "../../../widgets/table.mjs";

/** @import { ShownText } from "../../state/shown_text.mjs" */
/** @import { HeadAnswer, HeadSums, KeyMeasures } from "../../../lens.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

/** @type {Question} */
export const oneHead = {
  key: "head",
  title: TITLES.head,
  hook: "Where it looks, and whether that makes a difference.",
  explanation:
    "Four measures of what the open head takes from each token: where it looks, how much it moves, what that adds to " +
    "the next token’s logit, and what happens when that edge alone is cut.",
  caution:
    "Attention is not explanation: a large weight may move next to nothing. The effect of cutting an edge is " +
    "measured at this position only, and cutting several edges together may have a larger or smaller effect than " +
    "cutting them one at a time.",
  defaults: {},
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  /** @type {HeadAnswer | null} */
  let shown = null;
  const sentence = make("p", { class: "hs-answer" });
  const verdict = make("p", { class: "hs-answer" });
  const whole = make("p", { class: "hs-hint" });
  const keys = new KeysTable(store);
  const onclick = () => store.view.set({ ask: "ledger", askWith: "" });
  const next = smallButton("", onclick);
  keys.buttons.append(next);
  const correlations = make("div", { class: "hs-answer-scroll" });
  const rule = "Weights and norms have no sign, so they are compared with the magnitudes of the other two.";
  const picture = make("div", { class: "hs-answer-part" });
  pointKeys(store, picture, () => shown?.position);
  const agreeing = make("details", {}, make("summary", {}, "How well the measures agree"), correlations);
  agreeing.append(make("p", { class: "hs-hint" }, rule));
  return {
    controls: [],
    picture,
    element: make("div", { class: "hs-answer-part" }, sentence, verdict, keys.element, whole, agreeing),
    request() {
      const body = headAndPrediction(store);
      return typeof body === "string" ? body : { route: "head", body };
    },
    /** @param {HeadAnswer} answer */
    draw(answer) {
      conclude(agreementPlain(answer));
      if (answer !== shown) {
        shown = answer;
        const { tokens, position, layer, head, token, probability, without_head } = answer;
        sentence.textContent =
          `${capitalised(spokenHead([layer, head]))} at ${spoken(tokens[position].text)} (position ${position}), ` +
          `where ${spoken(token.text)} has probability ${exact(probability)}.`;
        verdict.textContent = agreement(answer);
        keys.show(answer);
        picture.replaceChildren(...fourBars(store, answer));
        correlations.replaceChildren(correlationTable(answer));
        const text = without_head.text_loss_change;
        const rest = text === null ? "" : `, and that of the whole text by ${signed(text, 4)} per token`;
        const change = `${signed(without_head.loss_change, 3)} nats${rest}`;
        const length = `The vector that the whole head adds here has length ${fixed(answer.sums.norm, 3)}.`;
        whole.textContent = `${length} Removing the head everywhere changes the loss of this token by ${change}.`;
      }
      const { leading, focus } = store.selection;
      const pinned = leading?.key ?? null;
      const key = pinned === null ? "its strongest key" : spoken(answer.tokens[pinned].text);
      next.textContent = `Show the arithmetic behind ${key}`;
      const marked = focus?.query === answer.position ? focus.key : null;
      for (const table of [keys.table, picture]) markKey(table, marked);
    },
  };
}

/**
 * How well the measures agree, pair by pair.
 * @param {HeadAnswer} answer
 */
function correlationTable(answer) {
  const columns = NAMES.slice(1);
  const rows = NAMES.slice(0, -1).map((one, i) => {
    const cells = columns.map((other, j) => {
      const value = j >= i ? correlation(answer, one, other) : null;
      return j < i ? "" : value === null ? "–" : signed(value);
    });
    return [MEASURES[one].title, ...cells];
  });
  const titles = [makeCell(""), ...columns.map((name) => MEASURES[name].title)];
  const caption = "Spearman’s rank correlation over the keys";
  return makeTable({ caption, titles, rows }, { class: "hs-answer-table", "data-table": "correlations" });
}

const MIN_LOSS_CHANGE = 0.01; // nats: a smaller change of the loss hardly matters
const MIN_AGREEMENT = 0.7; // the lowest rank correlation at which two measures count as agreeing

/** @param {KeyMeasures} key */
const named = ({ text, position }) => `${spoken(text)} (position ${position})`;

/**
 * The key with the largest value.
 * @param {KeyMeasures[]} keys
 * @param {(key: KeyMeasures) => number} value
 */
const strongest = (keys, value) => keys.reduce((best, key) => (value(key) > value(best) ? key : best));

/**
 * The rank correlation of two measures.
 * @param {Pick<HeadAnswer, "correlations">} answer
 * @param {string} one
 * @param {string} other
 */
export function correlation({ correlations }, one, other) {
  const pair = correlations.find(({ measures }) => measures.includes(one) && measures.includes(other));
  return pair?.spearman ?? null;
}

/** What the measures come down to, in plain words. @param {HeadAnswer} answer */
export function agreementPlain({ keys, layer, head, token, probability }) {
  const name = spokenHead([layer, head]);
  const looked = strongest(keys, (key) => key.weight);
  const matters = strongest(keys, (key) => Math.abs(key.loss_change));
  if (keys.length === 1) return `${capitalised(name)} has only one token to look at here.`;
  if (Math.abs(matters.loss_change) < MIN_LOSS_CHANGE) {
    const least = `${MIN_LOSS_CHANGE} nats or more`;
    return `Where ${name} looks hardly matters here: no single cut changes the loss by ${least}.`;
  }
  const moves = probabilityMove(probability, matters.loss_change);
  const start = `${capitalised(name)} looks most at ${named(looked)}`;
  const cut = `with only ${looked === matters ? "this" : "that"} look cut, the probability of ${spoken(token.text)}`;
  return looked === matters
    ? `${start}, and that matters: ${cut} ${moves}.`
    : `${start}, but ${named(matters)} matters more: ${cut} ${moves}.`;
}

/** @param {Pick<HeadAnswer, "keys" | "correlations">} answer */
export function agreement(answer) {
  const { keys } = answer;
  const looked = strongest(keys, (key) => key.weight);
  const matters = strongest(keys, (key) => Math.abs(key.loss_change));
  if (keys.length === 1) return "There is only one token to look at, so all of the head’s attention is on it.";
  if (Math.abs(matters.loss_change) < MIN_LOSS_CHANGE) {
    const most = `at most ${exact(Math.abs(matters.loss_change))} nats`;
    return `Cutting any one edge changes the loss by ${most}: where this head looks hardly matters for this token.`;
  }
  const change = `cutting that edge changes the loss by ${signed(matters.loss_change, 3)} nats`;
  if (looked !== matters) {
    const weights = `weight ${exact(looked.weight)} against ${exact(matters.weight)}`;
    const both = `it looks most at ${named(looked)}, but ${named(matters)} matters most (${weights})`;
    return `The measures disagree: ${both}; ${change}.`;
  }
  const rho = correlation(answer, "weight", "loss_change");
  const both = `It looks most at ${named(looked)}, which also matters most: ${change}.`;
  if (rho === null || rho >= MIN_AGREEMENT) return both;
  return `${both} Over all keys they disagree: the rank correlation of weight and loss change is ${signed(rho)}.`;
}

/** @typedef {keyof HeadSums} MeasureName */
/** @typedef {(value: number, largest: number) => HTMLElement} Cell */

/** @type {Record<MeasureName, { title: string, help: string, cell: Cell }>} */
const MEASURES = {
  weight: {
    title: "weight",
    help: "The attention weight: where the head looks. It does not say how much it takes from there.",
    cell: (value, largest) => amountCell(value, largest, exact(value)),
  },
  norm: {
    title: "norm",
    help:
      "The length of weight × value × W_O, the vector that the key adds to the residual stream (Kobayashi et al. " +
      "2020): how much is moved, but not what for.",
    cell: (value, largest) => amountCell(value, largest, fixed(value, 3)),
  },
  attribution: {
    title: "to logit",
    help: "What that vector adds directly to the next token’s logit; its effects through later layers are not counted.",
    cell: (value, largest) => signedCell(value, largest, signed(value, 3)),
  },
  loss_change: {
    title: "if cut",
    help:
      "How much the loss of the next token changes, in nats, when this one weight is set to 0 and the others stay as " +
      "they are. Everything after it is computed again. If it is positive, the token is less probable without it.",
    cell: (value, largest) => signedCell(value, largest, signed(value, 3)),
  },
};
const NAMES = /** @type {MeasureName[]} */ (Object.keys(MEASURES));
const MAX_SHOWN_KEYS = 12; // keys, until the visitor asks for all

class KeysTable {
  /** @type {MeasureName | ""} the measure by whose size the keys are ordered, "" for their order in the text */
  #order = "weight";
  #isWhole = false;
  /** @type {HeadAnswer | null} */
  #answer = null;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.table = makeTable({}, { class: "hs-answer-table hs-keys", "data-table": "keys" });
    this.more = smallButton("", () => this.toggle());
    this.buttons = make("p", { class: "hs-controls" }, this.more);
    const scroll = make("div", { class: "hs-answer-scroll" }, this.table);
    this.element = make("div", { class: "hs-answer-part" }, scroll, this.buttons);
    pointKeys(store, this.table, () => this.#answer?.position);
  }

  /** @param {HeadAnswer} answer */
  show(answer) {
    this.#answer = answer;
    this.draw();
  }

  toggle() {
    this.#isWhole = !this.#isWhole;
    this.draw();
  }

  /** @param {MeasureName | ""} name */
  sortBy(name) {
    this.#order = name;
    this.draw();
    /** @type {HTMLElement | null} */ (this.table.querySelector(`button[data-order="${name}"]`))?.focus();
  }

  draw() {
    const answer = this.#answer;
    if (!answer) return;
    const order = this.#order;
    const keys = [...answer.keys];
    if (order) keys.sort((a, b) => Math.abs(b[order]) - Math.abs(a[order]));
    const shown = this.#isWhole ? keys : keys.slice(0, MAX_SHOWN_KEYS);
    const largest = largestSizes(keys);
    /** @param {HeadSums} values @param {number[]} most */
    const cells = (values, most) => NAMES.map((name, i) => MEASURES[name].cell(values[name], most[i]));
    const rows = shown.map((key) => makeRow([this.title(key), ...cells(key, largest)], { "data-key": key.position }));
    const none = NAMES.map(() => 0);
    const sums = makeRow(["all keys", ...cells(answer.sums, none)], { class: "hs-sum" });
    sums.title =
      "The norm is that of the sum of all vectors, which may cancel. The change sums edges cut one at a time.";
    fillTable(this.table, {
      name: `What ${spokenHead([answer.layer, answer.head])} takes from each token`,
      titles: [this.heading(""), ...NAMES.map((name) => this.heading(name))],
      rows: [...rows, sums],
    });
    this.more.hidden = keys.length <= MAX_SHOWN_KEYS;
    this.more.textContent = this.#isWhole ? `Show the first ${MAX_SHOWN_KEYS}` : `Show all ${keys.length} tokens`;
  }

  /** A column heading that sorts the table. @param {MeasureName | ""} name */
  heading(name) {
    const words = name ? MEASURES[name].title : "token (key)";
    const button = make("button", { type: "button", "data-order": name, onclick: () => this.sortBy(name) }, words);
    button.title = `${name ? `${MEASURES[name].help} ` : ""}Click to sort by ${name ? "size" : "position"}.`;
    const isOrder = name === this.#order;
    return makeTitle(button, { "aria-sort": isOrder && (name ? "descending" : "ascending") });
  }

  /** @param {KeyMeasures} key */
  title(key) {
    return [wordButton(this.store, this.#answer?.position ?? 0, key), make("small", {}, key.position)];
  }
}

/**
 * Pointing at the row of a key shows its cell in all panels.
 * @param {ShownText} store
 * @param {HTMLElement} element
 * @param {() => number | undefined} query
 */
function pointKeys(store, element, query) {
  element.addEventListener("pointerover", ({ target }) => {
    const row = target instanceof Element ? /** @type {HTMLElement | null} */ (target.closest("[data-key]")) : null;
    const from = query();
    if (from !== undefined) store.selection.point(row ? { query: from, key: Number(row.dataset.key) } : null);
  });
  element.addEventListener("pointerleave", () => store.selection.point(null));
}

/** Mark the key that the other panels describe. @param {HTMLElement} element @param {number | null} key */
function markKey(element, key) {
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll("[data-key]"))) {
    setFlag(row, "data-here", Number(row.dataset.key) === key);
  }
}
