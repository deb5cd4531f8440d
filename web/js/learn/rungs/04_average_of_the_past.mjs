// Rung 4: the average of the past, three ways.

import { make } from "../../lib/dom.mjs";
import { fixed } from "../../lib/numbers.mjs";
import {
  Arithmetic,
  columnOf,
  dotCell,
  looks,
  named,
  rowOf as cellsOf,
  softmaxCell,
} from "../../widgets/arithmetic.mjs";
import { formula, fraction, row, sub, sum } from "../../widgets/formula.mjs";
import { ALL_THREE, Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/04_average_of_the_past.mjs";
import { TableDrawing } from "../widgets/drawing.mjs";
import { choice, paragraph, rowOf } from "../widgets/elements.mjs";
import { changeNumbers, vectorsBar } from "../widgets/vectors_bar.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Rung, Lesson } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data } from "../data.js" */

/** The ways of computing the averages, and what each of them does. */
const WAYS = { by_loop: "a loop", by_matrix: "a matrix product", by_softmax: "a softmax" };
/** @typedef {keyof typeof WAYS} Way */
/** @type {Record<Way, string>} */
const DOES = {
  by_loop: "x[:t + 1].mean(0), token after token",
  by_matrix: "weights · x",
  by_softmax: "softmax of the scores · x",
};

/** @type {Rung<"averages">} */
export const averageOfThePast = {
  ...content,
  key: "averages",
  options: () => ({ lecture: false }),
  choices: () => ({ way: "by_softmax" }),
  ofSentence: ["scores"],
  own({ words, x, by_loop: average }) {
    if (words.length < 2) return null;
    const [a, b] = [x[0][0], x[1][0]];
    return {
      kind: "number",
      ask:
        `Number 0 is ${fixed(a)} for “${words[0]}” and ${fixed(b)} for “${words[1]}”. What is it in the average at ` +
        `“${words[1]}”?`,
      right: average[1][0],
      tolerance: 0.002,
      mistakes: [
        { number: a + b, reply: "That is the sum: divide it by how many words there are." },
        { number: b, reply: `That is the number of “${words[1]}” alone.` },
        { number: a, reply: `That is the number of “${words[0]}” alone.` },
        { number: (a - b) / 2, reply: "Add the two numbers, with their signs." },
      ],
      hint: "The average of the past includes the word itself: two words here, each with the weight 1/2.",
      second: `Together they are ${fixed(a + b)}.`,
      why: `(${fixed(a)} + ${fixed(b)}) / 2.`,
    };
  },
  build: (lesson) => new Averages(lesson),
};

/** @extends {TableDrawing<"averages">} */
class Averages extends TableDrawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.example = choice({
      label: "numbers",
      options: { lecture: "8 random tokens", own: "the sentence" },
      value: lesson.options.lecture ? "lecture" : "own",
      change: (key) => lesson.set({ lecture: key === "lecture", scores: null }),
    });
    this.kept = lesson.kept;
    this.way = choice({
      label: "computed by",
      options: WAYS,
      value: this.#wayNow(),
      change: (key) => this.#choose(key),
    });
    this.back = smallButton("Reset the scores");
    this.back.addEventListener("click", () => lesson.set({ scores: null }));
    this.status = make("p", { class: "hl-count", role: "status" });
    this.stamp = new Stamp("the loop, the matrix product and the softmax", false, ALL_THREE);
    this.vectors = vectorsBar(lesson);
    this.toy = toyProduct(lesson);
    this.edit = changeNumbers(lesson, () => this.data);
    this.x = this.#xTable();
    this.weights = this.#weightsTable();
    this.masked = this.#maskedTable();
    this.averages = this.#averagesTable();
    this.formula = formula(
      [sub("y", "t"), "=", fraction("1", row("t", "+", "1")), sum(row("s", "≤", "t")), sub("x", "s")],
      ["y", "=", "softmax", "(", "masked zeros", ")", "x"],
    );
    this.parts = this.#makeParts();
  }

  #wayNow() {
    return /** @type {Way} */ (this.kept.way);
  }

  /** Whether the visitor's scores are what the weights come from. */
  #isWeighted() {
    return this.#wayNow() === "by_softmax" && this.data.edited_scores > 0;
  }

  #xTable() {
    return this.arithmetic.table({
      name: "The tokens x",
      digits: 2,
      axes: "tokens × numbers",
      explain: (r, c) => [paragraph(`Number ${c} of `, named(this.data.words[r]), ". All averages are made of these.")],
    });
  }

  #weightsTable() {
    return this.arithmetic.table({
      name: "Weights",
      digits: 2,
      axes: "this token ↓ takes from that token →",
      sums: true,
      operands: (r) => (this.#wayNow() === "by_softmax" ? [cellsOf(this.masked, r)] : []),
      explain: (r, c) => {
        if (c > r || !this.#isWeighted()) return [explainWeight(this.data.words, r, c)];
        const title = ["Weight: ", ...looks(this.data.words[r], this.data.words[c])];
        return softmaxCell({
          terms: this.data.softmax_weight_terms,
          r,
          c,
          total: this.data.softmax_weights[r][c],
          title,
        });
      },
    });
  }

  #maskedTable() {
    return this.arithmetic.table({
      name: "Scores, the future masked",
      axes: "before softmax; type a score over a zero",
      hole: "−∞",
      digits: 2,
      explain: (r, c) => [explainScore(this.data.words, this.data.masked[r][c], r, c)],
      edit: (r, c, value) => {
        if (c > r) return;
        this.#choose("by_softmax");
        /** @type {(number | null)[][]} */
        const now = this.lesson.options.scores ?? this.data.masked;
        const scores = now.map((line) => line.map((score) => score ?? 0));
        scores[r][c] = value;
        this.lesson.set({ scores });
      },
    });
  }

  #averagesTable() {
    return this.arithmetic.table({
      name: "Averages",
      digits: 2,
      axes: "tokens × numbers",
      explain: (r, c) => {
        const words = `, number ${c}: each weight of its row × that number of the token`;
        const title = ["Average up to ", named(this.data.words[r]), words];
        const terms = this.#isWeighted() ? this.data.softmax_terms : this.data.terms;
        return dotCell({ terms, r, c, total: this.data[this.#wayNow()][r][c], title });
      },
      operands: (r, c) => [cellsOf(this.weights, r), columnOf(this.x, c)],
    });
  }

  /** @param {Way} key */
  #choose(key) {
    if (key === this.#wayNow()) return;
    this.kept.way = key;
    this.#showWay();
  }

  #showWay() {
    const [rows, now] = [this.data.words, this.#wayNow()];
    this.way.show(now);
    this.weights.show({
      rows,
      columns: rows,
      values: this.#isWeighted() ? this.data.softmax_weights : this.data.weights,
    });
    this.weights.cellAt(rows.length - 1, 0)?.parentElement?.classList.add("hl-asked"); // by the prediction
    this.averages.axes.textContent = DOES[now];
    this.averages.show({ rows, columns: Array.from(this.data.x[0], (_, i) => String(i)), values: this.data[now] });
    this.stamp.element.hidden = this.data.edited_scores > 0;
    this.status.textContent = !this.data.edited_scores
      ? ""
      : this.#isWeighted()
        ? "With your scores the average is weighted: the larger the score of a token, the more it counts."
        : "Your scores only enter the softmax. This way still weights all tokens equally.";
    this.arithmetic.update(this.averages, [2, 0]);
  }

  #makeParts() {
    return {
      toyKind: this.toy.kind,
      toy: this.toy.picture,
      vectors: this.vectors.element,
      way: this.way.element,
      back: this.back,
      x: this.x.element,
      masked: this.masked.element,
      weights: this.weights.element,
      averages: this.averages.element,
      status: this.status,
      stamp: this.stamp.element,
      example: this.example.element,
    };
  }

  /** @param {Data["averages"]} found */
  update(found) {
    this.data = found;
    this.example.show(found.lecture ? "lecture" : "own");
    this.vectors.element.hidden = found.lecture;
    if (!found.lecture) this.vectors.update(found);
    this.toy.update(found.toy);
    const rows = found.words;
    this.x.edit = found.lecture ? null : this.edit;
    this.x.show({ rows, columns: Array.from(found.x[0], (_, i) => String(i)), values: found.x });
    this.masked.show({ rows, columns: rows, values: found.masked });
    this.back.hidden = !found.edited_scores;
    this.stamp.show(found.error);
    this.#showWay();
  }

  /** @returns {Stop[]} */
  play() {
    const { words, x: values } = this.data;
    const last = words.length - 1;
    const [share, mean] = [this.weights.valueAt(last, 0), this.averages.valueAt(last, 0)].map((value) =>
      fixed(value ?? 0, 2),
    );
    const scored = this.data.edited_scores
      ? `Its score is ${fixed(this.data.masked[last][0] ?? 0, 2)}.`
      : "Its score is 0, like all others.";
    const weighted = this.#isWeighted()
      ? `Softmax of the scores: its weight is ${share}.`
      : `${last + 1} equal scores, so each gets the weight ${share}.`;
    return [
      { at: [this.x, 0, 0], words: `“${words[0]}” comes with the number ${fixed(values[0][0], 2)}.` },
      { at: [this.masked, last, 0], words: `“${words[last]}” may look at it. ${scored}` },
      { at: [this.weights, last, 0], words: weighted },
      { at: [this.averages, last, 0], words: `Weight × number, added up over all words so far: ${mean}.` },
    ];
  }
}

