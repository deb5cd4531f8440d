// Rung 2: inputs and targets, and what a token and its position become.

import { make } from "../../lib/dom.mjs";
import { counted } from "../../lib/numbers.mjs";
import { Arithmetic, dotProduct, named } from "../../widgets/arithmetic.mjs";
import { slider } from "../widgets/controls.mjs";
import { code, controls, heading, paragraph, rowOf, term } from "../widgets/elements.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";

/** @import { Rung } from "../rung.js" */

/** @typedef {{ id: number, text: string }[]} Tokens */

const LONGEST = 10; // tokens of a window

/** @type {Rung} */
export const slidingWindow = {
  name: "The sliding window",
  options: () => ({ context_length: 4, stride: 1 }),
  question: {
    ask: "A window of 4 tokens: how many next tokens can a model practise on with it?",
    options: ["1", "4", "16"],
    right: 1,
    why:
      "One for each position: after the first token, after the first two, and so on. That is why the targets are as " +
      "long as the inputs.",
  },
  build(lesson) {
    /** @param {"context_length" | "stride"} name */
    const setting = (name) =>
      slider({
        label: name,
        min: 1,
        max: LONGEST,
        value: lesson.options[name],
        change: (value) => lesson.set({ [name]: value }),
      });
    const [length, stride] = [setting("context_length"), setting("stride")];
    const status = make("p", { class: "hl-count", role: "status" });
    const list = make("ol", { class: "hl-windows" });
    const vocabulary = make("p", { class: "hl-spelled" });
    const arithmetic = new Arithmetic();
    /** @type {any} */
    let data;
    /** @param {number} r @param {number} c */
    const explain = (r, c) =>
      dotProduct({
        title: [named(data.words[r]), ` at position ${r}, number ${c}: token embedding + position embedding`],
        names: ["token", "position"],
        products: [data.token[r][c], data.position[r][c]],
        total: data.x[r][c],
      });
    const [token, position, x] = ["Token embedding", "Position embedding", "Their sum"].map((name) =>
      arithmetic.table({ name, axes: "tokens × 3 numbers", explain }),
    );

    function showWindows() {
      status.classList.toggle("hl-problem", Boolean(data.problem));
      if (data.problem) {
        status.textContent = data.problem;
        list.replaceChildren();
        return;
      }
      length.update(data.context_length, Math.min(LONGEST, data.n_words - 1));
      const n = data.n_windows;
      status.textContent = `${counted(n, "window")} of ${data.context_length} from ${data.n_words} tokens`;
      list.replaceChildren(...data.windows.map(windowItem));
      if (n > data.windows.length)
        list.append(make("li", { class: "hl-more" }, `… and ${n - data.windows.length} more`));
    }

    function showVocabulary() {
      /** @type {[text: string, id: number][]} */
      const entries = data.vocabulary;
      const words = entries.map(([text, id]) =>
        make("span", { class: "hl-word" }, make("b", {}, shortWord(text)), make("small", {}, ` ${id} `)),
      );
      vocabulary.replaceChildren(...words);
      const left = data.vocab_size - entries.length;
      if (left) vocabulary.append(`… and ${left} more`);
    }

    return {
      text: [
        paragraph(
          "A GPT learns to predict the next token. A long text is cut into windows of ",
          code("context_length"),
          " tokens, one every ",
          code("stride"),
          " tokens. The ",
          term("targets"),
          " are the same windows, one token later: at each position the model sees the input there and everything to ",
          "its left, and has to predict the target below.",
        ),
        paragraph(
          "An id only says which row of a table to take. That row, the token embedding, is added to a row for the ",
          "position, the position embedding. Both tables are learned; here they are new and random (seed 123).",
        ),
      ],
      formula: formula([sub("x", "t"), "=", row(sub("E", row("id", "(", "t", ")")), "+", sub("P", "t"))]),
      picture: [
        heading("Windows over your sentence"),
        controls(length.element, stride.element),
        status,
        list,
        heading("From ids to vectors"),
        paragraph("The words of your sentence, sorted, are the vocabulary:"),
        vocabulary,
        rowOf(token.element, position.element, x.element),
        paragraph(
          "A trained GPT does the same with hundreds of numbers for each token. On the next rungs each of your words ",
          "is its three numbers on the right; the book's sentence has three numbers that the book chose.",
        ),
        arithmetic.element,
      ],
      update(found) {
        data = found;
        showVocabulary();
        const columns = ["0", "1", "2"];
        const positions = data.words.map((/** @type {string} */ _, /** @type {number} */ i) => `position ${i}`);
        token.show({ rows: data.words, columns, values: data.token });
        position.show({ rows: positions, columns, values: data.position });
        x.show({ rows: data.words, columns, values: data.x });
        arithmetic.update(x, [0, 0]);
        showWindows();
      },
    };
  },
};

/**
 * Inputs above their targets, each token with its id.
 * @param {{ inputs: Tokens, targets: Tokens }} window
 * @param {number} i
 */
function windowItem({ inputs, targets }, i) {
  /** @param {string} name @param {Tokens} tokens */
  const line = (name, tokens) => {
    const cells = tokens.map(({ id, text }) =>
      make("td", {}, make("span", {}, shortWord(text)), make("small", {}, id)),
    );
    return make("tr", {}, make("th", { scope: "row" }, name), ...cells);
  };
  const body = make("tbody", {}, line("inputs", inputs), line("targets", targets));
  const table = make("table", { class: "hl-window", "aria-label": `Window ${i}` }, body);
  return make("li", {}, make("div", { class: "hl-scroll" }, table));
}
