// Rung 6: separate queries, keys and values, and why the scores are divided.

import { make } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import {
  AXES,
  columnOf,
  dotCell,
  looks,
  named,
  rowOf as cellsOf,
  softmaxCell,
  dotProduct,
} from "../../widgets/arithmetic.mjs";
import { formula, fraction, root, row, sub, sup } from "../../widgets/formula.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/06_trainable_weights.mjs";
import { TableDrawing } from "../widgets/drawing.mjs";
import { ask } from "../server.mjs";
import { Arrows, dotInWords } from "../widgets/arrows.mjs";
import { choice, code, controls, paragraph, rowOf } from "../widgets/elements.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { dotTolerance } from "../widgets/exercises.mjs";
import { TwoHeads } from "../widgets/two_heads.mjs";
import { vectorsBar, wordsTable } from "../widgets/vectors_bar.mjs";
import { ScoreScaling } from "./06_score_scaling.mjs";
import { divideTheScores, findTheSubject } from "./06_08_watch_learning.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Rung, Lesson } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data } from "../data.js" */

const KINDS = {
  parameters: "parameters, seed 123",
  linear: "linear layers, seed 789",
  reader: "a reader’s code, with mistakes",
  reader_linear: "the reader’s code, linear layers",
};
/** @type {Record<string, string>} */
const ORIGINS = {
  parameters: "drawn between 0 and 1 (seed 123).",
  linear: "drawn by nn.Linear, between −1/√3 and 1/√3 (seed 789).",
  reader: "drawn from a normal distribution, keys first (seed 123).",
  reader_linear: "drawn by nn.Linear, keys first (seed 123).",
};
/** @type {Record<string, string>} */
const ABOUT = {
  parameters: "",
  linear: "The same mechanism with other numbers: only the matrices differ.",
  reader:
    "An implementation that a reader of Raschka’s book published. It runs, and its rows add up to 1, but it differs " +
    "from the book in three ways. With 256 numbers in a query instead of 2, its output has the shape (6, 256).",
  reader_linear: "The reader’s second version: linear layers, with the same mistakes.",
};
const RANDOM = /** @type {const} */ (["parameters", "linear"]);
/** Whether these matrices are those of the reader, whose code swaps queries and keys. @param {string} kind */
const isReaders = (kind) => kind.startsWith("reader");
/** What the scores are divided by. @param {string} kind */
const rootOf = (kind) => (isReaders(kind) ? "√256" : "√head_dim");
const ROLES = { query: "Queries", key: "Keys", value: "Values" };

/** @type {Rung<"trainable-weights">} */
export const trainableWeights = {
  ...content,
  key: "trainable-weights",
  options: () => ({ kind: "parameters" }),
  choices: () => ({
    transfer: { query: "own", key: "own", value: "own" },
    subject: { seed: 1 },
    division: { seed: 1 },
    scaling: { head_dim: 16, sharpness: 8 },
    heads: "trained",
  }),
  own({ words, kind, score_terms: { left, right, products }, scores, scale }) {
    if (words.length < 2) return null;
    const [a, b] = [left[1], right[0]].map((values) =>
      values.map((/** @type {number} */ value) => fixed(value)).join(", "),
    );
    const [first, second] = isReaders(kind) ? ["key", "query"] : ["query", "key"];
    return {
      kind: "number",
      ask:
        `The ${first} of “${words[1]}” is (${a}) and the ${second} of “${words[0]}” is (${b}). ` +
        `${isReaders(kind) ? "The reader’s code multiplies the two. " : ""}What is the score before the scale?`,
      right: scores[1][0],
      tolerance: dotTolerance(left[1], right[0]),
      mistakes: [
        { number: scores[1][0] * scale, reply: "That is divided already: the score comes before the scale." },
        { number: scores[0][1], reply: `That is the ${first} of “${words[0]}” and the ${second} of “${words[1]}”.` },
        { number: products[1][0][0], reply: "That is the first product alone: there is another one." },
      ],
      hint: "It is a dot product again, of two numbers each.",
      second: `The first product is ${fixed(products[1][0][0])}.`,
      why: products[1][0]
        .map((/** @type {number} */ value) => fixed(value))
        .join(" + ")
        .replaceAll("+ −", "− "),
    };
  },
  build: (lesson) => new TrainableWeights(lesson),
};

