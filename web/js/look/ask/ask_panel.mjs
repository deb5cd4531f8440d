// Ask: the list of questions, and the open question with its answer. On the stage both stand in the place of the open
// head, beside the field; among the details they have a panel.

import { make, NextFrame, setFlag, setText, steadily } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { askServer } from "../state/ask_server.mjs";
import { headsOff } from "../state/mixer.mjs";
import { answersOnStage } from "../state/prepared.mjs";
import { curl } from "../../calls/call.mjs";
import { lensCall } from "../../calls/python.mjs";
import { copyMenu } from "../export/copy_answer.mjs";
import { readChoices, writeChoices } from "../state/choices.mjs";
import { overlayLegend } from "../panels/overlay.mjs";
import { QuestionList } from "./all_questions.mjs";
import { QUESTIONS } from "./question_list.mjs";
import { timeLeft } from "./time_left.mjs";
import { closeButton, showAnswer } from "../stage/why.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { scope, whenever } from "../../lib/reactive.mjs";

/** @import { Beside } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Mixer } from "../state/mixer.mjs" */
/** @import { BuiltQuestion, Question } from "./question.js" */
/** @import { AskRequest } from "../state/ask_server.mjs" */

const MAX_AUTOMATIC_SECONDS = 4; // a question that takes longer is not asked again when the text alone changes
const MAX_CACHED = 12; // answers
const ON_STAGE = "attribution"; // the stage itself has its answer

/** @typedef {{ answer: any, seconds: number }} TimedAnswer an answer, and how long it took */

export class AskPanel {
  /** @type {Question | null} */
  #question = null;
  /** @type {BuiltQuestion | null} */
  #built = null;
  #end = () => {}; // ends the effects, requests and listeners of the open question
  #key = ""; // key of the current request
  /** @type {AskRequest | null} */
  #asked = null;
  #shown = ""; // key of the answer that is shown
  /** @type {Map<string, TimedAnswer>} the newest answers by key */
  #cached = new Map();
  #request = new LatestRequest();
  #isAwaited = false; // whether the progress is shown
  #slow = false; // whether the last answer took long
  #nextFrame = new NextFrame(() => this.redraw());
  #began = 0; // time at which the request was sent, in milliseconds
  /** @type {Record<string, string>} */
  #choices = {};
  #chosen = ""; // the choices of the current request

