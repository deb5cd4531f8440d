// Rung 8: several heads, one after the other and all at once.

import {
  AXES,
  columnOf,
  dotCell,
  dotProduct,
  looks,
  named,
  rowOf as cellsOf,
  softmaxCell,
} from "../../widgets/arithmetic.mjs";
import { fixed } from "../../lib/numbers.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/08_many_heads.mjs";
import { Drawing, TableDrawing } from "../widgets/drawing.mjs";
import { code, heading, paragraph, rowOf, choice, controls, remarks } from "../widgets/elements.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { dotTolerance } from "../widgets/exercises.mjs";
import { TwoHeads } from "../widgets/two_heads.mjs";
import { vectorsBar, wordsTable } from "../widgets/vectors_bar.mjs";
import { batchedProduct, FOUR, HEADS, headTimes, shapesOfHeads } from "./08_head_shapes.mjs";
import { weightOfHead } from "./06_trainable_weights.mjs";
import { twoJobs } from "./06_08_watch_learning.mjs";

/** @import { Rung, Lesson } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */
/** @import { Data } from "../data.js" */

const HEAD_DIM = 2; // numbers of a head in the book's example
/** The head of a number of both, and its place in that head. @param {number} c */
const placeOf = (c) => [Math.floor(c / HEAD_DIM), c % HEAD_DIM];

/** @type {Rung<"many-heads">} */
export const manyHeads = {
  ...content,
  key: "many-heads",
  options: () => ({ d_out: 2 }),
  choices: () => ({ jobs: { seed: 1 }, times: { n_head: 8, n_tokens: 64 }, heads: "trained" }),
  own({ words, random, values, merged }) {
    if (words.length < 2) return null;
    const [a, b] = random[0].weights[1];
    const [v, w] = [values[0][0][0], values[0][1][0]];
    return {
      kind: "number",
      ask:
        `In head 0, “${words[1]}” gives ${fixed(a)} to “${words[0]}”, whose value 0 is ${fixed(v)}, and ` +
        `${fixed(b)} to itself, with ${fixed(w)}. What is number 0 of its context vector?`,
      right: merged[1][0],
      tolerance: dotTolerance([a, b], [v, w]),
      mistakes: [
        { number: v + w, reply: "That leaves the weights out." },
        { number: (v + w) / 2, reply: "That gives both words the same weight." },
        { number: a * w + b * v, reply: "The two values have changed places." },
        { number: a * v, reply: `That is the part of “${words[0]}” alone.` },
        { number: b * w, reply: `That is the part of “${words[1]}” alone.` },
      ],
      hint: "Each attention weight times the value, added up.",
      second: `The part of “${words[0]}” is ${fixed(a * v)}.`,
      why: `${fixed(a)} × ${fixed(v)} + ${fixed(b)} × ${fixed(w)}.`,
    };
  },
  build: (lesson) => new ManyHeads(lesson),
};

