// Rung 6: queries, keys and values of their own, and why the scores are divided.

import { number } from "../../lib/numbers.mjs";
import { Arithmetic, AXES, dotCell, looks, named, softmaxCell } from "../../widgets/arithmetic.mjs";
import { choice } from "../widgets/controls.mjs";
import { code, controls, heading, paragraph, rowOf } from "../widgets/elements.mjs";
import { formula, fraction, root, row, sub, sup } from "../../widgets/formula.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { scoreScaling } from "./score_scaling.mjs";

/** @import { Rung } from "../rung.js" */

const ROLES = { query: "Queries", key: "Keys", value: "Values" };

/** @type {Rung} */
export const trainableWeights = {
  name: "Trainable weights",
  options: () => ({ linear: false }),
  question: {
    ask:
      "Queries and keys of 64 random numbers each (variance 1): about how large is the variance of their dot " +
      "products?",
    options: ["1", "8", "64"],
    right: 2,
    why:
      "It is a sum of 64 products, each of variance 1. Dividing by √64 = 8 divides the variance by 64 and brings it " +
      "back to 1. Try it with the slider.",
  },
  build(lesson) {
    const kind = choice({
      label: "matrices",
      options: { parameters: "parameters, seed 123", linear: "linear layers, seed 789" },
      value: lesson.options.linear ? "linear" : "parameters",
      change: (key) => lesson.set({ linear: key === "linear" }),
    });
    const stamp = new Stamp("parameters and linear layers, once the weights of the layers are transferred");
    const arithmetic = new Arithmetic();
    /** @type {any} */
    let data;
    /** @param {number} r @param {number} c */
    const pair = (r, c) => looks(data.words[r], data.words[c]);
    const roles = Object.entries(ROLES).map(([role, name]) => ({
      role,
      matrix: new HeatTable({ name: `W ${role}`, axes: "3 × 2" }),
      projected: arithmetic.table({
        name,
        axes: `x · W ${role}`,
        explain: (r, c) => {
          const words = `, number ${c}: its vector × column ${c} of W ${role}`;
          const title = [`The ${role} of `, named(data.words[r]), words];
          return dotCell({ terms: data.projections[role], r, c, total: data[role][r][c], title });
        },
      }),
    }));
    const scores = arithmetic.table({
      name: "Attention scores",
      axes: AXES,
      explain: (r, c) =>
        dotCell({ terms: data.score_terms, r, c, total: data.scores[r][c], title: ["Score: ", ...pair(r, c)] }),
    });
    const weights = arithmetic.table({
      name: "Attention weights",
      axes: "softmax of score / √head_dim",
      explain: (r, c) => {
        const product = `The score ${number(data.scores[r][c])} × ${number(data.scale)} (which is 1 / √head_dim)`;
        const title = ["Weight: ", ...pair(r, c)];
        const share = softmaxCell({ terms: data.weight_terms, r, c, total: data.weights[r][c], title });
        return [paragraph(`${product} goes into the softmax.`), ...share];
      },
    });
    const context = arithmetic.table({
      name: "Context vectors",
      axes: "weights · values",
      explain: (r, c) => {
        const words = `, number ${c}: each attention weight × that number of the value`;
        const title = ["Context of ", named(data.words[r]), words];
        return dotCell({ terms: data.context_terms, r, c, total: data.context[r][c], title });
      },
    });
    const scaling = scoreScaling();
    return {
      text: [
        paragraph(
          "So far the words alone decide everything. Three matrices that training can change give each word three ",
          "roles: what it looks for (query), what it can be found by (key), and what it contributes when it is found ",
          "(value). Here they turn three numbers into two, so ",
          code("head_dim"),
          " is 2.",
        ),
      ],
      formula: formula(
        [
          "Q",
          "=",
          "x",
          sub("W", "query"),
          ", ",
          "K",
          "=",
          "x",
          sub("W", "key"),
          ", ",
          "V",
          "=",
          "x",
          sub("W", "value"),
        ],
        ["Z", "=", "softmax", "(", fraction(row("Q", sup("K", "T")), root("head_dim")), ")", "V"],
      ),
      picture: [
        controls(kind.element),
        rowOf(...roles.map(({ matrix }) => matrix.element)),
        rowOf(...roles.map(({ projected }) => projected.element)),
        rowOf(scores.element, weights.element, context.element),
        stamp.element,
        arithmetic.element,
        heading("Why divide by √head_dim?"),
        ...scaling.elements,
      ],
      update(found) {
        data = found;
        kind.show(data.linear ? "linear" : "parameters");
        const rows = data.words;
        const columns = ["0", "1"];
        for (const { role, matrix, projected } of roles) {
          matrix.show({ rows: ["0", "1", "2"], columns, values: data.matrices[role] });
          projected.show({ rows, columns, values: data[role] });
        }
        scores.show({ rows, columns: rows, values: data.scores });
        weights.show({ rows, columns: rows, values: data.weights });
        context.show({ rows, columns, values: data.context });
        stamp.show(data.error);
        arithmetic.update(scores, [1, 1]);
        scaling.start();
      },
    };
  },
};
