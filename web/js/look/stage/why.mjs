// Why this word: what the heads and the rest of the model add to its score, as a waterfall in the place of the open
// head. The field shows the same contributions as ink, and the sentence the same heads as threads.

import { curl } from "../../calls/call.mjs";
import { lensCall } from "../../calls/python.mjs";
import { isStill, make, setText } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { headAt, headEntries, headName, spokenHead } from "../../lib/heads.mjs";
import { fixed, share, signed } from "../../lib/numbers.mjs";
import { whenever } from "../../lib/reactive.mjs";
import { capitalised, plainly, spoken, unitOf, whyQuestion } from "../../lib/words.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { makeTable } from "../../widgets/table.mjs";
import { copyMenu } from "../export/copy_answer.mjs";
import { answersOnStage } from "../state/prepared.mjs";

/** @import { AttributionAnswer } from "../../lens.js" */
/** @import { AskRequest } from "../state/ask_server.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */

const STACKED = matchMedia("(width < 960px)"); // whether the answer stands above the field

/**
 * Bring an answer into view, with the questions above it.
 * @param {HTMLElement} answer
 */
export function showAnswer(answer) {
  if (!STACKED.matches) return;
  const questions = answer.closest(".hs-stage")?.querySelector(".hs-ask-place") ?? answer;
  questions.scrollIntoView({ block: "start", behavior: isStill() ? "auto" : "smooth" });
}

/** @param {ShownText} store */
export function closeButton({ view }) {
  const close = smallButton(icon("close"), null, { "aria-label": "Close Ask", title: "Close (Escape)" });
  close.hidden = view.isLookOnly; // without a model, nothing could open it again
  close.addEventListener("click", () => view.closeAsk());
  return close;
}

const MOST_ROWS = 8; // heads that have a row of their own

const METHOD =
  "A word’s score, its logit, is a sum of what the parts of the model write: one part from each head, one from each " +
  "layer’s MLP, one from the last word itself (its embedding), and one from the biases. With all other scores as " +
  "they are, 1 more makes the odds of a word 2.7 times as high. The scale of the final norm is held fixed.";
const CAUTION =
  "Only what each part writes straight into the prediction is counted. A head that helps another head gets no credit.";

/**
 * `from`: the sum of those before it; `isRest`: all that the others leave; `cause`: its name in a sentence.
 * @typedef {{ name: string, value: number, from: number, cause: string, head?: number, isRest?: boolean }} Bar
 */

/**
 * The bars of a waterfall from zero to the score: some heads by themselves, everything else together.
 * @param {Pick<AttributionAnswer, "heads" | "mlps" | "embedding" | "biases">} answer
 * @param {number[]} own the numbers of the heads that have a bar of their own
 * @param {(head: number) => boolean} [isOff]
 * @returns {Bar[]}
 */
export function barsOf({ heads, mlps, embedding, biases }, own, isOff = () => false) {
  const all = heads.flat();
  const sum = (/** @type {number[]} */ values) => values.reduce((total, value) => total + value, 0);
  const ofMlps = mlps.length === 1 ? "the MLP" : `all ${mlps.length} MLPs`;
  const others = all.filter((_, head) => !own.includes(head) && !isOff(head));
  const isOne = others.length === 1;
  const ofOthers = `${others.length} other head${isOne ? "" : "s"}`;
  const rest = { name: ofOthers + (isOne ? "" : ", net"), cause: `the ${ofOthers}${isOne ? "" : " together"}` };
  const parts = [
    { name: "Before any layer", cause: "what is there before any layer", value: embedding + biases },
    { name: capitalised(ofMlps), cause: ofMlps, value: sum(mlps) },
    ...own.toSorted((a, b) => a - b).map((head) => ({ name: "", cause: "", value: all[head], head })),
    ...(others.length ? [{ ...rest, value: sum(others), isRest: true }] : []),
  ];
  let total = 0;
  return parts.map((part) => ({ ...part, from: (total += part.value) - part.value }));
}

/**
 * The heads that have a row of their own: those that the sentence counts, and no smaller one.
 * @param {number[]} adds
 * @param {number[]} copying
 */
export function headsWithRows(adds, copying) {
  if (copying.length < 2 || copying.length > MOST_ROWS) return largestHeads(adds);
  const least = Math.min(...copying.map((head) => Math.abs(adds[head])));
  const larger = largestHeads(adds, adds.length).filter(
    (head) => !copying.includes(head) && Math.abs(adds[head]) > least,
  );
  return [...copying, ...larger].slice(0, MOST_ROWS);
}

/** The heads that add most, or take away most. @param {number[]} adds @param {number} [most] */
export const largestHeads = (adds, most = MOST_ROWS - 2) =>
  adds
    .map((_, head) => head)
    .sort((a, b) => Math.abs(adds[b]) - Math.abs(adds[a]))
    .slice(0, most);

