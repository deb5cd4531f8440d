// A visitor's progress, stored in the browser: the sentence, the rungs seen and the answers.

/** @import { Answered } from "./rung.js" */
/**
 * A prediction or an exercise, as far as it tells one question from another.
 * @typedef {object} Question
 * @property {string} ask
 * @property {string} [about]
 * @property {string[]} [options]
 * @property {string[]} [steps]
 * @property {number | number[]} [right]
 * @property {number[]} [alsoRight]
 */
/** @typedef {Answered & { question: string }} Kept an answer, and the key of the question that it was given to */

const KEY = "headscope-learn";
export const BOOK_SENTENCE = "Your journey starts with one step";

export class Progress {
  sentence = BOOK_SENTENCE;
  rung = 1;
  /** @type {number[]} */
  seen = [];
  /** @type {Record<string, Kept>} by place: the rung of a prediction, "rung.place" of an exercise */
  answers = {};

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      if (typeof kept.sentence === "string") this.sentence = kept.sentence;
      if (Number.isInteger(kept.rung)) this.rung = kept.rung;
      if (Array.isArray(kept.seen)) this.seen = kept.seen.filter(Number.isInteger);
      const answers = Object.entries(kept.answers ?? {}).filter(([, answer]) => typeof answer?.question === "string");
      this.answers = Object.fromEntries(answers);
    } catch {
      // Nothing readable is stored, or storage is disabled: start from the beginning.
    }
  }

  /** @param {Partial<Pick<Progress, "sentence" | "rung" | "seen" | "answers">>} changes */
  set(changes) {
    Object.assign(this, changes);
    const { sentence, rung, seen, answers } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ sentence, rung, seen, answers }));
    } catch {
      // Without storage the lessons still work.
    }
  }

  /** Reset to a first visit. */
  forget() {
    this.set({ sentence: BOOK_SENTENCE, rung: 1, seen: [], answers: {} });
  }

  /**
   * The answer to a question; null if there is none, or if the one in this place was given to another question.
   * @param {number | string} place
   * @param {Question} question
   * @returns {Answered | null}
   */
  answerTo(place, question) {
    const kept = this.answers[place];
    return kept?.question === keyOf(question) ? kept : null;
  }

  /**
   * Keep the answer to a question, or forget it.
   * @param {number | string} place
   * @param {Question} question
   * @param {Answered | null} answered
   */
  answer(place, question, answered) {
    const answers = { ...this.answers };
    if (answered) answers[place] = { ...answered, question: keyOf(question) };
    else delete answers[place];
    this.set({ answers });
  }

  /** @param {number} rung */
  see(rung) {
    this.set({ rung, seen: [...new Set([...this.seen, rung])] });
  }
}

/**
 * The same for the same question only: what stands in a place depends on the sentence, the model and the version.
 * @param {Question} question
 */
export const keyOf = ({ ask, about, options, steps, right, alsoRight }) =>
  JSON.stringify([ask, about, options ?? steps, right, alsoRight]);
