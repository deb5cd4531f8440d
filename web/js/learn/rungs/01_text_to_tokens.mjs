// Rung 1: one sentence through three tokenizers.

import { make } from "../../lib/dom.mjs";
import { clamp, counted, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { story } from "../widgets/kite.mjs";
import { content } from "../content/01_text_to_tokens.mjs";
import { Drawing } from "../widgets/drawing.mjs";
import { Chips, choice, code, controls, heading, slider } from "../widgets/elements.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Lesson, Rung } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data } from "../data.js" */

/** @typedef {{ pair: string[], merged: string, rank: number, words: string[][] }} Merge */
/** @typedef {{ start: string[][], steps: Merge[], cut: boolean }} Merges of a sentence */

const SHOWN_MERGES = 12;
const N_BYTES = 256; // different ones

/** How stories-bpe makes one token of " kite": Ġ is the space. @type {Merges} */
export const KITE = {
  start: [["Ġ", "k", "i", "t", "e"]],
  steps: [
    { rank: 17, pair: ["i", "t"], merged: "it", words: [["Ġ", "k", "it", "e"]] },
    { rank: 141, pair: ["Ġ", "k"], merged: "Ġk", words: [["Ġk", "it", "e"]] },
    { rank: 453, pair: ["it", "e"], merged: "ite", words: [["Ġk", "ite"]] },
    { rank: 1637, pair: ["Ġk", "ite"], merged: "Ġkite", words: [["Ġkite"]] },
  ],
  cut: false,
};

/** @type {Rung<"tokens">} */
export const textToTokens = {
  ...content,
  key: "tokens",
  options: () => ({ merges: 60, allow_end_of_text: false }),
  choices: () => ({ step: 0, kiteStep: 0 }),
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
  build: (lesson) => new TextToTokens(lesson),
};

/** @extends {Drawing<"tokens">} */
class TextToTokens extends Drawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.words = new Chips();
    this.characters = new Chips();
    this.pairs = new Chips();
    this.ofModel = new Chips();
    this.merging = new Merging(lesson.kept, "step");
    this.kite = new Merging(lesson.kept, "kiteStep");
    this.kite.show(KITE);
    this.merges = slider({
      label: "merges learned",
      max: 200,
      value: lesson.options.merges,
      change: (value) => lesson.set({ merges: value }),
    });
    this.special = choice({
      label: "<|endoftext|> in your sentence is",
      options: { text: "plain text", token: "one token" },
      value: lesson.options.allow_end_of_text ? "token" : "text",
      change: (key) => lesson.set({ allow_end_of_text: key === "token" }),
    });
    this.specialSaid = make("p", { class: "hl-hint", role: "status" });
    this.text = make("textarea", { rows: 3 });
    this.text.addEventListener("change", () => lesson.set({ training_text: this.text.value }));
    this.add = smallButton("Add your sentence to the text");
    this.add.addEventListener("click", () =>
      lesson.set({ training_text: `${this.text.value.trimEnd()}\n${lesson.sentence}` }),
    );
    this.back = smallButton("Reset the text");
    this.back.addEventListener("click", () => lesson.set({ training_text: "" }));
    this.known = make("div", {}, heading("Byte pairs of a trained model"), this.ofModel.element);
    this.decoded = make("p", { class: "hl-hint" });
    this.list = make("ol", { class: "hl-merges" });
    this.formula = formula([
      "text",
      "→",
      row("(", sub("id", "0"), ",", sub("id", "1"), ",", "…", ",", sub("id", "n"), ")"),
      "→",
      "text",
    ]);
    this.parts = this.#makeParts();
  }

  #makeParts() {
    return {
      story: story(),
      trainingText: make("label", {}, make("b", {}, "The training text"), this.text),
      words: this.words.element,
      decoded: this.decoded,
      add: this.add,
      back: this.back,
      characters: this.characters.element,
      merges: this.merges.element,
      pairs: this.pairs.element,
      learnedMerges: make("div", {}, make("h4", {}, "Merges learned from the training text"), this.list),
      kiteMerges: make("div", {}, make("h4", {}, "“kite”, merge by merge, in stories-bpe"), this.kite.element),
      mergeByMerge: make("div", {}, make("h4", {}, "Your sentence, merge by merge"), this.merging.element),
      known: this.known,
      special: this.special.element,
      specialSaid: this.specialSaid,
    };
  }

  /** @param {Data["tokens"]} found */
  update(found) {
    this.data = found;
    const { training_text: source, words: w, characters: c, pairs: p, model } = found;
    this.add.hidden = source.endsWith(`\n${this.lesson.sentence}`);
    this.back.hidden = !this.lesson.options.training_text;
    this.known.hidden = !model;
    if (model) {
      const learned = `${number(model.vocab_size)} that ${model.name} has learned in the same way`;
      const summary = `${counted(model.n, "token")} from the ${learned}, from far more text`;
      this.ofModel.show(idChips(model), model.n, summary);
    }
    if (document.activeElement !== this.text) this.text.value = source;
    this.words.show(idChips(w), w.n, `${counted(w.n, "token")} from a list of ${number(w.vocab_size)}`);
    this.decoded.textContent = `Read back: ${w.decoded}`;
    const alphabet = `${counted(c.n, "token")} from an alphabet of ${number(c.vocab_size)}`;
    this.characters.show(idChips(c), c.n, alphabet, c.problem);
    const lengths = `${counted(p.n, "token")} instead of ${counted(p.n_bytes, "byte")}`;
    const merged = p.vocab_size - N_BYTES - 1;
    const sizes = `${N_BYTES} bytes, ${counted(merged, "merge")} and a mark for the end of a text`;
    this.pairs.show(idChips(p), p.n, `${lengths}, from ${number(p.vocab_size)} tokens: ${sizes}`);
    this.merges.update(Math.min(p.merges.length, this.lesson.options.merges));
    this.list.replaceChildren(...mergeItems(p.merges));
    const { pieces, id, allowed } = p.end_of_text;
    this.special.show(allowed ? "token" : "text");
    this.specialSaid.replaceChildren(
      `Wherever a visitor may type, <|endoftext|> is plain text and becomes ${counted(pieces, "token")}. With `,
      code('encode(text, allowed_special={"<|endoftext|>"})'),
      `, which joins texts in Raschka’s book, it is one token, id ${id}. Type it into your sentence to see both.`,
    );
    this.merging.show(p);
  }

  /** @returns {Stop[]} */
  play() {
    const { words, characters, pairs, model } = this.data;
    const [word, character, pair] = [words, characters, pairs].map(({ tokens }) => tokens[0]);
    /** @param {Chips} chips @param {number} i */
    const at = (chips, i) => chips.list.children[0]?.children[i] ?? null;
    return [
      { at: at(this.words, 0), words: `“${word.text}” is the first word of your sentence.` },
      {
        at: at(this.words, 1),
        words: word.known
          ? `Its place in the sorted list of ${number(words.vocab_size)} is its id.`
          : "The list does not have it: it gets the id of everything unknown, and the word is lost.",
      },
      {
        at: at(this.characters, 1),
        words: character.known
          ? `As characters it starts with “${visible(character.text)}”, whose place in the alphabet is this.`
          : `As characters it starts with “${visible(character.text)}”, which the alphabet does not have.`,
      },
      {
        at: at(this.pairs, 1),
        words:
          (pair.id ?? 0) >= N_BYTES
            ? `As byte pairs it starts with “${pair.text}”, a piece that merges have made.`
            : `As byte pairs it starts with “${pair.text}”: no merge has made this byte a longer piece.`,
      },
      ...(model
        ? [
            {
              at: at(this.ofModel, 1),
              words: `${startOf(model, pair.text)}, and this id is what the model reads.`,
            },
          ]
        : []),
    ];
  }
}