/** @extends {TableDrawing<"many-heads">} */
class ManyHeads extends TableDrawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.stamp = new Stamp("stacked heads and weight splits, after the transfer of the weights");
    this.vectors = vectorsBar(
      lesson,
      "This choice changes only the words: the matrices of the heads stay as they are.",
    );
    this.x = wordsTable(this, "words × 3");
    this.weights = this.#makeWeights();
    this.values = this.#valuesTable();
    this.randoms = this.#makeRandoms();
    this.trained = new TwoHeads(lesson, this.arithmetic, {
      words:
        "Two heads with random matrices (seed 123), like those of an untrained model: both spread their weights " +
        "almost evenly over the words so far.",
      tables: this.randoms.map(({ element }) => element),
    });
    this.wide = this.#wideTable();
    this.split = this.#makeSplit();
    this.merged = this.#makeMerged();
    this.outMatrix = this.#outMatrixTable();
    this.output = this.#outputTable();
    this.bookCase = new BookSplits(this.arithmetic, lesson);
    this.batched = batchedProduct(this.arithmetic);
    this.learning = twoJobs(lesson.kept.jobs);
    this.firstToLast = [sub("Z", "0"), ";", "…", ";", sub("Z", row("n_head", "−", "1"))];
    this.formula = formula(["Z", "=", row("[", ...this.firstToLast, "]"), sub("W", "out"), "+", sub("b", "out")]);
    this.parts = this.#makeParts();
  }

  /** @param {number} r @param {number} c */
  #explainContext(r, c) {
    const [head, i] = placeOf(c);
    const { left, right, products } = this.data.merged_terms[head];
    const words = `Head ${head}, number ${i} of the context of `;
    return dotProduct({
      title: [words, named(this.data.words[r]), ": each attention weight × value"],
      left: left[r],
      right: right[i],
      products: products[r][i],
      total: this.data.merged[r][c],
    });
  }

  /** @param {number} head @param {number} r @param {number} c */
  #explainWeight(head, r, c) {
    return c > r
      ? [paragraph(named(this.data.words[c]), " comes after ", named(this.data.words[r]), ": it is masked.")]
      : weightOfHead(this.data.words, this.data.random[head], [r, c], `head ${head}`);
  }

  #makeWeights() {
    return HEADS.map((head) =>
      this.arithmetic.table({
        name: `Attention weights, head ${head}`,
        digits: 2,
        axes: "query ↓, key →",
        explain: (r, c) => this.#explainWeight(head, r, c),
      }),
    );
  }

  #valuesTable() {
    return this.arithmetic.table({
      name: "Values",
      digits: 2,
      axes: "head 0 | head 1",
      explain: (r, c) => {
        const [head, i] = placeOf(c);
        const title = ["Value of ", named(this.data.words[r]), ` in head ${head}, number ${i}: x · W value`];
        return dotCell({ terms: this.data.value_terms[head], r, c: i, total: this.data.values[head][r][i], title });
      },
      operands: (r) => [cellsOf(this.x, r)],
    });
  }

  /** @param {number} r @param {number} c @returns {import("../../widgets/arithmetic.mjs").Operand[][]} */
  #contextOperands(r, c) {
    return [cellsOf(this.weights[placeOf(c)[0]], r), columnOf(this.values, c)];
  }

  #makeRandoms() {
    return HEADS.map((head) =>
      this.arithmetic.table({
        name: `Random head ${head}`,
        axes: `seed 123, as in the small case; ${AXES}`,
        sums: true,
        explain: (r, c) => this.#explainWeight(head, r, c),
      }),
    );
  }

  #wideTable() {
    return this.arithmetic.table({
      name: "Queries of both heads",
      axes: "(T, 4): x · W query",
      explain: (r, c) => {
        const title = ["Query of ", named(this.data.words[r]), `, number ${c}`];
        return dotCell({ terms: this.data.wide_terms, r, c, total: this.data.wide[r][c], title });
      },
    });
  }

  #makeSplit() {
    return HEADS.map((head) =>
      this.arithmetic.table({
        name: `Queries of head ${head}`,
        axes: "(T, 2), after view and transpose",
        explain: (r, c) => [
          paragraph(
            `Number ${c} of head ${head} is number ${HEAD_DIM * head + c} of the wide query of `,
            named(this.data.words[r]),
            ": nothing is computed; the numbers are merely rearranged.",
          ),
        ],
        operands: (r, c) => [[[this.wide, r, HEAD_DIM * head + c]]],
      }),
    );
  }

  #makeMerged() {
    return {
      stacked: this.arithmetic.table({
        name: "Context vectors",
        digits: 2,
        axes: "head 0 | head 1",
        explain: (r, c) => this.#explainContext(r, c),
        operands: (r, c) => this.#contextOperands(r, c),
      }),
      merged: this.arithmetic.table({
        name: "Weight splits",
        axes: "head 0 | head 1",
        explain: (r, c) => this.#explainContext(r, c),
        operands: (r, c) => this.#contextOperands(r, c),
      }),
    };
  }

  #outMatrixTable() {
    return this.arithmetic.table({
      name: "W out",
      digits: 2,
      axes: "4 × 4",
      explain: (r, c) => [paragraph(`From number ${r} of the heads to output ${c}: random here, learned in a model.`)],
    });
  }

  #outputTable() {
    return this.arithmetic.table({
      name: "Output",
      digits: 2,
      axes: "both heads · W out + b out",
      explain: (r, c) => {
        const title = [
          `Output ${c} of `,
          named(this.data.words[r]),
          `: the numbers of both heads × column ${c} of W out`,
        ];
        return dotCell({
          terms: this.data.output_terms,
          r,
          c,
          total: this.data.output[r][c],
          title,
          bias: this.data.b_out[c],
        });
      },
      operands: (r, c) => [cellsOf(this.merged.stacked, r), columnOf(this.outMatrix, c)],
    });
  }

  #makeParts() {
    return {
      learning: this.learning.picture,
      secondHead: this.learning.secondHead,
      learningButtons: this.learning.buttons,
      learningStatus: this.learning.status,
      x: this.x.element,
      weights: this.weights.map((table) => table.element),
      values: this.values.element,
      contexts: this.merged.stacked.element,
      outMatrix: this.outMatrix.element,
      output: this.output.element,
      shapesFormula: formula(
        [
          ...["(", "B", ",", "T", ",", "C", ")", "→"],
          ...["(", "B", ",", "n_head", ",", "T", ",", "head_dim", ")", "→"],
          ...["(", "B", ",", "T", ",", "C", ")"],
        ],
        ["B", " texts of ", "T", " tokens with ", "C", "=", "n_head", "·", "head_dim", " numbers"],
      ),
      shapes: shapesOfHeads({
        x: this.x.element,
        wide: this.wide.element,
        split: this.split[0].element,
        weights: this.weights[0].element,
        merged: this.merged.merged.element,
        projected: this.output.element,
      }),
      splits: this.merged.merged.element,
      stamp: this.stamp.element,
      vectors: this.vectors.element,
      trained: this.trained.elements,
      wide: this.wide.element,
      split: this.split.map((table) => table.element),
      bookCase: this.bookCase.elements,
      batched: this.batched.elements,
      times: headTimes(this.lesson.kept.times),
    };
  }

  leave() {
    this.learning.stop();
  }

  /** @param {Data["many-heads"]} found */
  update(found) {
    this.data = found;
    const rows = found.words;
    this.learning.use(rows);
    this.vectors.update(found);
    this.x.show({ rows, columns: ["0", "1", "2"], values: found.x });
    this.wide.show({ rows, columns: FOUR, values: found.wide });
    this.split.forEach((table, head) => table.show({ rows, columns: ["0", "1"], values: found.split[head] }));
    const sideBySide = rows.map((_, r) => found.values.flatMap((head) => head[r]));
    this.values.show({ rows, columns: ["0", "1", "0", "1"], values: sideBySide });
    this.weights.forEach((table, head) => table.show({ rows, columns: rows, values: found.random[head].weights }));
    this.merged.stacked.show({ rows, columns: ["0", "1", "0", "1"], values: found.stacked });
    this.outMatrix.show({ rows: FOUR, columns: FOUR, values: found.w_out });
    this.output.show({ rows, columns: FOUR, values: found.output });
    this.merged.merged.show({ rows, columns: ["0", "1", "0", "1"], values: found.merged });
    this.bookCase.update(found);
    this.batched.update(found);
    this.stamp.show(found.error);
    this.randoms.forEach((table, i) => table.show({ rows, columns: rows, values: found.random[i].weights }));
    this.trained.update(found.trained);
    this.arithmetic.update(this.merged.stacked, [1, 0]);
  }

  /** @returns {Stop[]} */
  play() {
    const { weights: inHead } = this.data.random[0];
    const [q, k] = looksMost(inHead);
    const [query, key] = [this.data.words[q], this.data.words[k]];
    const weight = fixed(inHead[q][k], 2);
    return [
      { at: [this.x, k, 0], words: `“${key}” comes with the number ${fixed(this.data.x[k][0], 2)}.` },
      { at: [this.values, k, 0], words: `W value of head 0 makes of its numbers what “${key}” contributes.` },
      { at: [this.weights[0], q, k], words: `In head 0, “${query}” gives “${key}” the weight ${weight}.` },
      {
        at: [this.merged.stacked, q, 0],
        words: "Weight × value, over all words: number 0 of head 0. Head 1 stands next to it.",
      },
      { at: [this.output, q, 0], words: "The output projection mixes the numbers of both heads." },
    ];
  }
}

