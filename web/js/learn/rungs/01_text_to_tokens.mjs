// Rung 1: one sentence through three tokenizers.

import { make } from "../../lib/dom.mjs";
import { clamp, counted, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import {
  Chips,
  choice,
  code,
  controls,
  heading,
  paragraph,
  remarks,
  rowOf,
  slider,
  term,
  deeper,
} from "../widgets/elements.mjs";
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
  key: "tokens",
  name: "Text to tokens",
  learned:
    "A text becomes a sequence of ids. Bigger pieces make shorter sequences and longer lists; a tokenizer that can " +
    "fall back to bytes loses nothing.",
  options: () => ({ merges: 60, allow_end_of_text: false }),
  choices: () => ({ step: 0 }),
  prediction: {
    ask: "Which loses a word that its training text does not contain?",
    options: ["The word list", "The characters", "The byte pairs"],
    right: 0,
    why:
      "The word list has one id for everything it has never seen, so the word cannot be read back. Characters keep " +
      "it as long as each letter is in the alphabet. Byte pairs keep any text: at worst they fall back to its bytes.",
  },
  exercises: [
    {
      kind: "number",
      ask: "How many tokens is “Hi there!” if each character is a token? The space and the exclamation mark count too.",
      right: 9,
      tolerance: 0,
      hint: "Count every character: the letters, the space between the words, and the mark at the end.",
      why: "Two letters, a space, five letters and a mark; in the alphabet of 65 their ids begin with 20, 47, 1.",
    },
    {
      kind: "order",
      ask: "Byte pairs are learned in these steps. Put them in order.",
      steps: [
        "split the text into bytes",
        "count all pairs of adjacent tokens",
        "merge the most frequent pair into a new token",
        "count again, until there are enough tokens",
      ],
      hint: "Pairs must be counted before one is merged, and the text must be in pieces before pairs can be counted.",
      why: "Each round adds one token, so the number of rounds decides the size of the vocabulary.",
    },
    {
      kind: "choice",
      ask: "A vocabulary grows from 65 characters to 50,257 byte pairs. What happens to the same text?",
      options: ["It becomes a longer sequence", "It becomes a shorter sequence", "Its length stays the same"],
      right: 1,
      hint: "Compare the lists of tokens above: the same sentence as characters, and as byte pairs.",
      why: "Each token covers more characters, so there are fewer of them, from a larger list. That is the trade-off.",
    },
    {
      kind: "choice",
      further: true,
      ask:
        "Find the mistake: notes on this chapter give the end of a text in GPT-2 as [EOS]. Which token marks it in " +
        "GPT-2?",
      options: ["[EOS]", "<|endoftext|>", "<|unk|>", "[PAD]"],
      right: 1,
      hint: "Open “Deeper: special tokens” above. GPT-2 has a single special token.",
      why:
        "[EOS] is a common name for such a token, but GPT-2 cuts it into byte pairs like any other text. Its only " +
        "special token is <|endoftext|>, with the id 50256, the last one.",
    },
  ],
  own: ({ pairs: { n, n_start: start } }) => ({
    kind: "number",
    ask:
      `Before the first merge your sentence has ${counted(start, "token")}, and here it has ${counted(n, "token")}. ` +
      "How many pairs of tokens were merged in it? One step of “merge by merge” can merge several.",
    right: start - n,
    tolerance: 0,
    hint: "Every merge of two neighbours leaves one token less.",
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
      text: [
        paragraph(
          "A model computes with numbers, so a text is cut into ",
          term("tokens"),
          ", and each becomes its place in a list, its id. Tokens can be words, characters, or byte pairs: pieces ",
          "grown from bytes by merging pairs that often occur together. GPTs use byte pairs.",
        ),
      ],
      formula: formula([
        "text",
        "→",
        row("(", sub("id", "0"), ",", sub("id", "1"), ",", "…", ",", sub("id", "n"), ")"),
        "→",
        "text",
      ]),
      picture: [
        make("label", {}, make("b", {}, "The training text"), text),
        heading("Words of the training text"),
        paragraph("The list: its words and marks, sorted. All others get the same id, ", code("<|unk|>"), "."),
        words.element,
        decoded,
        controls(add, back),
        heading("Characters of Shakespeare"),
        paragraph(
          "The 65 in “tiny Shakespeare”, a file of his plays; ",
          code("·"),
          " is a space. Any text of them can be read back, but the sequence is long.",
        ),
        characters.element,
        heading("Byte pairs of the training text"),
        paragraph(
          "Start from its bytes. Merge the most frequent pair of neighbours, never across two words, into a new ",
          "token. Repeat. ",
          code("Ġ"),
          " is a space.",
        ),
        controls(merges.element),
        pairs.element,
        rowOf(
          make("div", {}, make("h4", {}, "Merges learned from it"), list),
          make("div", {}, make("h4", {}, "Your sentence, merge by merge"), merging.element),
        ),
        known,
        paragraph(
          "Such ids are all that a model sees of a text. Rungs 2 and 4 to 9 use words as tokens, rung 3 characters, ",
          "rungs 10 and 11 a trained model’s tokens.",
        ),
        deeper(
          lesson,
          "special tokens, bytes that are no letters",
          controls(special.element),
          specialSaid,
          paragraph(
            "Each byte is shown as one character: ",
            code("Ġ"),
            " is a space, and ü, two bytes, is shown as ",
            code("Ã¼"),
            ".",
          ),
          remarks(
            "Special tokens",
            [code("[BOS]"), " marks the beginning of a text, so that even its first word has something before it."],
            [
              code("[EOS]"),
              ", here ",
              code("<|endoftext|>"),
              ", marks the end; between two unrelated texts it says that a new text starts.",
            ],
            [
              code("[PAD]"),
              " pads shorter texts to the length of the longest in a batch. A mask keeps the model from looking at it.",
            ],
            [
              code("[UNK]"),
              ", here ",
              code("<|unk|>"),
              ", stands for every unknown word. GPT-2 needs only ",
              code("<|endoftext|>"),
              ": byte pairs have no unknown words, and texts of unequal length in a batch can be padded with it, as ",
              "Raschka’s book does when it fine-tunes.",
            ],
          ),
        ),
      ],
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
