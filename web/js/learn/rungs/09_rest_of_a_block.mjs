// Rung 9: the rest of a block: residual stream, layer norm and MLP.

import { make } from "../../lib/dom.mjs";
import { fixed, number, significant } from "../../lib/numbers.mjs";
import {
  columnOf,
  dotCell,
  dotProduct,
  named,
  result,
  rowOf as cellsOf,
  softmaxCell,
} from "../../widgets/arithmetic.mjs";
import { formula, fraction, root, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { shortWord } from "../../widgets/heat_table.mjs";
import { content } from "../content/09_rest_of_a_block.mjs";
import { TableDrawing } from "../widgets/drawing.mjs";
import { notebook } from "../widgets/kite.mjs";
import { StoryBlock } from "../widgets/story_block.mjs";
import { bars, chart } from "../widgets/chart.mjs";
import { slider, paragraph } from "../widgets/elements.mjs";
import { vectorsBar, wordsTable } from "../widgets/vectors_bar.mjs";

/** @import { Lesson, Rung } from "../rung.js" */
/** @import { Data, Named } from "../data.js" */
/** @typedef {Named<"block", number[][]>} Matrix */
/** @import { Part } from "../widgets/diagram.mjs" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */

const SCALES = [0.1, 0.2, 0.5, 1, 2, 5, 10, 100];

/** @type {Rung<"block">} */
export const restOfABlock = {
  ...content,
  key: "block",
  options: () => ({ scale: 1 }),
  own({ words, scaled, mean, variance, eps, normed }) {
    const values = scaled[0].map((/** @type {number} */ value) => significant(value)).join(", ");
    return {
      kind: "number",
      ask:
        `“${words[0]}” has the numbers ${values}, with the mean ${significant(mean[0])} and the variance ` +
        `${significant(variance[0])}. What does layer norm make of the first?`,
      right: normed[0][0],
      tolerance: 0.02 + 0.0001 / Math.sqrt(variance[0] + eps), // the numbers are shown to four decimals
      mistakes: [
        { number: scaled[0][0] - mean[0], reply: "That still has to be divided." },
        { number: (scaled[0][0] - mean[0]) / variance[0], reply: "Divide by the square root of the variance." },
        { number: scaled[0][0] / Math.sqrt(variance[0]), reply: "The mean has to be subtracted first." },
        { number: -normed[0][0], reply: "Subtract the mean from the number, not the number from the mean." },
      ].filter((mistake) => Number.isFinite(mistake.number)), // a variance may be 0
      hint: "Subtract the mean, then divide by the square root of the variance.",
      second: `The number minus the mean is ${significant(scaled[0][0] - mean[0])}.`,
      why: `(${significant(scaled[0][0])} − ${significant(mean[0])}) / √(${significant(variance[0])} + ${eps}).`,
    };
  },
  build: (lesson) => new RestOfABlock(lesson),
};

/** @extends {TableDrawing<"block">} */
class RestOfABlock extends TableDrawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.vectors = vectorsBar(
      lesson,
      "This choice changes only the words: the matrices of the block stay as they are.",
    );
    this.whole = new Stamp("the steps above, and the Block that the GPT runs, with the same weights");
    this.joined = new Stamp("the MLP’s two layers without GELU, and one layer with the product of their matrices");
    this.curve = make("div");
    this.ladder = make("div");
    this.said = paragraph();
    this.epsilon = make("span");
    this.scale = slider({
      label: "x ×",
      values: SCALES,
      value: lesson.options.scale,
      change: (value) => lesson.set({ scale: value }),
    });
    this.story = new StoryBlock(this.arithmetic);
    this.x = wordsTable(this, "words × 3");
    this.scaled = this.#scaledTable();
    this.normed = this.#normTable("Layer norm", "normed", {
      read: "scaled",
      mean: "mean",
      variance: "variance",
      table: () => this.scaled,
    });
    this.weights = this.#weightsTable();
    this.attended = this.#attendedTable();
    this.residMid = this.#sumTable("x + attention", "resid_mid", ["scaled", "attended", this.scaled, this.attended]);
    this.mlpInput = this.#normTable("Layer norm again", "mlp_input", {
      read: "resid_mid",
      mean: "resid_mid_mean",
      variance: "resid_mid_variance",
      table: () => this.residMid,
    });
    this.inside = 0; // the word whose hidden numbers are shown
    this.hidden = this.#hiddenTable();
    this.mlpOutput = this.#mlpOutputTable();
    this.after = this.#sumTable("… + MLP", "after", ["resid_mid", "mlp_output", this.residMid, this.mlpOutput]);
    this.ofWords = [this.x, this.scaled, this.normed, this.weights, this.attended, this.residMid, this.mlpInput];
    this.ofWords.push(this.mlpOutput, this.after);
    this.places = this.#makePlaces();
    this.stopFollowing = lesson.diagram.follow(
      lesson.rung,
      this.places.map(([part, tables]) => [part, tables[0].element]),
    );
    this.arithmetic.shown = (table, [r]) => {
      if (this.ofWords.includes(table) && r !== this.inside) this.#lookInside(r);
      const part = this.places.find(([, tables]) => tables.includes(table));
      if (part) lesson.diagram.mark(part[0]);
    };
    this.formula = this.#makeFormula();
    this.parts = this.#makeParts();
  }

  /** @param {number} r @param {string} [words] */
  #of(r, words = "") {
    return [named(this.data.words[r]), words];
  }

  #scaledTable() {
    return this.arithmetic.table({
      name: "x × the slider",
      digits: 2,
      axes: "the stream",
      explain: (r, c) => [
        paragraph(`${number(this.data.x[r][c])} × ${number(this.data.scale)} = ${fixed(this.data.scaled[r][c])}`),
      ],
      operands: (r, c) => [[[this.x, r, c]]],
    });
  }

  /**
   * @param {string} name
   * @param {Matrix} values
   * @param {object} from
   * @param {Matrix} from.read
   * @param {Named<"block", number[]>} from.mean
   * @param {Named<"block", number[]>} from.variance
   * @param {() => HeatTable} from.table
   */
  #normTable(name, values, { read, mean, variance, table }) {
    return this.arithmetic.table({
      name,
      axes: "mean 0, variance 1",
      digits: 2,
      explain: (r, c) => [
        paragraph("Layer norm of ", ...this.#of(r, `, number ${c}: (number − mean) / √(variance + ε)`)),
        paragraph(
          `(${significant(this.data[read][r][c])} − ${significant(this.data[mean][r])}) / ` +
            `√(${significant(this.data[variance][r])} + ${this.data.eps}) `,
          result(fixed(this.data[values][r][c])),
        ),
        paragraph("Its weight is still 1 and its bias 0: training will change both."),
      ],
      operands: (r) => [cellsOf(table(), r)],
    });
  }

  #weightsTable() {
    return this.arithmetic.table({
      name: "Attention weights, head 0",
      digits: 2,
      axes: "of 3 heads with 1 number each",
      sums: true,
      explain: (r, c) => {
        if (c > r) return [paragraph(...this.#of(c, " comes later: it is masked, and has the weight 0."))];
        const [query, key] = [this.data.queries[r][0], this.data.keys[c][0]];
        const score = ` = ${fixed(query)} × ${fixed(key)} = ${fixed(query * key)}, and √head_dim is 1.`;
        const title = [...this.#of(r, " looks at "), ...this.#of(c, ": its score is query × key"), score];
        return softmaxCell({ terms: this.data.weight_terms, r, c, total: this.data.weights[0][r][c], title });
      },
      operands: (r, c) => [cellsOf(this.normed, r), cellsOf(this.normed, c)],
    });
  }

  #attendedTable() {
    return this.arithmetic.table({
      name: "What attention adds",
      digits: 2,
      axes: "all heads",
      explain: (r, c) => {
        const title = ["Attention’s output for ", ...this.#of(r, `, number ${c}`)];
        const bias = this.data.attended_bias[c];
        return dotCell({ terms: this.data.attended_terms, r, c, total: this.data.attended[r][c], title, bias });
      },
    });
  }

  /**
   * @param {string} name
   * @param {Matrix} values
   * @param {[Matrix, Matrix, HeatTable, HeatTable]} from
   */
  #sumTable(name, values, [before, added, first, second]) {
    return this.arithmetic.table({
      name,
      axes: "the stream",
      digits: 2,
      explain: (r, c) =>
        dotProduct({
          title: ["Number ", String(c), " of ", ...this.#of(r, ": the stream, and what is added to it")],
          names: ["stream", "added"],
          products: [this.data[before][r][c], this.data[added][r][c]],
          total: this.data[values][r][c],
        }),
      operands: (r, c) => [[[first, r, c]], [[second, r, c]]],
    });
  }

  /** @returns {HeatTable} */
  #hiddenTable() {
    return this.arithmetic.table({
      name: "Hidden numbers",
      digits: 2,
      explain: (i, c) => {
        const [h, a] = [this.data.hidden[this.inside][i], this.data.activated[this.inside][i]];
        if (c) {
          return [
            paragraph("GELU of hidden number ", String(i), " of ", ...this.#of(this.inside, ":")),
            paragraph(`½ · h · (1 + tanh(√(2/π) · (h + 0.044715 h³))) with h = ${fixed(h)} `, result(fixed(a))),
          ];
        }
        const title = ["Hidden number ", String(i), " of ", ...this.#of(this.inside)];
        return dotCell({
          terms: this.data.hidden_terms,
          r: this.inside,
          c: i,
          total: h,
          title,
          bias: this.data.hidden_bias[i],
        });
      },
      operands: (i, c) => (c ? [[[this.hidden, i, 0]]] : [cellsOf(this.mlpInput, this.inside)]),
    });
  }

  /** Show the hidden numbers of a word. @param {number} r */
  #lookInside(r) {
    this.inside = r;
    // Always two lines, so that no table moves while the pointer is on it.
    this.hidden.axes.replaceChildren(make("br"), `of “${shortWord(this.data.words[r])}”`);
    const values = this.data.hidden[r].map((h, i) => [h, this.data.activated[r][i]]);
    this.hidden.show({ rows: values.map((_, i) => String(i)), columns: ["before", "after GELU"], values });
  }

  #mlpOutputTable() {
    return this.arithmetic.table({
      name: "What the MLP adds",
      digits: 2,
      axes: "12 → 3",
      explain: (r, c) => {
        const title = ["The MLP’s output for ", ...this.#of(r, `, number ${c}`)];
        const bias = this.data.mlp_output_bias[c];
        return dotCell({ terms: this.data.mlp_output_terms, r, c, total: this.data.mlp_output[r][c], title, bias });
      },
      operands: () => [columnOf(this.hidden, 1)],
    });
  }

  /** @returns {[Part, HeatTable[]][]} */
  #makePlaces() {
    const own = [
      [this.x, this.scaled, this.normed],
      [this.weights, this.attended],
      [this.residMid],
      [this.mlpInput],
      [this.mlpOutput, this.hidden],
      [this.after],
    ];
    return this.story.places.map(([part, tables], i) => [part, [...tables, ...own[i]]]);
  }

  #makeFormula() {
    return formula(
      ["LayerNorm", "(", "x", ")", "=", fraction(row("x", "−", "mean"), root("variance", "+", "ε")), "· weight + bias"],
      ["x", "→", "x", "+", "Attention", "(", "LayerNorm", "(", "x", ")", ")"],
      ["x", "→", "x", "+", "MLP", "(", "LayerNorm", "(", "x", ")", ")"],
      [
        "MLP",
        "(",
        "y",
        ")",
        "=",
        "GELU",
        "(",
        "y",
        sub("W", "1"),
        "+",
        sub("b", "1"),
        ")",
        sub("W", "2"),
        "+",
        sub("b", "2"),
      ],
    );
  }

  #makeParts() {
    return {
      notebook: notebook(),
      ...this.story.parts,
      epsilon: this.epsilon,
      scale: this.scale.element,
      x: this.x.element,
      scaled: this.scaled.element,
      normed: this.normed.element,
      weights: this.weights.element,
      attended: this.attended.element,
      residMid: this.residMid.element,
      mlpInput: this.mlpInput.element,
      hidden: this.hidden.element,
      mlpOutput: this.mlpOutput.element,
      after: this.after.element,
      ladder: this.ladder,
      vectors: this.vectors.element,
      whole: this.whole.element,
      said: this.said,
      joined: this.joined.element,
      curve: this.curve,
    };
  }

  /** @param {Data["block"]} found */
  update(found) {
    this.data = found;
    const [rows, columns] = [found.words, ["0", "1", "2"]];
    this.vectors.update(found);
    this.x.show({ rows, columns, values: found.x });
    this.weights.show({ rows, columns: rows, values: found.weights[0] });
    const secondHalf = { resid_mid: this.residMid, mlp_input: this.mlpInput, mlp_output: this.mlpOutput };
    const tables = {
      scaled: this.scaled,
      normed: this.normed,
      attended: this.attended,
      ...secondHalf,
      after: this.after,
    };
    for (const [name, table] of /** @type {[Matrix, HeatTable][]} */ (Object.entries(tables))) {
      table.show({ rows, columns, values: found[name] });
    }
    this.#lookInside(Math.min(this.inside, rows.length - 1));
    this.epsilon.textContent = effectOfEpsilon(found);
    this.whole.show(found.error);
    this.joined.show(found.joined_error);
    this.ladder.replaceChildren(lossLadder(found.ladder, this.lesson));
    this.said.textContent = howTheyWereTrained(found.ladder);
    this.curve.replaceChildren(activations(found.curve));
    this.story.show(found.scale);
    this.arithmetic.update(this.story.normed, [0, 0]);
  }

  play() {
    return this.story.play();
  }

  leave() {
    this.stopFollowing();
  }
}

