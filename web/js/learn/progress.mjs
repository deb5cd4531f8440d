// What the browser remembers of the visitor's way: the sentence, the rungs seen, the questions answered.

const KEY = "headscope-learn";
export const BOOK = "Your journey starts with one step";

export class Progress {
  constructor() {
    this.sentence = BOOK;
    this.rung = 1;
    this.seen = [];
    this.answers = {}; // by rung, the option that was chosen
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
      if (typeof kept.sentence === "string") this.sentence = kept.sentence;
      if (Number.isInteger(kept.rung)) this.rung = kept.rung;
      if (Array.isArray(kept.seen)) this.seen = kept.seen.filter(Number.isInteger);
      if (kept.answers && typeof kept.answers === "object") this.answers = kept.answers;
    } catch {
      // Nothing that can be read is kept, or nothing may be: the lessons begin anew.
    }
  }

  set(changes) {
    Object.assign(this, changes);
    const { sentence, rung, seen, answers } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ sentence, rung, seen, answers }));
    } catch {
      // A browser that keeps nothing shows the lessons all the same.
    }
  }

  /** As if nobody had been here. */
  forget() {
    this.set({ sentence: BOOK, rung: 1, seen: [], answers: {} });
  }

  see(rung) {
    this.set({ rung, seen: [...new Set([...this.seen, rung])] });
  }
}