/** @extends {TableDrawing<"trainable-weights">} */
class TrainableWeights extends TableDrawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.kind = choice({
      label: "matrices",
      options: KINDS,
      value: lesson.options.kind,
      change: (key) => lesson.set({ kind: key, matrices: null }),
    });
    this.back = smallButton("Reset the matrices");
    this.back.addEventListener("click", () => lesson.set({ matrices: null }));
    this.about = make("p", { class: "hl-count", role: "status" });
    this.vectors = vectorsBar(lesson, "This choice changes only the words: the three matrices stay as they are.");
    this.arrows = new Arrows("Queries and keys as arrows", "thick: the query; the other colour: the key in view");
    this.stamp = new Stamp("all three matrices transferred correctly, regardless of your choices above", false, [
      "parameters and linear layers agree",
      "parameters and linear layers differ",
    ]);
    this.x = wordsTable(this, "words × 3, as on rung 5");
    this.matrices = Object.fromEntries(Object.keys(ROLES).map((role) => [role, this.#makeMatrix(role)]));
    this.roles = this.#makeRoles();
    this.queries = this.roles[0].projected;
    this.keys = this.roles[1].projected;
    this.values = this.roles[2].projected;
    this.scores = this.#scoresTable();
    this.weights = this.#weightsTable();
    this.context = this.#contextTable();
    this.wide = this.#wideTable();
    this.randoms = this.#makeRandoms();
    this.heads = new TwoHeads(lesson, this.arithmetic, {
      words:
        "Two heads with random matrices, drawn like those of an untrained model: both spread their weights almost " +
        "evenly, whatever the words are.",
      tables: this.randoms.map(({ element }) => element),
    });
    this.transfer = transferWeights(lesson);
    this.arithmetic.shown = (table, [r, c]) => {
      if (table === this.scores || table === this.weights)
        this.#drawArrows(...(isReaders(this.data.kind) ? [c, r] : [r, c]));
      else if (table === this.queries || table === this.keys) this.#drawArrows(r, r);
    };
    this.scaling = new ScoreScaling(this.arithmetic, lesson.kept.scaling);
    this.learning = findTheSubject(lesson.kept.subject);
    this.division = divideTheScores(lesson.kept.division);
    this.formula = this.#makeFormula();
    this.parts = this.#makeParts();
  }

  /** @param {number} r @param {number} c */
  #pair(r, c) {
    return looks(this.data.words[r], this.data.words[c]);
  }

  /** @param {string} role */
  #makeMatrix(role) {
    return this.arithmetic.table({
      name: `W ${role}`,
      digits: 2,
      axes: "3 × 2",
      edit: (r, c, value) => {
        const matrices = { ...this.data.matrices, ...this.lesson.options.matrices };
        const changed = matrices[role].map((/** @type {number[]} */ line) => [...line]);
        changed[r][c] = value;
        this.lesson.set({ matrices: { ...matrices, [role]: changed } });
      },
      explain: (r, c) => [
        paragraph(
          `From number ${r} of a word to number ${c} of its ${role}: `,
          this.data.set.includes(role) ? "a weight of a matrix that you have changed." : ORIGINS[this.data.kind],
          " Training would change it; here you can change it yourself.",
        ),
      ],
    });
  }

  #makeRoles() {
    return /** @type {[keyof typeof ROLES, string][]} */ (Object.entries(ROLES)).map(([role, name]) => ({
      role,
      matrix: this.matrices[role],
      projected: this.arithmetic.table({
        name,
        axes: `x · W ${role}`,
        digits: 2,
        operands: (r, c) => [cellsOf(this.x, r), columnOf(this.matrices[role], c)],
        explain: (r, c) => {
          const words = `, number ${c}: its vector × column ${c} of W ${role}`;
          const title = [`The ${role} of `, named(this.data.words[r]), words];
          return dotCell({ terms: this.data.projections[role], r, c, total: this.data[role][r][c], title });
        },
      }),
    }));
  }

  #scoresTable() {
    return this.arithmetic.table({
      name: "Attention scores",
      digits: 2,
      axes: AXES,
      explain: (r, c) =>
        dotCell({
          terms: this.data.score_terms,
          r,
          c,
          total: this.data.scores[r][c],
          title: ["Score: ", ...this.#pair(r, c)],
        }),
      operands: (r, c) => {
        const [first, second] = isReaders(this.data.kind) ? [this.keys, this.queries] : [this.queries, this.keys];
        return [cellsOf(first, r), cellsOf(second, c)];
      },
    });
  }

  #weightsTable() {
    return this.arithmetic.table({
      name: "Attention weights",
      digits: 2,
      axes: "softmax",
      sums: true,
      operands: (r) => [cellsOf(this.scores, r)],
      explain: (r, c) => {
        const product =
          `The score ${number(this.data.scores[r][c])} × ${number(this.data.scale)} ` +
          `(which is 1 / ${rootOf(this.data.kind)})`;
        const title = ["Weight: ", ...this.#pair(r, c)];
        const share = softmaxCell({ terms: this.data.weight_terms, r, c, total: this.data.weights[r][c], title });
        return [paragraph(`${product} goes into the softmax.`), ...share];
      },
    });
  }

  #contextTable() {
    return this.arithmetic.table({
      name: "Context vectors",
      digits: 2,
      axes: "weights · values",
      explain: (r, c) => {
        const words = `, number ${c}: each attention weight × number ${c} of the value`;
        const title = ["Context of ", named(this.data.words[r]), words];
        return dotCell({ terms: this.data.context_terms, r, c, total: this.data.context[r][c], title });
      },
      operands: (r, c) => [cellsOf(this.weights, r), columnOf(this.values, c)],
    });
  }

  #wideTable() {
    return this.arithmetic.table({
      name: "The reader’s weights with 256 numbers in a query",
      axes: "the same code, with the dimension that its scale fits",
      explain: (r, c) => {
        const title = ["Weight: ", ...this.#pair(r, c), ", of a score of 256 products, × 1 / √256"];
        if (!this.data.wide || !this.data.wide_terms) return [];
        return softmaxCell({ terms: this.data.wide_terms, r, c, total: this.data.wide[r][c], title });
      },
    });
  }

  #makeRandoms() {
    return [0, 1].map((side) =>
      this.arithmetic.table({
        name: `Random head ${side}`,
        axes: `${KINDS[RANDOM[side]]}; ${AXES}`,
        sums: true,
        explain: (r, c) => weightOfHead(this.data.words, this.data.random[side], [r, c], `random head ${side}`),
      }),
    );
  }

  /** @param {...number} place of the query and the key */
  #drawArrows(...[r, c]) {
    const { words, query, key } = this.data;
    const all = words.map((/** @type {string} */ word, /** @type {number} */ i) => {
      return { name: `k ${word}`, values: key[i], css: i === c ? "hl-other" : "" };
    });
    this.arrows.show([...all, { name: `q ${words[r]}`, values: query[r] }]);
    this.arrows.focus(`q ${words[r]}`, dotInWords(`q ${words[r]}`, query[r], `k ${words[c]}`, key[c]));
  }

  #makeFormula() {
    return formula(
      ["Q", "=", "x", sub("W", "query"), ", ", "K", "=", "x", sub("W", "key"), ", ", "V", "=", "x", sub("W", "value")],
      ["Z", "=", "softmax", "(", fraction(row("Q", sup("K", "T")), root("head_dim")), ")", "V"],
    );
  }

  #makeParts() {
    return {
      learning: this.learning.picture,
      shares: this.learning.shares,
      learningButtons: this.learning.buttons,
      learningStatus: this.learning.status,
      division: this.division.picture,
      divisionButtons: this.division.buttons,
      divisionStatus: this.division.status,
      x: this.x.element,
      projections: this.roles.map(({ matrix, projected }) => make("section", {}, matrix.element, projected.element)),
      scores: this.scores.element,
      weights: this.weights.element,
      context: this.context.element,
      arrows: this.arrows.element,
      vectors: this.vectors.element,
      kind: this.kind.element,
      back: this.back,
      about: this.about,
      wide: this.wide.element,
      heads: this.heads.elements,
      transfer: this.transfer.elements,
      stamp: this.stamp.element,
      scaling: this.scaling.elements,
    };
  }

  leave() {
    this.learning.stop();
    this.division.stop();
  }

  /** @param {Data["trainable-weights"]} found */
  update(found) {
    this.data = found;
    this.kind.show(found.kind);
    this.about.textContent = ABOUT[found.kind];
    this.back.hidden = !found.set.length;
    this.vectors.update(found);
    this.transfer.load();
    const rows = found.words;
    const columns = ["0", "1"];
    this.x.show({ rows, columns: ["0", "1", "2"], values: found.x });
    this.wide.element.hidden = !found.wide;
    if (found.wide) this.wide.show({ rows, columns: rows, values: found.wide });
    for (const { role, matrix, projected } of this.roles) {
      matrix.show({ rows: ["0", "1", "2"], columns, values: found.matrices[role] });
      projected.show({ rows, columns, values: found[role] });
    }
    this.scores.show({ rows, columns: rows, values: found.scores });
    this.weights.axes.textContent = `softmax of score / ${rootOf(found.kind)}`;
    this.weights.show({ rows, columns: rows, values: found.weights });
    this.context.show({ rows, columns, values: found.context });
    this.stamp.show(found.error);
    this.arithmetic.update(this.scores, [1, 1]);
    this.randoms.forEach((table, i) => table.show({ rows, columns: rows, values: found.random[i].weights }));
    this.heads.update(found.trained);
    this.scaling.start();
  }

  /** @returns {Stop[]} */
  play() {
    const [q, k] = looksMost(this.data.weights);
    const [query, key] = [this.data.words[q], this.data.words[k]];
    const weight = fixed(this.data.weights[q][k], 2);
    const swaps = isReaders(this.data.kind);
    const role = swaps ? "key" : "query";
    return [
      { at: [this.x, q, 0], words: `“${query}” comes with the number ${fixed(this.data.x[q][0], 2)}.` },
      { at: [this.matrices[role], 0, 0], words: `A weight of W ${role}, which training would change, multiplies it.` },
      {
        at: [swaps ? this.keys : this.queries, q, 0],
        words: `With two more products: number 0 of the ${role} of “${query}”.`,
      },
      {
        at: [this.scores, q, k],
        words: swaps
          ? `Its key times the query of “${key}”: the reader’s code has swapped the two.`
          : `Query times key: how well “${key}” matches what “${query}” looks for.`,
      },
      {
        at: [this.weights, q, k],
        words: `Divided by ${rootOf(this.data.kind)}, then softmax: “${key}” gets the weight ${weight}.`,
      },
      {
        at: [this.context, q, 0],
        words: `${weight} × the value of “${key}”, and the same for all words: number 0 of what “${query}” found.`,
      },
    ];
  }
}

