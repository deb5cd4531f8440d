// Rung 5: self-attention without weights.

import { make } from "../../lib/dom.mjs";
import { fixed } from "../../lib/numbers.mjs";
import {
  Arithmetic,
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
import { Arrows, dotInWords } from "../widgets/arrows.mjs";
import { slider } from "../widgets/elements.mjs";
import { paragraph } from "../widgets/elements.mjs";
import { formula, fraction, row, sub, sum } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { BOOK_SENTENCE } from "../progress.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { dotTolerance } from "../widgets/exercises.mjs";
import { changeNumbers, vectorsBar } from "../widgets/vectors_bar.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { SoftmaxTerms } from "../../widgets/arithmetic.mjs" */
/** @import { Prediction, Rung } from "../rung.js" */
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
  own({ words, x, scores, weights }) {
    if (words.length < 2) return null;
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
  build(lesson) {
    if (lesson.sentence !== BOOK_SENTENCE) lesson.rephrase(OWN_QUESTION);
    const swap = smallButton("");
    swap.addEventListener("click", () => lesson.set({ swapped: !lesson.options.swapped }));
    const swapped = make("p", { class: "hl-count", role: "status" });
    const sameOutputs = new Stamp("the context vector of each word, before and after the swap");
    const stamp = new Stamp("naive softmax, and softmax that cannot overflow");
    const loops = new Stamp("a double loop of dot products, and one matrix product");
    const arithmetic = new Arithmetic();
    const vectors = vectorsBar(lesson);
    const arrows = new Arrows("The words as arrows", "drag to turn; dashed: the context vector of the row in view");
    /** @type {Data["self-attention"]} */
    let data;
    /** @param {number} r @param {number} c */
    const pair = (r, c) => looks(data.words[r], data.words[c]);
    const change = changeNumbers(lesson, () => ({ x: data.x.map((_, r) => data.x[placeOf(r)]) }));
    /** The place in the sentence of the word in row `r`. @param {number} r */
    function placeOf(r) {
      const [i, j] = (data.swapped && data.pair) || [-1, -1];
      return r === i ? j : r === j ? i : r;
    }
    const x = arithmetic.table({
      name: "The words x",
      digits: 2,
      axes: "words × 3 numbers; drag one sideways, or type",
      edit: (r, c, value) => change(placeOf(r), c, value),
      explain: (r, c) => [paragraph(`Number ${c} of `, named(data.words[r]), `: ${data.origin}.`)],
    });
    const scores = arithmetic.table({
      name: "Attention scores",
      digits: 2,
      axes: AXES,
      explain: (r, c) => {
        const title = ["Score: ", ...pair(r, c), ", number by number"];
        return dotCell({ terms: data.score_terms, r, c, total: data.scores[r][c], title });
      },
      operands: (r, c) => [cellsOf(x, r), cellsOf(x, c)],
    });
    const shares = arithmetic.table({
      name: "Plain normalisation",
      axes: "score / sum of the row",
      sums: true,
      operands: (r) => [cellsOf(scores, r)],
      explain: (r, c) => [
        paragraph("Share: ", ...pair(r, c)),
        division("score / sum of the row", data.scores[r][c], data.sums[r], data.sum_normalised[r][c]),
      ],
    });
    /**
     * @param {Named<"self-attention", number[][]>} values
     * @param {Named<"self-attention", SoftmaxTerms>} terms
     */
    const explainWeights = (values, terms) => (/** @type {number} */ r, /** @type {number} */ c) => {
      const title = ["Weight: ", ...pair(r, c)];
      return softmaxCell({ terms: data[terms], r, c, total: data[values][r][c], title });
    };
    const weights = arithmetic.table({
      name: "Attention weights",
      digits: 2,
      axes: "softmax of each row",
      sums: true,
      operands: (r) => [cellsOf(scores, r)],
      explain: explainWeights("weights", "weight_terms"),
    });
    const context = arithmetic.table({
      name: "Context vectors",
      digits: 2,
      axes: "words × 3 numbers",
      explain: (r, c) => {
        const words = `, number ${c}: each word’s attention weight × its number ${c}`;
        const title = ["Context of ", named(data.words[r]), words];
        return dotCell({ terms: data.context_terms, r, c, total: data.context[r][c], title });
      },
      operands: (r, c) => [cellsOf(weights, r), columnOf(x, c)],
    });
    const negative = make("p", { class: "hl-problem" });
    const factor = slider({
      label: "scores ×",
      values: FACTORS,
      value: lesson.options.factor,
      change: (value) => lesson.set({ factor: value }),
    });
    const naive = arithmetic.table({
      name: "Softmax by its definition",
      axes: "exp(s) / sum",
      explain: (r, c) => {
        const { exponentials, sums } = data.naive_terms;
        const total = data.naive[r][c];
        const values = [large(exponentials[r][c]), large(sums[r]), total === null ? "NaN" : fixed(total)];
        return [paragraph("Weight: ", ...pair(r, c)), exponentialShare(fixed(data.larger[r][c]), values)];
      },
    });
    const stable = arithmetic.table({
      name: "Stable softmax",
      axes: "exp(s − largest) / sum",
      operands: (r) => [cellsOf(naive, r)],
      explain: explainWeights("stable", "stable_terms"),
    });
    arithmetic.shown = (table, [r, c]) => {
      if (table === x) arrows.focus(data.words[r]);
      else drawArrows(r, table === context ? r : c);
    };
    /** @param {number} query @param {number} key */
    function drawArrows(query, key) {
      const { words, x: values } = data;
      const names = words.map((/** @type {string} */ word, /** @type {number} */ i) =>
        words.indexOf(word) === i ? word : `${word} ${i}`,
      );
      const list = names.map((/** @type {string} */ name, /** @type {number} */ i) => {
        return { name, values: values[i], css: i === key && i !== query ? "hl-other" : "" };
      });
      const result = { name: "context", values: data.context[query], css: "hl-result" };
      arrows.show([...list, result]);
      arrows.focus(names[query], dotInWords(words[query], values[query], words[key], values[key]));
    }
    const overflow = make("p", { class: "hl-count", role: "status" });
    function showOrder() {
      const { pair: places, swapped: isSwapped, words } = data;
      swap.hidden = !places;
      swap.textContent = isSwapped ? "Swap them back" : "Does their order count? Swap two words";
      const [one, other] = places ? places.map((place) => `“${words[place]}”`) : [];
      swapped.textContent = isSwapped
        ? `${one} and ${other} have changed places, and their rows with them. Each word keeps its context vector: ` +
          "this attention does not see the order."
        : "";
      sameOutputs.element.hidden = !isSwapped;
      sameOutputs.show(data.order_error);
    }
    return {
      formula: formula(
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
      ),
      parts: {
        vectors: vectors.element,
        x: x.element,
        scores: scores.element,
        weights: weights.element,
        context: context.element,
        arrows: arrows.element,
        swap,
        swapped,
        sameOutputs: sameOutputs.element,
        shares: shares.element,
        negative,
        stamp: stamp.element,
        loops: loops.element,
        factor: factor.element,
        overflow,
        naive: naive.element,
        stable: stable.element,
      },
      explanation: arithmetic.element,
      update(found) {
        data = found;
        const rows = data.words;
        const columns = ["0", "1", "2"];
        vectors.update(data);
        loops.show(data.loop_error);
        showOrder();
        x.show({ rows, columns, values: data.x });
        scores.show({ rows, columns: rows, values: data.scores });
        shares.show({ rows, columns: rows, values: data.sum_normalised });
        weights.show({ rows, columns: rows, values: data.weights });
        context.show({ rows, columns, values: data.context });
        negative.textContent = data.negative
          ? "Some scores of this sentence are negative: look for shares below 0 or above 1."
          : "";
        factor.update(data.factor);
        naive.show({ rows, columns: rows, values: data.naive });
        stable.show({ rows, columns: rows, values: data.stable });
        const failed = data.extreme < 0 ? "exp underflows, and 0 / 0" : "exp overflows, and infinity / infinity";
        const verdict = data.naive.flat().includes(null)
          ? `${failed} is NaN. The stable form still works.`
          : "both forms agree.";
        overflow.textContent = `The score farthest from 0 is ${fixed(data.extreme, 2)}: ${verdict}`;
        stamp.show(data.error);
        arithmetic.update(scores, [1, 0]);
      },
      play() {
        const [q, k] = looksMost(data.weights);
        const [query, key] = [data.words[q], data.words[k]];
        const terms = data.score_terms.products[q][k];
        const i = terms.indexOf(Math.max(...terms));
        const [value, weight] = [fixed(data.x[k][i], 2), fixed(data.weights[q][k], 2)];
        return [
          { at: [x, k, i], words: `“${key}” comes with the number ${value}.` },
          {
            at: [scores, q, k],
            words: `Times the same number of “${query}”, plus the other two products: how well the two words match.`,
          },
          {
            at: [weights, q, k],
            words: `Softmax: exp of the score, divided by the row’s sum. “${query}” looks at “${key}” with ${weight}.`,
          },
          {
            at: [context, q, i],
            words:
              `${weight} × ${value} is the part of “${key}”. With the parts of all words it is number ${i} of the ` +
              `context vector of “${query}”.`,
          },
        ];
      },
    };
  },
};