  /**
   * @param {ShownText} store
   * @param {Mixer} mixer
   * @param {Beside | null} beside null in a file
   */
  constructor(store, mixer, beside) {
    this.store = store;
    this.mixer = mixer;
    this.beside = beside;
    const { view } = store;
    this.list = new QuestionList(store);
    this.all = smallButton("All questions", () => view.set({ ask: "list" }), { class: "hs-all-questions" });
    this.title = make("h2", { tabindex: -1 }, "All questions");
    this.plain = make("p", { class: "hs-plain", role: "status" });
    this.mask = make("p", { class: "hs-hint" });
    this.explanation = make("p", { class: "hs-hint" });
    this.controls = make("div", { class: "hs-controls" });
    this.bar = make("progress", { max: 1, "aria-label": "Progress of the answer" });
    const stop = smallButton("Stop", () => this.stop());
    this.remaining = make("span", { class: "hs-hint" });
    this.progress = make("div", { class: "hs-ask-progress" }, this.bar, this.remaining, stop);
    this.message = make("span", {});
    this.again = smallButton("Ask", () => this.ask());
    this.notice = make("p", { class: "hs-ask-notice", role: "status" }, this.message, " ", this.again);
    this.answer = make("div", { class: "hs-ask-answer" });
    this.caution = make("p", { class: "hs-hint hs-caution" });
    this.numbers = make("div", { class: "hs-ask-answer" });
    this.copying = copyMenu(() => this.#answered());
    this.precision = make("p", { class: "hs-hint" });
    this.code = make("pre", { tabindex: 0, "aria-label": "Code" });
    const folded = [this.explanation, this.precision, this.numbers, this.copying, this.code];
    this.fold = make("details", {}, make("summary", {}, "Method, numbers, code"), ...folded);
    const top = make("div", { class: "hs-top" }, this.title, this.all, closeButton(store));
    this.element = make("section", { class: "hs-panel hs-ask", "aria-label": "Ask", tabindex: -1 }, top);
    this.element.append(this.list.element, this.plain, this.notice, this.controls, this.progress);
    this.element.append(this.mask, overlayLegend(store), this.answer, this.caution, this.fold);
    this.redraw = steadily(this.element, () => this.refresh());
    // In the next animation frame, because one selection may change several of these.
    whenever(
      () => [...store.progress, store.open, store.selection.selected, view.options, store.roles, mixer.changed],
      () => this.soon(),
    );
    this.refresh();
  }

  soon() {
    if (this.store.view.options.ask || this.#question || !this.element.hidden) this.#nextFrame.request();
  }

  /** Show what the view says: nothing, the list, or a question. */
  refresh() {
    const { view } = this.store;
    const { askWith, details } = view.options;
    const isElsewhere = view.options.ask === ON_STAGE && answersOnStage() && (!details || view.isLookOnly);
    const ask = isElsewhere ? "" : view.options.ask;
    const question = QUESTIONS.find(({ key }) => key === ask) ?? null;
    const wasHidden = this.element.hidden;
    this.element.hidden = ask === "";
    const isOther = question !== this.#question;
    if (isOther) this.open(question);
    this.list.show(ask !== "" && !question);
    for (const part of [this.caution, this.fold]) part.hidden = question === null || part.hidden;
    this.all.hidden = question === null || view.isLookOnly;
    if (question && this.#built) {
      Object.assign(this.#choices, question.defaults, readChoices(askWith, question.defaults));
      this.update(this.#built);
    } else {
      this.hideAnswer();
      const isUnknown = !["", "list"].includes(view.options.ask) && !isElsewhere;
      this.conclude(isUnknown ? `There is no question “${view.options.ask}”. These are all questions:` : "");
    }
    if (!this.element.hidden && (wasHidden || isOther)) this.reveal(details);
  }

  /** Something was opened: show its place, and keep the focus of the list. @param {boolean} details */
  reveal(details) {
    if (!details) showAnswer(this.element);
    else if (isBelowTheFold(this.element)) this.element.scrollIntoView({ block: "start" });
    if (this.list.hadFocus) this.title.focus({ preventScroll: true });
  }

  /** @param {Question | null} question */
  open(question) {
    this.#request.abort();
    this.store.answer.setOverlay(null);
    this.#end();
    this.#question = question;
    this.#built = null;
    this.#shown = this.#key = "";
    this.#slow = false;
    this.#choices = {};
    this.title.textContent = question?.title ?? "All questions";
    this.explanation.textContent = question?.explanation ?? "";
    this.caution.replaceChildren(make("b", {}, "What this does not show. "), question?.caution ?? "");
    this.fold.open = this.store.view.options.details;
    if (!question) return;
    const { store } = this;
    const { built, end } = scope(() =>
      question.build({
        store,
        mixer: this.mixer,
        beside: this.beside,
        choices: this.#choices,
        choose: (changes) =>
          store.view.set({ askWith: writeChoices({ ...this.#choices, ...changes }, question.defaults) }),
        conclude: (words, more) => this.conclude(words, more),
        overlay: (overlay) => store.answer.setOverlay(overlay),
      }),
    );
    this.#built = built;
    this.#end = end;
    this.controls.replaceChildren(...this.#built.controls);
    const { picture, element } = built;
    this.answer.replaceChildren(picture ?? element);
    this.numbers.replaceChildren(...(picture ? [element] : []));
  }

  /** Send the request of the open question, or draw its answer if it is known. @param {BuiltQuestion} built */
  update(built) {
    this.controls.hidden = !built.controls.length;
    const asked = built.request();
    if (typeof asked === "string") {
      this.#request.abort();
      this.#key = "";
      this.say(asked);
      return;
    }
    if (!asked) {
      this.#request.abort();
      this.#key = "";
      this.show(built, null);
      return;
    }
    this.#asked = asked;
    const key = JSON.stringify([this.#question?.key, this.store.pointer.sha256, asked]);
    const isNew = key !== this.#key;
    this.#key = key;
    const chosen = JSON.stringify(this.#choices);
    const isChosen = chosen !== this.#chosen;
    this.#chosen = chosen;
    const cached = this.#cached.get(key);
    if (cached) {
      this.#request.abort();
      if (this.#shown !== key) this.#slow = cached.seconds > MAX_AUTOMATIC_SECONDS;
      this.#shown = key;
      this.show(built, cached.answer);
    } else if (isNew && this.#slow && !isChosen) {
      this.#request.abort();
      this.say("The text has changed since this question was answered.", "ask");
    } else if (isNew) void this.send(key, asked);
  }

  /** @param {string} key @param {AskRequest} asked */
  async send(key, asked) {
    this.#began = performance.now();
    this.showProgress(0);
    this.grow(null);
    try {
      const onProgress = (/** @type {number} */ fraction) => this.showProgress(fraction);
      const onRow = (/** @type {any} */ known) => this.grow(known);
      const answer = await this.#request.send((signal) => askServer(asked, { signal, onProgress, onRow }));
      if (!answer) return;
      this.cache(key, { answer, seconds: (performance.now() - this.#began) / 1000 });
      if (key === this.#key) this.redraw();
    } catch (error) {
      this.say(/** @type {Error} */ (error).message, "again");
    }
  }

  /** The answer that is shown and the request that it answers. */
  #answered() {
    const asked = this.#built?.request();
    const cached = this.#cached.get(this.#shown);
    return asked && typeof asked !== "string" && cached ? { asked, answer: cached.answer } : null;
  }

  /** @param {string} key @param {TimedAnswer} value */
  cache(key, value) {
    this.#cached.set(key, value);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > MAX_CACHED) this.#cached.delete(oldest);
  }

  /** Ask at the visitor's request: after a slow answer, a stop or an error. */
  ask() {
    const asked = this.#built?.request();
    if (asked && typeof asked !== "string") void this.send(this.#key, asked);
  }

  stop() {
    this.#request.abort();
    this.say("Stopped before the answer was ready.", "again");
  }

  /** Show the answer in one sentence above everything else. @param {string} words @param {string} [more] */
  conclude(words, more = "") {
    const all = more ? `${words} ${more}` : words;
    if (this.plain.textContent !== all) this.plain.replaceChildren(make("b", {}, words), more && ` ${more}`);
    this.plain.hidden = !words && !this.#built; // its place is kept, so that nothing below it moves
  }

  /** @param {BuiltQuestion} built @param {any} answer */
  show(built, answer) {
    this.hideAnswer(true);
    this.store.answer.show(answer && this.#asked && { asked: this.#asked, answer });
    built.draw(answer);
    this.precision.textContent = precisionOf(answer?.precision);
    this.mask.textContent = answer ? maskNote(headsOff(this.store).length, this.#asked) : "";
    this.mask.hidden = !this.mask.textContent;
    for (const part of [this.answer, this.caution, this.fold]) part.hidden = false;
    const asked = answer && this.#asked;
    this.copying.hidden = this.code.hidden = !asked;
    setText(this.code, asked ? `${curl(`v1/lens/${asked.route}`, asked)}\n\n${lensCall(asked)}` : "");
    setFlag(this.element, "aria-busy", false);
  }

  /** Draw what is known before the answer, whose place is kept. @param {any} known null for nothing yet */
  grow(known) {
    if (!this.#built?.grow || !this.#isAwaited) return;
    this.#built.grow(known);
    this.answer.hidden = false;
  }

  /** @param {number} fraction */
  showProgress(fraction) {
    if (!this.#isAwaited) this.hideAnswer();
    this.#await(true);
    this.bar.value = fraction;
    this.remaining.textContent = timeLeft((performance.now() - this.#began) / 1000, fraction);
    setFlag(this.element, "aria-busy", true);
  }

  /** Show or hide the progress; where a picture grows, its place is kept. @param {boolean} isAwaited */
  #await(isAwaited) {
    this.#isAwaited = isAwaited;
    this.progress.hidden = !isAwaited && !this.#built?.grow;
    this.progress.classList.toggle("hs-idle", !isAwaited);
  }

  /**
   * Show a sentence instead of an answer.
   * @param {string} message
   * @param {"" | "ask" | "again"} [offer] a button that asks
   */
  say(message, offer = "") {
    this.hideAnswer();
    this.plain.hidden = true; // the message stands in its place
    this.notice.hidden = this.caution.hidden = this.fold.hidden = false;
    this.copying.hidden = this.code.hidden = true;
    this.message.textContent = message;
    this.again.hidden = !offer;
    this.again.textContent = offer === "again" ? "Try again" : "Ask about this text";
  }

  /** @param {boolean} [keepOverlay] */
  hideAnswer(keepOverlay = false) {
    this.store.answer.show(null);
    if (!keepOverlay) {
      this.store.answer.setOverlay(null);
      this.conclude("");
    }
    this.#await(false);
    for (const part of [this.mask, this.answer, this.caution, this.fold, this.notice]) part.hidden = true;
    this.controls.hidden = !this.#built?.controls.length;
    setFlag(this.element, "aria-busy", false);
  }
}

/**
 * Whether the heads that are off on the stage are off in the answer.
 * @param {number} n heads that are off
 * @param {AskRequest | null} asked
 */
function maskNote(n, asked) {
  if (!n) return "";
  if (!asked?.body || !("head_mask" in asked.body)) return "This answer is about the model with all its heads.";
  return n === 1
    ? "The head that you turned off is off in this answer."
    : `The ${n} heads that you turned off are off in this answer.`;
}

/** @param {{ computed: string, served: string, largest_difference?: number } | undefined} precision */
function precisionOf(precision) {
  if (!precision) return "";
  const { computed, served, largest_difference: difference } = precision;
  if (computed === served) return `Computed in ${computed}, as the model is served.`;
  const by =
    difference === undefined
      ? ""
      : `, which changes no token’s log-probability by more than ${difference.toFixed(3)} nats`;
  return `Computed in ${computed} with the weights as served; the model writes in ${served}${by}.`;
}

/** @param {HTMLElement} element */
function isBelowTheFold(element) {
  const { top } = element.getBoundingClientRect();
  return top > window.innerHeight - 120;
}
