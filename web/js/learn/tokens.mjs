// Rung 1: one sentence through three tokenizers.

import { make } from "../look/dom.mjs";
import { counted } from "../look/words.mjs";
import { Chips } from "./chips.mjs";
import { number } from "./numbers.mjs";
import { formula, row, sub } from "./formula.mjs";
import { code, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";

const SHOWN_MERGES = 12;

export const tokens = {
  name: "Text to tokens",
  options: { merges: 60 },
  question: {
    ask: "A word that is nowhere in the text they were made from: which of the three tokenizers loses it?",
    options: ["The word list", "The characters", "The byte pairs"],
    right: 0,
    why: "The word list has one id for everything it has never seen, so the word cannot be read back. Characters keep it as long as each letter is in the alphabet, byte pairs keep any text: at worst they fall back to its bytes.",
  },
  build(lesson) {
    const [words, characters, pairs] = [new Chips(), new Chips(), new Chips()];
    const merging = new Merging();
    const merges = slider({ label: "merges learned", max: 200, value: lesson.options.merges, change: (value) => lesson.set({ merges: value }) });
    const text = make("textarea", { rows: 5, "aria-label": "Text that word list and merges are made from" });
    text.addEventListener("change", () => lesson.set({ lesson: text.value }));
    const decoded = make("p", { class: "hl-hint" });
    const list = make("ol", { class: "hl-merges" });
    return {
      text: [
        paragraph(
          "A model computes with numbers, so a text is first cut into pieces, its ", make("dfn", {}, "tokens"),
          ", and each piece is replaced by its place in a list, its id. What a piece is, is a choice. Below, your sentence is cut in three ways.",
        ),
      ],
      formula: formula(["text", "→", row("(", sub("id", "0"), ",", sub("id", "1"), ",", "…", ",", sub("id", "n"), ")"), "→", "text"]),
      picture: [
        make("details", {}, make("summary", {}, "The text that word list and merges are made from"), text),
        heading("Words"),
        paragraph("Every word and every punctuation mark of that text, sorted. At the end of the list stand ", code("<|endoftext|>"), " and ", code("<|unk|>"), ", the one id for all that is unknown."),
        words.element,
        decoded,
        heading("Characters"),
        paragraph("The 65 characters of tiny Shakespeare, sorted: nothing is lost, but the sequence is long."),
        characters.element,
        heading("Byte pairs"),
        paragraph("Start from bytes. Glue the pair of neighbours that is most frequent in the same text into a new token, and repeat. ", code("Ġ"), " is how GPT-2 writes a space."),
        controls(merges.element),
        pairs.element,
        rowOf(
          make("div", {}, make("h4", {}, "Learned from the text"), list),
          make("div", {}, make("h4", {}, "Your sentence, merge by merge"), merging.element),
        ),
      ],
      update({ lesson: source, words: w, characters: c, pairs: p }) {
        if (document.activeElement !== text) text.value = source;
        words.show(idChips(w), w.n, `${counted(w.n, "token")} from a list of ${w.vocab_size}`);
        decoded.textContent = `Read back: ${w.decoded}`;
        characters.show(idChips(c), c.n, `${counted(c.n, "token")} from an alphabet of ${c.vocab_size}`, c.problem);
        pairs.show(idChips(p), p.n, `${counted(p.n, "token")} instead of ${counted(p.n_bytes, "byte")}, from ${number(p.vocab_size)} tokens`);
        merges.update(Math.min(p.merges.length, lesson.options.merges));
        list.replaceChildren(
          ...p.merges.slice(0, SHOWN_MERGES).map(({ pair, occurrences }) =>
            make("li", {}, code(pair[0]), " + ", code(pair[1]), " → ", code(pair.join("")), make("small", {}, ` ${occurrences} times`)),
          ),
        );
        if (p.merges.length > SHOWN_MERGES) list.append(make("li", { class: "hl-more" }, `and ${p.merges.length - SHOWN_MERGES} more`));
        if (!p.merges.length) list.append(make("li", { class: "hl-more" }, "none: each byte is a token"));
        merging.show(p);
      },
    };
  },
};

/** Below each token its id, or that there is none. */
const idChips = ({ tokens: found }) =>
  found.map(({ text, id, known }) => ({ text, known, below: id === null ? "none" : known ? id : `${id} <|unk|>` }));

/** A sentence while the merges are done to it, one at a time. */
class Merging {
  constructor() {
    this.back = make("button", { type: "button", class: "hs-small", onclick: () => this.go(this.step - 1) }, "◀ undo");
    this.next = make("button", { type: "button", class: "hs-small", onclick: () => this.go(this.step + 1) }, "merge ▶");
    this.said = make("p", { class: "hl-hint", role: "status" });
    this.words = make("p", { class: "hl-spelled" });
    this.element = make("div", {}, this.words, controls(this.back, this.next), this.said);
    this.key = "";
  }

  show(data) {
    this.data = data;
    const key = data.start.flat().join("");
    this.go(key === this.key ? this.step : 0);
    this.key = key;
  }

  go(step) {
    const { start, steps, cut } = this.data;
    this.step = Math.min(Math.max(step, 0), steps.length);
    const now = steps[this.step - 1];
    const merged = now?.pair.join("");
    const shown = (now?.words ?? start).map((word) =>
      make("span", { class: "hl-word" }, ...word.map((token) => make("b", { class: token === merged ? "hl-new" : "" }, token))),
    );
    this.words.replaceChildren(...shown);
    this.back.disabled = this.step === 0;
    this.next.disabled = this.step === steps.length;
    const what = now ? `merge ${now.rank + 1}: ${now.pair[0]} + ${now.pair[1]}` : "single bytes";
    const where = cut ? " (the beginning of your sentence)" : "";
    this.said.textContent = `Step ${this.step} of ${steps.length}, ${what}${where}`;
  }
}
