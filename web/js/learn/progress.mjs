// A visitor's progress, stored in the browser: the sentence, the rungs seen and the answers.

/** @import { Answered } from "./rung.js" */

const KEY = "headscope-learn";
export const BOOK_SENTENCE = "Your journey starts with one step";

export class Progress {
  sentence = BOOK_SENTENCE;
  rung = 1;
  /** @type {number[]} */
  seen = [];
  /** @type {Record<number, number>} by rung, the option that was chosen */
  answers = {};
  /** @type {Record<number, number>} by rung, the right option of the question that was answered */
  rights = {};
  /** @type {Record<string, Answered>} by exercise, "rung.place" */
  exercises = {};

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      if (typeof kept.sentence === "string") this.sentence = kept.sentence;
      if (Number.isInteger(kept.rung)) this.rung = kept.rung;
      if (Array.isArray(kept.seen)) this.seen = kept.seen.filter(Number.isInteger);
      if (kept.answers && typeof kept.answers === "object") this.answers = kept.answers;
      if (kept.rights && typeof kept.rights === "object") this.rights = kept.rights;
      if (kept.exercises && typeof kept.exercises === "object") this.exercises = kept.exercises;
    } catch {
      // Nothing readable is stored, or storage is disabled: start from the beginning.
    }
  }

  /** @param {Partial<Pick<Progress, "sentence" | "rung" | "seen" | "answers" | "rights" | "exercises">>} changes */
  set(changes) {
    Object.assign(this, changes);
    const { sentence, rung, seen, answers, rights, exercises } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ sentence, rung, seen, answers, rights, exercises }));
    } catch {
      // Without storage the lessons still work.
    }
  }

  /** Reset to a first visit. */
  forget() {
    this.set({ sentence: BOOK_SENTENCE, rung: 1, seen: [], answers: {}, rights: {}, exercises: {} });
  }

  /** @param {number} rung */
  see(rung) {
    this.set({ rung, seen: [...new Set([...this.seen, rung])] });
  }
}
