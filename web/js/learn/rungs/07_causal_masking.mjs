// Rung 7: a mask that the visitor may change, another way to mask, and dropout.

import { make } from "../../lib/dom.mjs";
import { counted, fixed, number, significant } from "../../lib/numbers.mjs";
import { formula, fraction, root, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/07_causal_masking.mjs";
import { TableDrawing } from "../widgets/drawing.mjs";
import { bars } from "../widgets/chart.mjs";
import { choice, slider, paragraph } from "../widgets/elements.mjs";
import { looksMost } from "../widgets/steps.mjs";
import { vectorsBar, wordsTable } from "../widgets/vectors_bar.mjs";
import { contextOf, lectureHead, makeTables } from "./07_mask_tables.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Lesson, Rung } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data, Named } from "../data.js" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */
/** @typedef {Named<"causal-masking", (number | null)[][]>} Matrix */

const FACTORS = [1, 3, 10, 30, 100];
const MATRICES = { parameters: "those of rung 6, seed 123", linear: "linear layers, seed 789" };

/** @type {Rung<"causal-masking">} */
export const causalMasking = {
  ...content,
  key: "causal-masking",
  options: () => ({ kind: "parameters", factor: 1, dropout: 0.5, seed: 1, dropped: "weights", flipped: [] }),
  ofSentence: ["flipped"],
  own({ words, all_weights: all }) {
    if (words.length < 2) return null;
    const [a, b] = all[1];
    return {
      kind: "number",
      ask:
        `Before the mask, “${words[1]}” gives ${significant(a)} to “${words[0]}” and ${significant(b)} to itself. ` +
        `What weight does “${words[0]}” get once the future is masked? A fraction will do.`,
      right: a / (a + b),
      tolerance: 0.002,
      mistakes: [
        { number: b / (a + b), reply: `That is what “${words[1]}” gives itself.` },
        { number: a, reply: "That is its weight before the mask: now it shares what the hidden words had." },
        { number: a / b, reply: "Divide by the sum of the two weights, not by the other one." },
        { number: a + b, reply: "That is the sum of both: divide by it." },
      ],
      hint: "The two weights that are left must add up to 1: divide by their sum.",
      second: `Their sum is ${significant(a + b)}.`,
      why: `${significant(a)} / (${significant(a)} + ${significant(b)}).`,
    };
  },
  build: (lesson) => new CausalMasking(lesson),
};

/** @extends {TableDrawing<"causal-masking">} */
class CausalMasking extends TableDrawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.stamp = new Stamp("minus infinity before softmax, mask after softmax and renormalise");
    this.vectors = vectorsBar(lesson);
    this.x = wordsTable(this, "words × 3");
    this.tables = makeTables(this.arithmetic, () => this.data);
    this.tables.masked.table.addEventListener("click", (event) => {
      const place = this.tables.masked.cellOf(event.target);
      if (place && place[0] !== place[1]) this.#flip(place);
    });
    this.origin = paragraph();
    this.matrices = choice({
      label: "W query and W key",
      options: MATRICES,
      value: lesson.options.kind,
      change: (key) => lesson.set({ kind: key }),
    });
    this.factor = slider({
      label: "W query ×",
      values: FACTORS,
      value: lesson.options.factor,
      change: (value) => lesson.set({ factor: value }),
    });
    this.peeking = make("div");
    this.hint = paragraph();
    this.changed = make("span", { role: "status" });
    this.back = smallButton("Reset the mask");
    this.back.addEventListener("click", () => lesson.set({ flipped: [] }));
    this.batch = [0, 1].map((text) => contextOf(this.arithmetic, `Context vectors, text ${text}`, () => this.data));
    this.same = new Stamp("the two texts of the batch");
    this.lecture = lectureHead(this.arithmetic, () => this.data);
    this.lectureShapes = make("p", { class: "hl-count" });
    this.from = choice({
      label: "dropped from",
      options: { weights: "the attention weights", ones: "a matrix of ones" },
      value: lesson.options.dropped,
      change: (key) => lesson.set({ dropped: key }),
    });
    this.dropout = this.#makeDropout();
    this.again = smallButton("Draw again", () => this.#drawAgain());
    this.sums = make("p", { class: "hl-count", role: "status" });
    this.formula = this.#makeFormula();
    this.parts = this.#makeParts();
  }

  #makeDropout() {
    return slider({
      label: "dropout p",
      max: 0.9,
      step: 0.1,
      value: this.lesson.options.dropout,
      format: (value) => value.toFixed(1),
      change: (value) => this.lesson.set({ dropout: value }),
    });
  }

  #drawAgain() {
    return this.lesson.set({ seed: this.lesson.options.seed + 1 });
  }

  /** Show a key to a query, or hide it. @param {[query: number, key: number]} place */
  #flip(place) {
    const { flipped } = this.lesson.options;
    const rest = flipped.filter((/** @type {number[]} */ other) => String(other) !== String(place));
    this.lesson.set({ flipped: rest.length < flipped.length ? rest : [...flipped, place] });
  }

  #showMask() {
    const { words, mask } = this.data;
    const flips = mask.flatMap((keys, r) => keys.filter((shown, c) => Boolean(shown) !== c <= r));
    this.hint.hidden = words.length < 2;
    const onlyLast = " Or change the last word’s numbers: with the mask, only its row changes.";
    const always = "Click a masked score to hide or show a word, and compare that row’s weights.";
    this.hint.textContent = flips.length ? always : always + onlyLast;
    const ahead = words.findIndex((_, r) => mask[r][r + 1]);
    const copies =
      ahead < 0
        ? ""
        : ` “${words[ahead]}” sees “${words[ahead + 1]}”, which it has to predict: in training it would learn to ` +
          "copy it.";
    this.changed.textContent = flips.length
      ? `You have changed ${counted(flips.length, "cell")} of the mask.${copies}`
      : "";
    this.back.hidden = !flips.length;
  }

  #makeFormula() {
    return formula(
      [
        sub("w", row("i", "j")),
        "=",
        sub("softmax", "j"),
        "(",
        fraction(sub("s", row("i", "j")), root("head_dim")),
        ")",
      ],
      [sub("s", row("i", "j")), "=", "−∞", " where ", row("j", ">", "i")],
    );
  }

  #makeParts() {
    return {
      vectors: this.vectors.element,
      origin: this.origin,
      x: this.x.element,
      scores: this.tables.scores.element,
      mask: this.tables.mask.element,
      masked: this.tables.masked.element,
      peeking: this.peeking,
      hint: this.hint,
      changed: this.changed,
      back: this.back,
      all_weights: this.tables.all_weights.element,
      weights: this.tables.weights.element,
      matrices: this.matrices.element,
      factor: this.factor.element,
      cut: this.tables.cut.element,
      renormalised: this.tables.renormalised.element,
      stamp: this.stamp.element,
      added: this.tables.added.element,
      dropoutFormula: formula([
        "dropout",
        "(",
        "w",
        ")",
        "=",
        fraction("w", row("1", "−", "p")),
        " with probability ",
        row("1", "−", "p"),
        ", else ",
        "0",
      ]),
      dropout: this.dropout.element,
      from: this.from.element,
      again: this.again,
      dropped: this.tables.dropped.element,
      drawn: this.tables.drawn.element,
      sums: this.sums,
      batch: this.batch.map((table) => table.element),
      same: this.same.element,
      lectureShapes: this.lectureShapes,
      lecture: this.lecture.element,
    };
  }

  /** @param {Data["causal-masking"]} found */
  update(found) {
    this.data = found;
    const { words } = found;
    this.vectors.update(found);
    this.origin.textContent = originOf(found);
    this.x.show({ rows: words, columns: ["0", "1", "2"], values: found.x });
    this.batch.forEach((table, text) => table.show({ rows: words, columns: ["0", "1"], values: found.batch[text] }));
    this.same.show(found.batch_error);
    const places = Array.from({ length: 8 }, (_, i) => `t${i}`);
    this.lecture.show({ rows: places, columns: places, values: found.lecture.weights });
    const [into, out] = [found.lecture.x, found.lecture.out].map((shape) => `(${shape.join(", ")})`);
    this.lectureShapes.textContent =
      `In: ${into}, 4 texts of 8 tokens with 32 numbers. Out: ${out}, 16 numbers ` + `for each token. Shown: text 0.`;
    for (const [name, table] of /** @type {[Matrix, HeatTable][]} */ (Object.entries(this.tables))) {
      table.show({ rows: words, columns: words, values: found[name] });
    }
    this.dropout.update(found.dropout);
    const rowSums = Array.from(found.row_sums, (/** @type {number} */ sum) => fixed(sum, 2)).join(", ");
    this.from.show(found.dropped_from);
    this.sums.textContent = `Kept weights × ${number(found.keep_scale, 2)}. The rows now add up to ${rowSums}.`;
    this.stamp.show(found.error);
    this.peeking.replaceChildren(lossOfPeeking(found.peeking));
    this.#showMask();
    this.arithmetic.update(this.tables.weights, [1, 0]);
  }

  /** @returns {Stop[]} */
  play() {
    const { words, weights } = this.data;
    const [q, k] = looksMost(weights);
    const [query, key] = [words[q], words[k]];
    return [
      { at: [this.x, k, 0], words: `“${key}” comes with the number ${fixed(this.data.x[k][0], 2)}.` },
      { at: [this.tables.scores, q, k], words: `How well “${key}” matches what “${query}” looks for.` },
      {
        at: [this.tables.masked, q, k],
        words: `“${query}” may look at “${key}”, so the score stays. The hidden are −∞.`,
      },
      {
        at: [this.tables.weights, q, k],
        words:
          "Divided by √head_dim, then softmax over the row: exp of −∞ is 0, and " +
          `“${key}” gets ${fixed(weights[q][k], 2)}.`,
      },
    ];
  }
}

const N_CHARACTERS = 65; // of tiny Shakespeare

/** @param {Data["causal-masking"]["peeking"]} blocks */
function lossOfPeeking(blocks) {
  const losses = blocks.flatMap(({ has_mask: isMasked, in_training: training, writing }) => {
    const kind = isMasked ? "masked" : "unmasked";
    return [
      { label: `${kind}, in training`, value: training },
      { label: `${kind}, writing`, value: writing },
    ];
  });
  const guess = { label: `guessing, ln ${N_CHARACTERS}`, value: Math.log(N_CHARACTERS) };
  const most = Math.max(...losses.map(({ value }) => value));
  return bars("Loss of a small block, in nats per character", [...losses, guess], most, {
    format: (value) => fixed(value, 2),
  });
}

/** Where the scores are from. @param {Data["causal-masking"]} data */
function originOf({ kind, factor }) {
  const made =
    kind === "parameters"
      ? "The scores of rung 6, from the same random matrices (seed 123)"
      : "Scores from random linear layers (seed 789)";
  return `${made}${factor === 1 ? "" : `, with W query × ${factor}`}.`;
}