/** @param {{ name: string, tokens: { text: string }[] }} model @param {string} pair the first token here */
const startOf = ({ name, tokens: [{ text }] }, pair) =>
  text === pair ? `${name} starts with “${text}”, too` : `${name} knows other merges: it starts with “${text}”`;

/** @param {{ pair: string[], merged: string, occurrences: number }[]} merges */
function mergeItems(merges) {
  const items = merges.slice(0, SHOWN_MERGES).map(({ pair: [left, right], merged, occurrences }) => {
    const parts = [code(left), " + ", code(right), " → ", code(merged)];
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

  /** @param {Record<string, any>} kept @param {"step" | "kiteStep"} name in it, of the number of merges applied */
  constructor(kept, name) {
    this.kept = kept;
    this.name = name;
    /** @param {number} by @param {string} name */
    const button = (by, name) => {
      const onclick = () => this.go(kept[this.name] + by);
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
    this.go(this.#sentence === null || sentence === this.#sentence ? this.kept[this.name] : 0);
    this.#sentence = sentence;
  }

  /** @param {number} wanted */
  go(wanted) {
    const { start, steps, cut } = this.#data;
    const step = (this.kept[this.name] = clamp(wanted, 0, steps.length));
    const merge = step ? steps[step - 1] : null;
    const words = (merge?.words ?? start).map((word) => {
      const tokens = word.map((token) => make("b", { class: token === merge?.merged ? "hl-new" : "" }, token));
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