// Exercise 1 of the chapter, on rung 6: copy weights of linear layers into parameters until both outputs agree.

const ROLE_NAMES = ["query", "key", "value"];
const TOLERANCE = 1e-6;

/** @param {Lesson} lesson */
function transferWeights(lesson) {
  const transfer = /** @type {Record<string, string>} */ (lesson.kept.transfer);
  const request = new LatestRequest();
  const verdict = make("p", { class: "hl-count", role: "status" });
  const columns = ROLE_NAMES.map((role) => {
    const stored = new HeatTable({ name: `W_${role}.weight`, axes: "of nn.Linear, as it is stored: 2 × 3" });
    const own = new HeatTable({ name: `W_${role}`, axes: "of the parameters: 3 × 2" });
    const pick = choice({
      label: "copy",
      options: { own: "nothing", reshaped: ".reshape(3, 2)", transposed: ".T" },
      value: transfer[role],
      change(key) {
        transfer[role] = key;
        load();
      },
    });
    return { role, stored, own, element: make("div", {}, stored.element, controls(pick.element), own.element) };
  });

  async function load() {
    try {
      const data = await request.send((signal) => ask("transfer", { ...lesson.about, transfer }, signal));
      if (!data) return;
      for (const { role, stored, own } of columns) {
        stored.show({ rows: ["0", "1"], columns: ["0", "1", "2"], values: data.stored[role] });
        own.show({ rows: ["0", "1", "2"], columns: ["0", "1"], values: data.matrices[role] });
      }
      const isSolved = data.error < TOLERANCE;
      const conclusion = isSolved ? "Solved: both outputs are the same" : "The two outputs differ";
      verdict.replaceChildren(
        make("b", {}, conclusion),
        `, by ${data.error.toExponential(2).replace("-", "−")} at most`,
      );
    } catch (error) {
      verdict.textContent = /** @type {Error} */ (error).message;
    }
  }

  return {
    elements: [
      paragraph(
        "Parameters and linear layers differ only in their numbers and in how these are stored. Set the three ",
        "matrices of ",
        code("SelfAttentionV1"),
        " from the layers of ",
        code("SelfAttentionV2"),
        " so that both give the same context vectors.",
      ),
      rowOf(...columns.map(({ element }) => element)),
      verdict,
    ],
    load,
  };
}

/**
 * The arithmetic of a weight, from the dot product to the softmax.
 * @param {string[]} words
 * @param {Data["many-heads"]["random"][number]} head
 * @param {[r: number, c: number]} cell
 * @param {string} name of the head
 */
export function weightOfHead(words, { weights, weight_terms: terms, score_terms: scores }, [r, c], name) {
  const [left, right, products] = [scores.left[r], scores.right[c], scores.products[r][c]];
  const total = products.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0);
  const title = [`Score in ${name}: `, ...looks(words[r], words[c])];
  const share = [`It is divided by √${left.length} and goes into the softmax:`];
  return [
    ...dotProduct({ title, left, right, products, total }),
    ...softmaxCell({ terms, r, c, total: weights[r][c], title: share }),
  ];
}