// Part of rung 8: the book's weight splits, of any size, before and after the output projection.

/** @extends {Drawing<"many-heads">} */
class BookSplits extends Drawing {
  /** @param {Arithmetic} arithmetic @param {Lesson} lesson */
  constructor(arithmetic, lesson) {
    super(lesson);
    this.arithmetic = arithmetic;
    this.torch = new Stamp("these weight splits, and torch.nn.MultiheadAttention with the same weights and mask");
    this.size = choice({
      label: "d_out, for both heads together",
      options: { 2: "2, Raschka’s", 4: "4", 16: "16" },
      value: String(this.lesson.options.d_out),
      change: (key) => this.lesson.set({ d_out: Number(key) }),
    });
    this.splitScores = this.#makeSplitScores();
    this.splitWeights = this.#makeSplitWeights();
    this.context = this.#contextTable();
    this.projection = this.#projectionTable();
    this.projected = this.#projectedTable();
    this.elements = this.#makeElements();
  }

  /** The head of a number of both heads' context vectors, and its place there. @param {number} c */
  #placeIn(c) {
    return [Math.floor(c / (this.data.d_out / 2)), c % (this.data.d_out / 2)];
  }

  #makeSplitScores() {
    return HEADS.map((head) =>
      this.arithmetic.table({
        name: `Masked scores of head ${head}, seed 123`,
        axes: "before × 1/√head_dim and softmax",
        hole: "−∞",
        explain: (r, c) => {
          if (c > r) return [paragraph(named(this.data.words[c]), " comes later: its score is replaced with −∞.")];
          const title = [`Score in head ${head}: `, ...looks(this.data.words[r], this.data.words[c])];
          return dotCell({
            terms: this.data.splits_score_terms[head],
            r,
            c,
            total: this.data.splits_scores[head][r][c] ?? NaN,
            title,
          });
        },
      }),
    );
  }

  #makeSplitWeights() {
    return HEADS.map((head) =>
      this.arithmetic.table({
        name: `Weights of head ${head}, seed 123`,
        axes: "after mask and softmax",
        sums: true,
        explain: (r, c) => {
          const title = [
            named(this.data.words[r]),
            " (query) looks at ",
            named(this.data.words[c]),
            ` (key) in head ${head}`,
          ];
          const total = this.data.splits_weights[head][r][c];
          return softmaxCell({ terms: this.data.splits_weight_terms[head], r, c, total, title });
        },
        operands: (r) => [cellsOf(this.splitScores[head], r)],
      }),
    );
  }

  #contextTable() {
    return this.arithmetic.table({
      name: "Before the output projection",
      axes: "head.number",
      explain: (r, c) => {
        const [head, i] = this.#placeIn(c);
        const title = [
          `Head ${head}, number ${i} of the context of `,
          named(this.data.words[r]),
          ": attention weight × value",
        ];
        return dotCell({ terms: this.data.context_terms[head], r, c: i, total: this.data.context[r][c], title });
      },
      operands: (r, c) => [cellsOf(this.splitWeights[this.#placeIn(c)[0]], r)],
    });
  }

  #projectionTable() {
    return this.arithmetic.table({
      name: "The output projection",
      axes: "d_out × d_out",
      explain: (r, c) => [
        paragraph(`From number ${r} of the heads to output ${c}: a weight that is learned (seed 123).`),
      ],
    });
  }

  #projectedTable() {
    return this.arithmetic.table({
      name: "After the output projection",
      axes: "Raschka’s own weight splits",
      explain: (r, c) => {
        const words = `: the numbers of both heads × row ${c} of the projection, plus its bias`;
        const title = [`Output ${c} of `, named(this.data.words[r]), words];
        return dotCell({
          terms: this.data.projected_terms,
          r,
          c,
          total: this.data.projected[r][c],
          title,
          bias: this.data.bias[c],
        });
      },
      operands: (r, c) => [cellsOf(this.context, r), columnOf(this.projection, c)],
    });
  }

  #makeElements() {
    return [
      heading("Raschka’s own example"),
      paragraph(
        "The heads above have 2 numbers each, 4 in all. Those of Raschka’s book have d_out = 2 for both heads ",
        "together, so each head has only 1 number here.",
      ),
      controls(this.size.element),
      rowOf(...this.splitScores.map((table) => table.element)),
      rowOf(...this.splitWeights.map((table) => table.element)),
      rowOf(this.context.element, this.projection.element, this.projected.element),
      this.torch.element,
      remarks(
        "Worth knowing",
        "An output projection is not strictly needed: the heads side by side already have the right shape. Nearly " +
          "all models have one, because it combines what several heads found.",
        [
          "PyTorch has all of this as ",
          code("torch.nn.MultiheadAttention"),
          ", which the comparison above uses. It takes the mask as an argument and is harder to inspect.",
        ],
      ),
    ];
  }

  /** @param {Data["many-heads"]} found */
  update(found) {
    this.data = found;
    const rows = found.words;
    this.size.show(/** @type {any} */ (String(found.d_out)));
    this.torch.show(found.torch_error);
    this.splitScores.forEach((table, h) => table.show({ rows, columns: rows, values: found.splits_scores[h] }));
    this.splitWeights.forEach((table, h) => table.show({ rows, columns: rows, values: found.splits_weights[h] }));
    const places = Array.from({ length: found.d_out }, (_, i) => String(i));
    this.context.show({ rows, columns: places.map((_, i) => this.#placeIn(i).join(".")), values: found.context });
    this.projection.show({ rows: places, columns: places, values: found.projection });
    this.projected.show({ rows, columns: places, values: found.projected });
  }
}
