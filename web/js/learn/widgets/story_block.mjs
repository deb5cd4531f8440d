// Rung 9: layer 5 of stories-bpe at the end of the story, where “my” finds “kite”. The numbers are recorded.

import { make } from "../../lib/dom.mjs";
import { fixed, number, significant } from "../../lib/numbers.mjs";
import { dotProduct, named, result, rowOf as cellsOf } from "../../widgets/arithmetic.mjs";
import { bars } from "./chart.mjs";
import { paragraph, rowOf } from "./elements.mjs";
import { STORY_BLOCK as BLOCK } from "./story_numbers.mjs";

/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */
/** @import { HeatTable } from "../../widgets/heat_table.mjs" */
/** @import { Part } from "./diagram.mjs" */
/** @import { Stop } from "./steps.mjs" */

/** @typedef {"x" | "attended" | "resid_mid" | "mlp_output" | "after"} Stage */

const { layer, tokens } = BLOCK;
const SOME = `3 of ${BLOCK.width} numbers`;
const LAST = tokens.length - 1; // “my”

/**
 * Layer norm of a number whose stream is multiplied first.
 * @param {number} x
 * @param {typeof BLOCK.norm} norm
 * @param {number} r the token
 * @param {number} c the number
 */
export function normOf(x, norm, r, c, scale = 1) {
  const deviation = Math.sqrt(norm.variance[r] * scale ** 2 + BLOCK.eps);
  return ((scale * (x - norm.mean[r])) / deviation) * norm.weight[c] + norm.bias[c];
}

/** The tables of the layer, whose numbers are explained in the rung's own place. */
export class StoryBlock {
  scale = 1;

