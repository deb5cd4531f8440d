// Rung 5: self-attention without weights.

import { make } from "../../lib/dom.mjs";
import { fixed } from "../../lib/numbers.mjs";
import {
  AXES,
  columnOf,
  division,
  dotCell,
  exponentialShare,
  looks,
  named,
  rowOf as cellsOf,
  softmaxCell,
} from "../../widgets/arithmetic.mjs";
import { content } from "../content/05_self_attention.mjs";
import { TableDrawing } from "../widgets/drawing.mjs";
import { Arrows, dotInWords } from "../widgets/arrows.mjs";
import { slider } from "../widgets/elements.mjs";
import { paragraph } from "../widgets/elements.mjs";
import { formula, fraction, row, sub, sum } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { BOOK_SENTENCE } from "../progress.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { dotTolerance } from "../widgets/exercises.mjs";
import { changeNumbers, vectorsBar, wordsTable } from "../widgets/vectors_bar.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { SoftmaxTerms } from "../../widgets/arithmetic.mjs" */
/** @import { Lesson, Prediction, Rung } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data, Named } from "../data.js" */

const FACTORS = [-1000, -100, -10, -1, 1, 2, 5, 10, 20, 50, 60, 80, 100, 200, 500, 1000];

/** @type {Prediction} for any sentence except the book's */
const OWN_QUESTION = {
  ask: "What decides how much attention one word of your sentence gives to another?",
  options: ["How well their numbers match", "How close together they are", "Which of them comes first"],
  right: 0,
  why:
    "A dot product is large if two vectors point the same way, and if they are long. The position of a word plays no " +
    "part yet.",
};

/** An exponential in few characters; null if it is more than a float32 can hold. @param {number | null} value */
const large = (value) => (value === null ? "∞" : value < 1e6 ? fixed(value) : value.toExponential(2));

/** @type {Rung<"self-attention">} */
export const selfAttention = {
  ...content,
  key: "self-attention",
  options: () => ({ factor: 1 }),
  ofSentence: ["swapped"],
  own(data) {
    if (data.words.length < 2) return null;
    const { words, x, scores, weights } = unswapped(data);
    const [a, b] = [x[1], x[0]].map((values) => values.map((/** @type {number} */ value) => fixed(value)).join(", "));
    return {
      kind: "number",
      ask: `“${words[1]}” has the numbers ${a}, and “${words[0]}” ${b}. What is the score of the two?`,
      right: scores[1][0],
      tolerance: dotTolerance(x[1], x[0]),
      mistakes: [
        { number: weights[1][0], reply: "That is the weight: softmax comes after the score." },
        { number: scores[1][1], reply: `That is the score of “${words[1]}” with itself.` },
        { number: scores[0][0], reply: `That is the score of “${words[0]}” with itself.` },
        { number: x[1][0] * x[0][0], reply: "That is the first product alone: there are two more." },
        { number: x[1][0] * x[0][0] + x[1][1] * x[0][1], reply: "The third product is missing." },
      ],
      hint: "Multiply number by number and add up the three products.",
      second: `The first product is ${fixed(x[1][0] * x[0][0])}.`,
      why: "A score is a dot product. It is the same in both directions here, because nothing has been learned yet.",
    };
  },
  build: (lesson) => new SelfAttention(lesson),
};

/**
 * The place in the sentence of the word in row `r`.
 * @param {Pick<Data["self-attention"], "swapped" | "pair">} data
 * @param {number} r
 */
function placeOf({ swapped, pair }, r) {
  const [i, j] = (swapped && pair) || [-1, -1];
  return r === i ? j : r === j ? i : r;
}

/** The words and their numbers in the order of the sentence. @param {Data["self-attention"]} data */
function unswapped(data) {
  /** @template T @param {T[]} rows */
  const inOrder = (rows) => rows.map((_, r) => rows[placeOf(data, r)]);
  const [scores, weights] = [data.scores, data.weights].map((rows) => inOrder(rows.map(inOrder)));
  return { words: inOrder(data.words), x: inOrder(data.x), scores, weights };
}

