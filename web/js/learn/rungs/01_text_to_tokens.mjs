// Rung 1: one sentence through three tokenizers.

import { make } from "../../lib/dom.mjs";
import { clamp, counted, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { story } from "../widgets/kite.mjs";
import { content } from "../content/01_text_to_tokens.mjs";
import { Chips, choice, code, controls, heading, slider } from "../widgets/elements.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Rung } from "../rung.js" */
/** @import { Data } from "../data.js" */

/** @typedef {{ pair: string[], rank: number, words: string[][] }} Merge */
/** @typedef {{ start: string[][], steps: Merge[], cut: boolean }} Merges of a sentence */

const SHOWN_MERGES = 12;
const N_BYTES = 256; // different ones

/** @type {Rung<"tokens">} */
export const textToTokens = {
  ...content,
  key: "tokens",
  options: () => ({ merges: 60, allow_end_of_text: false }),
  choices: () => ({ step: 0 }),
  own: ({ pairs: { n, n_start: start } }) => ({
    kind: "number",
    ask:
      `Before the first merge your sentence has ${counted(start, "token")}, and here it has ${counted(n, "token")}. ` +
      "How many pairs of tokens were merged in it? One step of “merge by merge” can merge several.",
    right: start - n,
    tolerance: 0,
    mistakes: [
      { number: n, reply: "That many tokens are left." },
      { number: start, reply: "That many tokens there were before the first merge." },
    ],
    hint: "Every merge of two neighbours leaves one token less.",
    second: "How many tokens fewer are there now?",
    why: `${number(start)} − ${number(n)}: each merge leaves one token less.`,
  }),
  build(lesson) {
    const [words, characters, pairs, ofModel] = [new Chips(), new Chips(), new Chips(), new Chips()];
    const merging = new Merging(lesson.kept);
    const merges = slider({
      label: "merges learned",
      max: 200,
      value: lesson.options.merges,
      change: (value) => lesson.set({ merges: value }),
    });
    const special = choice({
      label: "<|endoftext|> in your sentence is",
      options: { text: "plain text", token: "one token" },
      value: lesson.options.allow_end_of_text ? "token" : "text",
      change: (key) => lesson.set({ allow_end_of_text: key === "token" }),
    });
    const specialSaid = make("p", { class: "hl-hint", role: "status" });
    const text = make("textarea", { rows: 3 });
    text.addEventListener("change", () => lesson.set({ training_text: text.value }));
    const add = smallButton("Add your sentence to the text");
    add.addEventListener("click", () => lesson.set({ training_text: `${text.value.trimEnd()}\n${lesson.sentence}` }));
    const back = smallButton("Reset the text");
    back.addEventListener("click", () => lesson.set({ training_text: "" }));
    const known = make("div", {}, heading("Byte pairs of a trained model"), ofModel.element);
    const decoded = make("p", { class: "hl-hint" });
    const list = make("ol", { class: "hl-merges" });
    /** @type {Pick<Data["tokens"], "words" | "characters" | "pairs" | "model">} */
    let found;
    return {
      formula: formula([
        "text",
        "→",
        row("(", sub("id", "0"), ",", sub("id", "1"), ",", "…", ",", sub("id", "n"), ")"),
        "→",
        "text",
      ]),
      parts: {
        story: story(),
        trainingText: make("label", {}, make("b", {}, "The training text"), text),
        words: words.element,
        decoded,
        add,
        back,
        characters: characters.element,
        merges: merges.element,
        pairs: pairs.element,
        learnedMerges: make("div", {}, make("h4", {}, "Merges learned from it"), list),
        mergeByMerge: make("div", {}, make("h4", {}, "Your sentence, merge by merge"), merging.element),
        known,
        special: special.element,
        specialSaid,
      },
      update({ training_text: source, words: w, characters: c, pairs: p, model }) {
        add.hidden = source.endsWith(`\n${lesson.sentence}`);
        back.hidden = !lesson.options.training_text;
        known.hidden = !model;
        if (model) {
          const learned = `${number(model.vocab_size)} that ${model.name} has learned in the same way`;
          const summary = `${counted(model.n, "token")} from the ${learned}, from far more text`;
          ofModel.show(idChips(model), model.n, summary);
        }
        if (document.activeElement !== text) text.value = source;
        words.show(idChips(w), w.n, `${counted(w.n, "token")} from a list of ${number(w.vocab_size)}`);
        decoded.textContent = `Read back: ${w.decoded}`;
        const alphabet = `${counted(c.n, "token")} from an alphabet of ${number(c.vocab_size)}`;
        characters.show(idChips(c), c.n, alphabet, c.problem);
        const lengths = `${counted(p.n, "token")} instead of ${counted(p.n_bytes, "byte")}`;
        const merged = p.vocab_size - N_BYTES - 1;
        const sizes = `${N_BYTES} bytes, ${counted(merged, "merge")} and a mark for the end of a text`;
        pairs.show(idChips(p), p.n, `${lengths}, from ${number(p.vocab_size)} tokens: ${sizes}`);
        merges.update(Math.min(p.merges.length, lesson.options.merges));
        list.replaceChildren(...mergeItems(p.merges));
        const { pieces, id, allowed } = p.end_of_text;
        special.show(allowed ? "token" : "text");
        specialSaid.replaceChildren(
          `Wherever a visitor may type, <|endoftext|> is plain text and becomes ${counted(pieces, "token")}. With `,
          code('encode(text, allowed_special={"<|endoftext|>"})'),
          `, which joins texts in Raschka’s book, it is one token, id ${id}. Type it into your sentence to see both.`,
        );
        merging.show(p);
        found = { words: w, characters: c, pairs: p, model };
      },
      play() {
        const { model } = found;
        const [word, character, pair] = [found.words, found.characters, found.pairs].map(({ tokens }) => tokens[0]);
        /** @param {Chips} chips @param {number} i */
        const at = (chips, i) => chips.list.children[0]?.children[i] ?? null;
        return [
          { at: at(words, 0), words: `“${word.text}” is the first word of your sentence.` },
          {
            at: at(words, 1),
            words: word.known
              ? `Its place in the sorted list of ${number(found.words.vocab_size)} is its id.`
              : "The list does not have it: it gets the id of everything unknown, and the word is lost.",
          },
          {
            at: at(characters, 1),
            words: character.known
              ? `As characters it starts with “${visible(character.text)}”, whose place in the alphabet is this.`
              : `As characters it starts with “${visible(character.text)}”, which the alphabet does not have.`,
          },
          {
            at: at(pairs, 1),
            words:
              [...pair.text].length > 1
                ? `As byte pairs it starts with “${pair.text}”, a piece that merges have made.`
                : `As byte pairs it starts with “${pair.text}”: no merge has made this byte a longer piece.`,
          },
          ...(model
            ? [
                {
                  at: at(ofModel, 1),
                  words:
                    `${model.name} knows more merges: it starts with “${model.tokens[0].text}”, and this id is what ` +
                    "the model reads.",
                },
              ]
            : []),
        ];
      },
    };
  },
};

/** @param {{ pair: string[], occurrences: number }[]} merges */
function mergeItems(merges) {
  const items = merges.slice(0, SHOWN_MERGES).map(({ pair: [left, right], occurrences }) => {
    const parts = [code(left), " + ", code(right), " → ", code(left + right)];
    return make("li", {}, ...parts, make("small", {}, ` ${occurrences} times`));
  });
  /** @param {string} text */
  const more = (text) => make("li", { class: "hl-more" }, text);
  if (merges.length > SHOWN_MERGES) items.push(more(`and ${merges.length - SHOWN_MERGES} more`));
  if (!merges.length) items.push(more("none: each byte is a token"));
  return items;
}

/**
 * Each token above its id, or above "none".
 * @param {{ tokens: { text: string, id: number | null, known: boolean }[] }} found
 */
const idChips = ({ tokens }) =>
  tokens.map(({ text, id, known }) => ({ text, known, below: id === null ? "none" : known ? id : `${id} <|unk|>` }));

/** A sentence, and buttons that apply the merges to it one at a time. */
class Merging {
  /** @type {string | null} */
  #sentence = null;
  /** @type {Merges} */
  #data = { start: [], steps: [], cut: false };

  /** @param {Record<string, any>} kept the number of merges applied */
  constructor(kept) {
    this.kept = kept;
    /** @param {number} by @param {string} name */
    const button = (by, name) => {
      const onclick = () => this.go(kept.step + by);
      return smallButton(name, onclick);
    };
    this.back = button(-1, "◀ undo");
    this.next = button(1, "merge ▶");
    this.status = make("p", { class: "hl-hint", role: "status" });
    this.words = make("p", { class: "hl-spelled" });
    this.element = make("div", {}, this.words, controls(this.back, this.next), this.status);
  }

  /** @param {Merges} data */
  show(data) {
    this.#data = data;
    const sentence = data.start.flat().join("");
    this.go(this.#sentence === null || sentence === this.#sentence ? this.kept.step : 0);
    this.#sentence = sentence;
  }

  /** @param {number} wanted */
  go(wanted) {
    const { start, steps, cut } = this.#data;
    const step = (this.kept.step = clamp(wanted, 0, steps.length));
    const merge = step ? steps[step - 1] : null;
    const merged = merge?.pair.join("");
    const words = (merge?.words ?? start).map((word) => {
      const tokens = word.map((token) => make("b", { class: token === merged ? "hl-new" : "" }, token));
      return make("span", { class: "hl-word" }, ...tokens);
    });
    this.words.replaceChildren(...words);
    this.back.disabled = step === 0;
    this.next.disabled = step === steps.length;
    const before = step > 1 ? steps[step - 2].words : start;
    const places = merge ? before.flat().length - merge.words.flat().length : 0;
    const what = merge
      ? `merge ${merge.rank + 1}: ${merge.pair[0]} + ${merge.pair[1]}, in ${counted(places, "place")}`
      : "single bytes";
    const where = cut ? " (beginning of your sentence only)" : "";
    this.status.textContent = `Step ${step} of ${steps.length}, ${what}${where}`;
  }
}