/**
 * The answer in a sentence or two: the largest cause in the waterfall. The heads that copy the word count as one.
 * @param {AttributionAnswer} answer
 * @param {Bar[]} bars
 * @param {number[]} copying the numbers of the heads that copy the word
 */
export function causeWords({ heads, token, logit, probability }, bars, copying) {
  const adds = heads.flat();
  const word = spoken(token.text);
  const amount = (/** @type {number} */ value) => make("b", {}, signed(value, 1));
  const [first] = bars.toSorted((a, b) => b.value - a.value);
  const copied = copying.reduce((sum, head) => sum + adds[head], 0);
  if (copying.length && copied >= first.value) {
    const n = copying.length;
    const copies = n === 1 ? "one head copies it and adds " : `${n} heads copy it and add `;
    const start = `${capitalised(word)} is already in the text: ${copies}`;
    return [start, amount(copied), ` to its score of ${fixed(logit, 1)}, which gives it ${share(probability)}.`];
  }
  const whole = `the whole score of ${fixed(logit, 1)} gives it ${share(probability)}.`;
  if (first.value <= 0) return [`No part of the model adds to the score of ${word}; ${whole}`];
  const headWords = (/** @type {number} */ head) =>
    spokenHead(headAt(head, { n_layer: heads.length, n_head: heads[0].length }));
  const best = adds.indexOf(Math.max(...adds));
  const isOfHeads = first.isRest || first.head !== undefined;
  const cause = first.head === undefined ? first.cause : headWords(first.head);
  const start = `The largest part of the score of ${word} comes from ${cause} (`;
  const ofHeads =
    isOfHeads || adds[best] <= 0 ? [] : [` Of the heads, ${headWords(best)} adds most (`, amount(adds[best]), ")."];
  return [start, amount(first.value), `); ${whole}`, ...ofHeads];
}

export class Why {
  #shown = ""; // the step whose answer is shown or awaited
  /** @type {{ asked: AskRequest, answer: AttributionAnswer } | null} */
  #answered = null;