/** How much smaller ε makes the word with the smallest variance. @param {Data["block"]} data */
function effectOfEpsilon({ variance, eps }) {
  const least = Math.min(...variance);
  if (least === 0) return ".";
  const percent = 100 * (1 - Math.sqrt(least / (least + eps)));
  const amount = percent < 0.01 ? "less than 0.01" : fixed(percent, 2);
  return ` and takes off ${amount}% at most.`;
}

const FULL_BAR = 3; // nats

/** The rung that explains what each model adds. @type {Record<string, { label: string, rung: number }>} */
const ADDED = {
  bigram: { label: "bigram model, half the steps of rung 3", rung: 3 },
  "one head": { label: "one causal head of 32 numbers", rung: 7 },
  "four heads": { label: "four heads of 8 instead", rung: 8 },
  MLP: { label: "+ MLP", rung: 9 },
  "residual and norm": { label: "+ residual stream and layer norm", rung: 9 },
  "four blocks": { label: "four such blocks", rung: 10 },
  "four bare blocks": { label: "four without residual stream and norm", rung: 9 },
};

/**
 * @param {Data["block"]["ladder"]} found
 * @param {{ rung: number, go: (rung: number) => void }} lesson
 */
function lossLadder({ models }, lesson) {
  const lines = models.map(({ name, held_out_loss: value }) => {
    const { label, rung } = ADDED[name];
    const link = make("a", { class: "hl-opens", href: `#learn/${rung}`, title: `Rung ${rung}` }, label);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      lesson.go(rung);
    });
    return { label, value, link };
  });
  return bars("The loss ladder, measured here: nats per character, lower is better", lines, FULL_BAR, {
    format: (value) => fixed(value, 2),
  });
}

/** @param {Data["block"]["ladder"]} found */
const howTheyWereTrained = ({ steps, seed }) =>
  `The models of the loss ladder: their loss on the held-out tenth of tiny Shakespeare after ${number(steps)} steps ` +
  `of 32 windows of 8 characters, with vectors of 32 numbers and a learning rate of 0.001 (seed ${seed}). ` +
  "Without residual stream and norm, chance decides: with other seeds and processors the loss was 2.3 to 2.6.";

/** @param {{ x: number[], gelu: number[], relu: number[] }} curve */
const activations = ({ x, gelu, relu }) =>
  chart({
    label: "GELU and ReLU between −4 and 4",
    x: { from: x[0], to: String(x.at(-1)), count: x.length },
    lines: { GELU: gelu, "ReLU, for comparison": relu },
    xName: "hidden number",
    yName: "after the activation",
  });