/**
 * @param {string[]} words
 * @param {number | null} score
 * @param {number} r
 * @param {number} c
 */
function explainScore(words, score, r, c) {
  const [query, key] = [named(words[r]), named(words[c])];
  if (c > r) return paragraph(key, " comes after ", query, ": its score is minus infinity, whose exponential is 0.");
  if (score) return paragraph(key, " is not after ", query, `: its score is yours, ${fixed(score, 2)}.`);
  return paragraph(key, " is not after ", query, ": its score is 0. Type another one, and its weight changes.");
}

/**
 * @param {string[]} words
 * @param {number} r
 * @param {number} c
 */
function explainWeight(words, r, c) {
  if (c > r) return paragraph(named(words[c]), " comes after ", named(words[r]), ": it gets no weight.");
  const tokens = r ? `${r + 1} tokens` : "1 token";
  return paragraph(named(words[r]), ` takes from ${tokens}, each with the weight 1 / ${r + 1}.`);
}

// The first half of rung 4: a product with ones, with a triangle of ones, and with a triangle whose rows add up to 1.

const MEANING = {
  ones: "every row adds up all rows of b",
  tril: "each row adds up the rows of b so far",
  normalised: "each row averages the rows of b so far",
};

/** @param {Lesson} lesson */
function toyProduct(lesson) {
  const arithmetic = new Arithmetic();
  /** @type {Data["averages"]["toy"]} */
  let data;
  const kind = choice({
    label: "a is",
    options: { ones: "all ones", tril: "a triangle of ones", normalised: "a triangle, rows / their sums" },
    value: lesson.options.toy ?? "normalised",
    change: (toy) => lesson.set({ toy }),
  });
  const [a, b] = ["a", "b"].map((name) =>
    arithmetic.table({
      name,
      axes: name === "a" ? "3 × 3" : "3 × 2",
      digits: 2,
      sums: name === "a",
      explain: (r, c) => [
        paragraph(
          name === "a" ? explainToyWeight(data.kind, r, c) : `Number ${c} of token ${r}, drawn at random (seed 42).`,
        ),
      ],
    }),
  );
  const product = arithmetic.table({
    name: "a · b",
    digits: 2,
    explain: (r, c) => {
      const title = [`Row ${r} of a × column ${c} of b: `, MEANING[/** @type {keyof typeof MEANING} */ (data.kind)]];
      return dotCell({ terms: data.terms, r, c, total: data.product[r][c], title });
    },
    operands: (r, c) => [cellsOf(a, r), columnOf(b, c)],
  });
  return {
    kind: kind.element,
    picture: [rowOf(a.element, b.element, product.element), make("div", {}, arithmetic.element)],
    /** @param {Data["averages"]["toy"]} found */
    update(found) {
      data = found;
      kind.show(data.kind);
      const [tokens, numbers] = [
        ["0", "1", "2"],
        ["0", "1"],
      ];
      a.show({ rows: tokens, columns: tokens, values: data.a });
      b.show({ rows: tokens, columns: numbers, values: data.b });
      product.show({ rows: tokens, columns: numbers, values: data.product });
      arithmetic.update(product, [2, 0]);
    },
  };
}

/** @param {string} kind @param {number} r @param {number} c */
function explainToyWeight(kind, r, c) {
  if (kind === "ones") return "1: every token counts once.";
  if (c > r) return `0: token ${c} comes after token ${r}.`;
  return kind === "tril" ? "1: this token is not after the row’s own." : `1 / ${r + 1}: one of ${r + 1} so far.`;
}