  /** @param {Arithmetic} arithmetic */
  constructor(arithmetic) {
    this.arithmetic = arithmetic;
    this.x = this.#table(`Stream before layer ${layer}`, SOME, (r, c) => [
      paragraph("Number ", String(c), " of ", named(tokens[r]), `: all that layers 0 to ${layer - 1} have added.`),
    ]);
    this.normed = this.#normTable("A copy to read", BLOCK.norm, () => this.x, "x", true);
    this.attended = this.#table(`Attention ${layer} adds`, "the stream", (r, c) =>
      dotProduct({
        title: ["What each head adds to number ", String(c), " of ", named(tokens[r])],
        names: [...BLOCK.by_head[r][c].map((_, head) => `${layer}·${head}`), "bias"],
        products: [...BLOCK.by_head[r][c], BLOCK.attended_bias[c]],
        total: BLOCK.attended[r][c],
      }),
    );
    this.middle = this.#sumTable(`Stream after attention ${layer}`, "x", "attended", () => [this.x, this.attended]);
    this.read = this.#normTable("A copy to read", BLOCK.second_norm, () => this.middle, "resid_mid", false);
    this.hidden = this.#hiddenTable();
    this.added = this.#table(`MLP ${layer} adds`, "the stream", (r, c) => [
      paragraph(
        `A sum of ${number(BLOCK.inner)} products, one for each hidden number of `,
        named(tokens[r]),
        `, and a bias ${fixed(BLOCK.mlp_bias[c])} `,
        result(fixed(BLOCK.mlp_output[r][c])),
      ),
    ]);
    this.after = this.#sumTable(`Stream after MLP ${layer}`, "resid_mid", "mlp_output", () => [
      this.middle,
      this.added,
    ]);
    this.says = rowOf(
      ...BLOCK.says.map(({ layer: at, words }) =>
        bars(`MLP ${at} adds to the logit of`, words, 3, { format: (value) => fixed(value, 2) }),
      ),
    );
    this.show(1);
  }

  /** @param {string} name @param {string} axes @param {import("../../widgets/arithmetic.mjs").Explain} explain */
  #table(name, axes, explain, operands = /** @type {import("../../widgets/arithmetic.mjs").Operands | null} */ (null)) {
    return this.arithmetic.table({ name, axes, digits: 2, explain, ...(operands ? { operands } : {}) });
  }

  /**
   * @param {string} name
   * @param {typeof BLOCK.norm} norm
   * @param {() => HeatTable} table what it reads
   * @param {Stage} stage
   * @param {boolean} isScaled whether the slider multiplies what it reads
   */
  #normTable(name, norm, table, stage, isScaled) {
    return this.#table(
      name,
      "layer norm",
      (r, c) => {
        const scale = isScaled ? this.scale : 1;
        const [x, mean] = [BLOCK[stage][r][c], norm.mean[r]].map((value) => significant(scale * value));
        const value = normOf(BLOCK[stage][r][c], norm, r, c, scale);
        return [
          paragraph(
            "Layer norm of ",
            named(tokens[r]),
            `, number ${c}: (number − mean) / √(variance + ε) · weight + bias`,
          ),
          paragraph(
            `(${x} − ${mean}) / √(${significant(scale ** 2 * norm.variance[r])} + ${BLOCK.eps}) · ` +
              `${significant(norm.weight[c])} + ${significant(norm.bias[c])} `,
            result(fixed(value)),
          ),
          paragraph(`Mean and variance are those of all ${BLOCK.width} numbers of the token.`),
        ];
      },
      (r) => [cellsOf(table(), r)],
    );
  }

  /** @param {string} name @param {Stage} before @param {Stage} added @param {() => [HeatTable, HeatTable]} tables */
  #sumTable(name, before, added, tables) {
    return this.#table(
      name,
      "the stream",
      (r, c) => {
        const products = [BLOCK[before][r][c], BLOCK[added][r][c]];
        const title = ["Number ", String(c), " of ", named(tokens[r]), ": the stream, and what is added to it"];
        const total = products[0] + products[1];
        return dotProduct({ title, names: ["stream", "added"], products, total });
      },
      (r, c) => tables().map((table) => [[table, r, c]]),
    );
  }

  #hiddenTable() {
    return this.#table("Hidden numbers of “my”", `${BLOCK.hidden.length} of ${number(BLOCK.inner)}`, (i, c) =>
      c
        ? [
            paragraph(`GELU of ${fixed(BLOCK.hidden[i][0])}`, " ", result(fixed(BLOCK.hidden[i][1]))),
            paragraph("Of all its hidden numbers, ", `${Math.round(100 * BLOCK.negative)}% are negative before GELU.`),
          ]
        : [paragraph(`A sum of ${BLOCK.width} products of the copy, and a bias `, result(fixed(BLOCK.hidden[i][0])))],
    );
  }

  /** Multiply what the first layer norm reads. @param {number} scale */
  show(scale) {
    this.scale = scale;
    const columns = ["0", "1", "2"];
    const norm = (/** @type {Stage} */ stage, /** @type {typeof BLOCK.norm} */ of, times = 1) =>
      BLOCK[stage].map((row, r) => row.map((x, c) => normOf(x, of, r, c, times)));
    /** @type {[HeatTable, number[][]][]} */
    const tables = [
      [this.x, BLOCK.x.map((row) => row.map((x) => scale * x))],
      [this.normed, norm("x", BLOCK.norm, scale)],
      [this.attended, BLOCK.attended],
      [this.middle, BLOCK.resid_mid],
      [this.read, norm("resid_mid", BLOCK.second_norm)],
      [this.added, BLOCK.mlp_output],
      [this.after, BLOCK.after],
    ];
    this.x.rename(`Stream before layer ${layer}${scale === 1 ? "" : `, × ${number(scale)}`}`);
    for (const [table, values] of tables) table.show({ rows: tokens, columns, values });
    const rows = BLOCK.hidden.map((_, i) => String(i));
    this.hidden.show({ rows, columns: ["before", "after GELU"], values: BLOCK.hidden });
  }

  /** @returns {[Part, HeatTable[]][]} */
  get places() {
    return [
      ["norm", [this.normed, this.x]],
      ["attention", [this.attended]],
      ["add", [this.middle]],
      ["norm_again", [this.read]],
      ["mlp", [this.added, this.hidden]],
      ["add_again", [this.after]],
    ];
  }

  get parts() {
    return {
      storyX: this.x.element,
      storyNormed: this.normed.element,
      storyAttended: this.attended.element,
      storyMiddle: this.middle.element,
      storyRead: this.read.element,
      storyHidden: this.hidden.element,
      storyAdded: this.added.element,
      storyAfter: this.after.element,
      says: make("div", {}, this.says),
    };
  }

  /** @returns {Stop[]} */
  play() {
    const at = (/** @type {Stage} */ stage) => fixed(BLOCK[stage][LAST][0], 2);
    return [
      {
        at: [this.normed, LAST, 0],
        words: "Attention reads a copy of “my”: minus the mean, divided by the standard deviation.",
      },
      { at: [this.middle, LAST, 0], words: `What all heads find is added to “my”: ${at("x")} + ${at("attended")}.` },
      {
        at: [this.after, LAST, 0],
        words: `What the MLP makes is added, too: ${at("resid_mid")} + ${at("mlp_output")}.`,
      },
    ];
  }
}