  /**
   * @param {ShownText} store
   * @param {ShownStep} step
   * @param {(head: number | null) => void} point at a head
   */
  constructor(store, step, point) {
    this.store = store;
    this.step = step;
    this.point = point;
    this.question = make("h3", {});
    this.say = make("p", { class: "hs-why-say", role: "status" });
    this.picture = make("div", { class: "hs-why-picture" });
    const caution = make("p", { class: "hs-why-caution" }, make("b", {}, "What this does not show. "), CAUTION);
    this.numbers = make("div", { class: "hs-why-numbers", tabindex: 0, role: "region", "aria-label": "All parts" });
    this.code = make("pre", { tabindex: 0, "aria-label": "Code" });
    const details = smallButton("With other words, in Details", () => store.view.set({ details: true }));
    details.hidden = store.view.isLookOnly;
    const tools = make(
      "div",
      { class: "hs-why-tools" },
      copyMenu(() => this.#answered),
      details,
    );
    this.fold = make("details", {}, make("summary", {}, "Numbers, method, code"), make("p", {}, METHOD), tools);
    this.fold.append(this.numbers, this.code);
    const top = make("header", { class: "hs-top" }, this.question, closeButton(store));
    const parts = [top, this.say, this.picture, caution, this.fold];
    this.element = make("section", { class: "hs-why-answer", "aria-label": "Answer", hidden: true }, ...parts);
    this.picture.addEventListener("pointerleave", () => point(null));
    whenever(
      () => [store.view.options.ask, store.view.options.details, step.known, store.pointer],
      () => this.draw(),
    );
  }

  /** Whether it is open. */
  get isOpen() {
    const { ask, details } = this.store.view.options;
    return ask === "attribution" && !details && answersOnStage();
  }

  draw() {
    const { store, step, element } = this;
    const isOpened = element.hidden && this.isOpen;
    element.hidden = !this.isOpen;
    store.answer.onStage = null;
    if (!this.isOpen || !store.rows) return;
    const target = step.texts[step.shown?.target ?? -1];
    const parts = whyQuestion(target ?? "", target === undefined ? `this ${unitOf(store)}` : spoken(target));
    setText(this.question, parts.join(""));
    if (isOpened) showAnswer(element);
    const shown = `${store.pointer.run} ${step.query} ${step.shown?.target} ${step.shown?.isKnown} ${step.isOff}`;
    if (shown !== this.#shown) void this.#ask(shown);
    else this.#keep();
  }

  /** A saved file, in which all heads are on, has the answer that is open. */
  #keep() {
    if (this.isOpen && !this.step.isOff) this.store.answer.onStage = this.#answered;
  }

  /** @param {string} shown */
  async #ask(shown) {
    this.#shown = shown;
    this.element.setAttribute("aria-busy", "true");
    if (!this.step.shown?.isKnown) return; // drawn again once it is
    try {
      const answered = await this.step.parts();
      if (shown !== this.#shown) return;
      this.#answered = answered;
      this.#show(answered);
      this.#keep();
    } catch (error) {
      if (shown !== this.#shown) return;
      this.#shown = ""; // asked again when more is known
      setText(this.say, /** @type {Error} */ (error).message);
    }
    this.element.setAttribute("aria-busy", "false");
  }

  /** @param {{ asked: AskRequest, answer: AttributionAnswer }} answered */
  #show({ asked, answer }) {
    const { step } = this;
    const adds = answer.heads.flat();
    const copying = [...adds.keys()].filter((i) => step.kinds[i] === "copies" && !step.isCutAt(i));
    const named = headsWithRows(adds, copying);
    const bars = barsOf(answer, named, (head) => step.isCutAt(head));
    this.say.replaceChildren(...causeWords(answer, bars, copying));
    this.picture.replaceChildren(this.#table(answer, bars));
    this.numbers.replaceChildren(numbersTable(answer));
    setText(this.code, `${curl(`v1/lens/${asked.route}`, asked)}\n\n${lensCall(asked)}`);
  }

  /** @param {AttributionAnswer} answer @param {Bar[]} bars */
  #table({ token, logit, probability }, bars) {
    const ends = [0, logit, ...bars.flatMap(({ from, value }) => [from, from + value])];
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const at = (/** @type {number} */ value) => (value - low) / Math.max(high - low, 1e-9);
    const rows = bars.map(({ name, value, from, head, isRest }) => {
      const label = head === undefined ? name : this.#headButton(head);
      const row = this.#row(label, value, at(from), at(from + value));
      row.append(make("td", {}, head === undefined ? (isRest ? "what the rows above leave" : "") : this.#looks(head)));
      if (head !== undefined) {
        row.classList.add("hs-why-head");
        row.dataset.kind = this.step.kinds[head] ?? "other";
        row.addEventListener("pointerenter", () => this.point(head));
      } else row.addEventListener("pointerenter", () => this.point(null));
      return row;
    });
    const total = this.#row(spoken(token.text), logit, at(0), at(logit), fixed(logit, 1));
    total.className = "hs-why-total";
    total.append(make("td", {}, `gives it ${share(probability)}`));
    const caption = make("caption", { class: "hs-hidden" }, "What each part adds to the score, one after the other");
    return make("table", {}, caption, make("tbody", {}, ...rows, total));
  }

  /**
   * @param {string | Node} name
   * @param {number} value
   * @param {number} from where the bar begins, from 0 to 1
   * @param {number} to
   * @param {string} [text]
   */
  #row(name, value, from, to, text = signed(value, 1)) {
    const bar = make("i", { class: value < 0 ? "hs-against" : "" });
    const label = make("b", {}, text);
    const cell = make("td", { class: "hs-why-bar" }, make("span", {}, bar, label));
    cell.style.setProperty("--from", String(Math.min(from, to)));
    cell.style.setProperty("--to", String(Math.max(from, to)));
    return make("tr", {}, make("th", { scope: "row" }, name), cell);
  }

  /** @param {number} head */
  #headButton(head) {
    const { store } = this;
    const picture = headAt(head, store.pointer);
    const open = () => store.choosePicture(picture);
    const button = make("button", { type: "button", onclick: open }, capitalised(spokenHead(picture)));
    button.addEventListener("focus", () => this.point(head));
    button.addEventListener("blur", () => this.point(null));
    return button;
  }

  /** Where a head looks. @param {number} head */
  #looks(head) {
    const { shown } = this.step;
    if (!shown) return "";
    const key = shown.keys[head];
    return `${share(shown.rows[head][key])} on “${plainly(this.store.tokens[key].text)}”`;
  }
}

/** Every part by itself, in the order of the model. @param {AttributionAnswer} answer */
function numbersTable({ embedding, heads, mlps, biases, sum, logit }) {
  const rows = [
    ["embedding", signed(embedding, 4)],
    ...headEntries(heads).map(({ picture, value }) => [headName(picture), signed(value, 4)]),
    ...mlps.map((value, layer) => [`MLP of layer ${layer}`, signed(value, 4)]),
    ["biases", signed(biases, 4)],
    ["sum", fixed(sum, 4)],
    ["the model’s logit", fixed(logit, 4)],
  ];
  return makeTable({ name: "All parts", titles: ["part", "adds"], rows }, { class: "hs-answer-table" });
}