/** @extends {TableDrawing<"self-attention">} */
class SelfAttention extends TableDrawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    if (lesson.sentence !== BOOK_SENTENCE) lesson.rephrase(OWN_QUESTION);
    this.swap = smallButton("");
    this.swap.addEventListener("click", () => lesson.set({ swapped: !lesson.options.swapped }));
    this.swapped = make("p", { class: "hl-count", role: "status" });
    this.sameOutputs = new Stamp("the context vector of each word, before and after the swap");
    this.stamp = new Stamp("naive softmax, and softmax that cannot overflow");
    this.loops = new Stamp("a double loop of dot products, and one matrix product");
    this.vectors = vectorsBar(lesson);
    this.arrows = new Arrows("The words as arrows", "drag to turn; dashed: the context vector of the row in view");
    this.change = changeNumbers(lesson, () => ({ x: unswapped(this.data).x }));
    this.x = wordsTable(this, "words × 3 numbers; drag one sideways, or type", (r, c, value) =>
      this.change(placeOf(this.data, r), c, value),
    );
    this.scores = this.#scoresTable();
    this.shares = this.#sharesTable();
    this.weights = this.#weightsTable();
    this.context = this.#contextTable();
    this.negative = make("p", { class: "hl-problem" });
    this.factor = slider({
      label: "scores ×",
      values: FACTORS,
      value: lesson.options.factor,
      change: (value) => lesson.set({ factor: value }),
    });
    this.naive = this.#naiveTable();
    this.stable = this.#stableTable();
    this.arithmetic.shown = (table, [r, c]) => {
      if (table === this.x) this.arrows.focus(this.data.words[r]);
      else this.#drawArrows(r, table === this.context ? r : c);
    };
    this.overflow = make("p", { class: "hl-count", role: "status" });
    this.formula = this.#makeFormula();
    this.parts = this.#makeParts();
  }

  /** @param {number} r @param {number} c */
  #pair(r, c) {
    return looks(this.data.words[r], this.data.words[c]);
  }

  #scoresTable() {
    return this.arithmetic.table({
      name: "Attention scores",
      digits: 2,
      axes: AXES,
      explain: (r, c) => {
        const title = ["Score: ", ...this.#pair(r, c), ", number by number"];
        return dotCell({ terms: this.data.score_terms, r, c, total: this.data.scores[r][c], title });
      },
      operands: (r, c) => [cellsOf(this.x, r), cellsOf(this.x, c)],
    });
  }

  #sharesTable() {
    return this.arithmetic.table({
      name: "Plain normalisation",
      axes: "score / sum of the row",
      sums: true,
      operands: (r) => [cellsOf(this.scores, r)],
      explain: (r, c) => [
        paragraph("Share: ", ...this.#pair(r, c)),
        division("score / sum of the row", this.data.scores[r][c], this.data.sums[r], this.data.sum_normalised[r][c]),
      ],
    });
  }

  /**
   * @param {Named<"self-attention", number[][]>} values
   * @param {Named<"self-attention", SoftmaxTerms>} terms
   */
  #explainWeights(values, terms) {
    return (/** @type {number} */ r, /** @type {number} */ c) => {
      const title = ["Weight: ", ...this.#pair(r, c)];
      return softmaxCell({ terms: this.data[terms], r, c, total: this.data[values][r][c], title });
    };
  }

  #weightsTable() {
    return this.arithmetic.table({
      name: "Attention weights",
      digits: 2,
      axes: "softmax of each row",
      sums: true,
      operands: (r) => [cellsOf(this.scores, r)],
      explain: this.#explainWeights("weights", "weight_terms"),
    });
  }

  #contextTable() {
    return this.arithmetic.table({
      name: "Context vectors",
      digits: 2,
      axes: "words × 3 numbers",
      explain: (r, c) => {
        const words = `, number ${c}: each word’s attention weight × its number ${c}`;
        const title = ["Context of ", named(this.data.words[r]), words];
        return dotCell({ terms: this.data.context_terms, r, c, total: this.data.context[r][c], title });
      },
      operands: (r, c) => [cellsOf(this.weights, r), columnOf(this.x, c)],
    });
  }

  #naiveTable() {
    return this.arithmetic.table({
      name: "Softmax by its definition",
      axes: "exp(s) / sum",
      explain: (r, c) => {
        const { exponentials, sums } = this.data.naive_terms;
        const total = this.data.naive[r][c];
        const values = [large(exponentials[r][c]), large(sums[r]), total === null ? "NaN" : fixed(total)];
        return [paragraph("Weight: ", ...this.#pair(r, c)), exponentialShare(fixed(this.data.larger[r][c]), values)];
      },
    });
  }

  #stableTable() {
    return this.arithmetic.table({
      name: "Stable softmax",
      axes: "exp(s − largest) / sum",
      operands: (r) => [cellsOf(this.naive, r)],
      explain: this.#explainWeights("stable", "stable_terms"),
    });
  }

  /** @param {number} query @param {number} key */
  #drawArrows(query, key) {
    const { words, x: values } = this.data;
    const names = words.map((/** @type {string} */ word, /** @type {number} */ i) =>
      words.indexOf(word) === i ? word : `${word} ${i}`,
    );
    const list = names.map((/** @type {string} */ name, /** @type {number} */ i) => {
      return { name, values: values[i], css: i === key && i !== query ? "hl-other" : "" };
    });
    const result = { name: "context", values: this.data.context[query], css: "hl-result" };
    this.arrows.show([...list, result]);
    this.arrows.focus(names[query], dotInWords(words[query], values[query], words[key], values[key]));
  }

  #showOrder() {
    const { pair: places, swapped: isSwapped, words } = this.data;
    this.swap.hidden = !places;
    this.swap.textContent = isSwapped ? "Swap them back" : "Does their order count? Swap two words";
    const [one, other] = places ? places.map((place) => `“${words[place]}”`) : [];
    this.swapped.textContent = isSwapped
      ? `${one} and ${other} have changed places, and their rows with them. Each word keeps its context vector: ` +
        "this attention does not see the order."
      : "";
    this.sameOutputs.element.hidden = !isSwapped;
    this.sameOutputs.show(this.data.order_error);
  }

  #makeFormula() {
    return formula(
      ["score ", sub("s", row("i", "j")), "=", sub("x", "i"), "·", sub("x", "j")],
      [
        "weight ",
        sub("w", row("i", "j")),
        "=",
        fraction(
          row("exp", "(", sub("s", row("i", "j")), ")"),
          row(sum("k"), "exp", "(", sub("s", row("i", "k")), ")"),
        ),
      ],
      ["context ", sub("z", "i"), "=", sum("j"), sub("w", row("i", "j")), sub("x", "j")],
    );
  }

  #makeParts() {
    return {
      vectors: this.vectors.element,
      x: this.x.element,
      scores: this.scores.element,
      weights: this.weights.element,
      context: this.context.element,
      arrows: this.arrows.element,
      swap: this.swap,
      swapped: this.swapped,
      sameOutputs: this.sameOutputs.element,
      shares: this.shares.element,
      negative: this.negative,
      stamp: this.stamp.element,
      loops: this.loops.element,
      factor: this.factor.element,
      overflow: this.overflow,
      naive: this.naive.element,
      stable: this.stable.element,
    };
  }

  /** @param {Data["self-attention"]} found */
  update(found) {
    this.data = found;
    const rows = found.words;
    const columns = ["0", "1", "2"];
    this.vectors.update(found);
    this.loops.show(found.loop_error);
    this.#showOrder();
    this.x.show({ rows, columns, values: found.x });
    this.scores.show({ rows, columns: rows, values: found.scores });
    this.shares.show({ rows, columns: rows, values: found.sum_normalised });
    this.weights.show({ rows, columns: rows, values: found.weights });
    this.context.show({ rows, columns, values: found.context });
    this.negative.textContent = found.negative
      ? "Some scores of this sentence are negative: look for shares below 0 or above 1."
      : "";
    this.factor.update(found.factor);
    this.naive.show({ rows, columns: rows, values: found.naive });
    this.stable.show({ rows, columns: rows, values: found.stable });
    const failed = found.extreme < 0 ? "exp underflows, and 0 / 0" : "exp overflows, and infinity / infinity";
    const verdict = found.naive.flat().includes(null)
      ? `${failed} is NaN. The stable form still works.`
      : "both forms agree.";
    this.overflow.textContent = `The score farthest from 0 is ${fixed(found.extreme, 2)}: ${verdict}`;
    this.stamp.show(found.error);
    this.arithmetic.update(this.scores, [1, 0]);
  }

  /** @returns {Stop[]} */
  play() {
    const [q, k] = looksMost(this.data.weights);
    const [query, key] = [this.data.words[q], this.data.words[k]];
    const terms = this.data.score_terms.products[q][k];
    const i = terms.indexOf(Math.max(...terms));
    const [value, weight] = [fixed(this.data.x[k][i], 2), fixed(this.data.weights[q][k], 2)];
    return [
      { at: [this.x, k, i], words: `“${key}” comes with the number ${value}.` },
      {
        at: [this.scores, q, k],
        words: `Times the same number of “${query}”, plus the other two products: how well the two words match.`,
      },
      {
        at: [this.weights, q, k],
        words: `Softmax: exp of the score, divided by the row’s sum. “${query}” looks at “${key}” with ${weight}.`,
      },
      {
        at: [this.context, q, i],
        words:
          `${weight} × ${value} is the part of “${key}”. With the parts of all words it is number ${i} of the ` +
          `context vector of “${query}”.`,
      },
    ];
  }
}
