// Rung 6: queries, keys and values of their own, and why the scores are divided.

import { formula, fraction, root, row, sub, sup } from "./formula.mjs";
import { Heat } from "./heat.mjs";
import { number } from "./numbers.mjs";
import { Stamp, choice, code, controls, heading, paragraph, rowOf } from "./parts.mjs";
import { scalePart } from "./scale_part.mjs";
import { AXES, Unfolding, dotCell, looks, named, share } from "./unfold.mjs";

const ROLES = ["query", "key", "value"];

export const trainable = {
  name: "Trainable weights",
  options: { linear: false },
  question: {
    ask: "Queries and keys of 64 random numbers each (variance 1): about how large is the variance of their dot products?",
    options: ["1", "8", "64"],
    right: 2,
    why: "It is a sum of 64 products, each of variance 1. Dividing by √64 = 8 divides the variance by 64 and brings it back to 1. Try it with the slider.",
  },
  build(lesson) {
    const kind = choice({
      label: "matrices",
      options: { parameters: "parameters, seed 123", linear: "linear layers, seed 789" },
      value: lesson.options.linear ? "linear" : "parameters",
      change: (taken) => lesson.set({ linear: taken === "linear" }),
    });
    const stamp = new Stamp("parameters and linear layers, once the weights of the layers are handed over");
    const unfolding = new Unfolding();
    let data;
    const pair = (r, c) => looks(data.words[r], data.words[c]);
    const matrices = Object.fromEntries(ROLES.map((role) => [role, new Heat({ name: `W ${role}`, axes: "3 × 2" })]));
    const projected = Object.fromEntries(
      ROLES.map((role) => [
        role,
        unfolding.heat({
          name: { query: "Queries", key: "Keys", value: "Values" }[role],
          axes: `x · W ${role}`,
          explain: (r, c) => dotCell({ terms: data.projections[role], r, c, total: data[role][r][c], title: [`The ${role} of `, named(data.words[r]), `, number ${c}: its vector × column ${c} of W ${role}`] }),
        }),
      ]),
    );
    const scores = unfolding.heat({
      name: "Attention scores",
      axes: AXES,
      explain: (r, c) => dotCell({ terms: data.score_terms, r, c, total: data.scores[r][c], title: ["Score: ", ...pair(r, c)] }),
    });
    const weights = unfolding.heat({
      name: "Attention weights",
      axes: "softmax of score / √head_dim",
      explain: (r, c) => [
        paragraph(`The score ${number(data.scores[r][c])} × ${number(data.scale)} (which is 1 / √head_dim) goes into the softmax.`),
        ...share({ terms: data.weight_terms, r, c, total: data.weights[r][c], title: ["Weight: ", ...pair(r, c)] }),
      ],
    });
    const context = unfolding.heat({
      name: "Context vectors",
      axes: "weights · values",
      explain: (r, c) => dotCell({ terms: data.context_terms, r, c, total: data.context[r][c], title: ["Context of ", named(data.words[r]), `, number ${c}: each attention weight × that number of the value`] }),
    });
    const scale = scalePart(lesson);
    return {
      text: [
        paragraph("So far the words decide everything by what they are. Three matrices that training can change give each word three roles: what it looks for (query), what it offers to be found by (key), and what it hands over when it is found (value). Here they turn three numbers into two, so ", code("head_dim"), " is 2."),
      ],
      formula: formula(
        ["Q", "=", "x", sub("W", "query"), ", ", "K", "=", "x", sub("W", "key"), ", ", "V", "=", "x", sub("W", "value")],
        ["Z", "=", "softmax", "(", fraction(row("Q", sup("K", "T")), root("head_dim")), ")", "V"],
      ),
      picture: [
        controls(kind.element),
        rowOf(...ROLES.map((role) => matrices[role].element)),
        rowOf(...ROLES.map((role) => projected[role].element)),
        rowOf(scores.element, weights.element, context.element),
        stamp.element,
        unfolding.element,
        ...scale.elements,
      ],
      update(found) {
        data = found;
        kind.show(data.linear ? "linear" : "parameters");
        const rows = data.words;
        const columns = ["0", "1"];
        for (const role of ROLES) {
          matrices[role].show({ rows: ["0", "1", "2"], columns, values: data.matrices[role] });
          projected[role].show({ rows, columns, values: data[role] });
        }
        scores.show({ rows, columns: rows, values: data.scores });
        weights.show({ rows, columns: rows, values: data.weights });
        context.show({ rows, columns, values: data.context });
        stamp.show(data.error);
        unfolding.renew(scores, [1, 1]);
        scale.start();
      },
    };
  },
};
