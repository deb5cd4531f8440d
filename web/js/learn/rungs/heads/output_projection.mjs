// A part of rung 8: weight splits of any size, before and after the output projection.

import { columnOf, dotCell, named, rowOf as cellsOf, softmaxCell } from "../../../widgets/arithmetic.mjs";
import { choice } from "../../widgets/controls.mjs";
import { code, controls, heading, paragraph, remarks, rowOf } from "../../widgets/elements.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";

/** @import { Lesson } from "../../rung.js" */

/** @import { Arithmetic } from "../../../widgets/arithmetic.mjs" */

const HEADS = [0, 1];

/** @param {Arithmetic} arithmetic @param {Lesson} lesson */
export function outputProjection(arithmetic, lesson) {
  /** @type {any} */
  let data;
  const torch = new Stamp("these weight splits, and torch.nn.MultiheadAttention with the same weights and mask");
  const size = choice({
    label: "d_out, for both heads together",
    options: { 2: "2, the book's", 4: "4", 16: "16" },
    value: String(lesson.options.d_out),
    change: (key) => lesson.set({ d_out: Number(key) }),
  });
  /** The head of a number of both heads' context vectors, and its place there. @param {number} c */
  const placeIn = (c) => [Math.floor(c / (data.d_out / 2)), c % (data.d_out / 2)];
  const splitWeights = HEADS.map((head) =>
    arithmetic.table({
      name: `Weights of head ${head}, seed 123`,
      axes: "after mask and softmax",
      sums: true,
      explain: (r, c) => {
        const title = [named(data.words[r]), " (query) looks at ", named(data.words[c]), ` (key) in head ${head}`];
        const total = data.splits_weights[head][r][c];
        return softmaxCell({ terms: data.splits_weight_terms[head], r, c, total, title });
      },
    }),
  );
  const context = arithmetic.table({
    name: "Before the output projection",
    axes: "head.number",
    explain: (r, c) => {
      const [head, i] = placeIn(c);
      const title = [
        `Head ${head}, number ${i} of the context of `,
        named(data.words[r]),
        ": attention weight × value",
      ];
      return dotCell({ terms: data.context_terms[head], r, c: i, total: data.context[r][c], title });
    },
    operands: (r, c) => [cellsOf(splitWeights[placeIn(c)[0]], r)],
  });
  const projection = arithmetic.table({
    name: "The output projection",
    axes: "d_out × d_out",
    explain: (r, c) => [
      paragraph(`From number ${r} of the heads to output ${c}: a weight that is learned (seed 123).`),
    ],
  });
  const projected = arithmetic.table({
    name: "After the output projection",
    axes: "the book's own weight splits",
    explain: (r, c) => {
      const words = `: what both heads say × row ${c} of the projection, and its bias`;
      const title = [`Output ${c} of `, named(data.words[r]), words];
      return dotCell({ terms: data.projected_terms, r, c, total: data.projected[r][c], title, bias: data.bias[c] });
    },
    operands: (r, c) => [cellsOf(context, r), columnOf(projection, c)],
  });
  return {
    place: projected.element,
    elements: [
      heading("The output projection"),
      paragraph(
        "The heads above have 2 numbers each, 4 in all. The book's own weight splits have d_out = 2 for both heads ",
        "together, so each head has only 1 number here. The output projection, a square matrix and a bias, " +
          "mixes what ",
        "the two heads found.",
      ),
      controls(size.element),
      rowOf(...splitWeights.map((table) => table.element)),
      rowOf(context.element, projection.element, projected.element),
      torch.element,
      remarks(
        "Worth knowing",
        "An output projection is not strictly needed: the heads side by side have the right shape already. " +
          "Nearly all " +
          "models have one, because it lets the next steps use what several heads found together.",
        [
          "PyTorch has all of this as ",
          code("torch.nn.MultiheadAttention"),
          ", which the stamp above compares with. It takes the mask as an argument and is harder to look into.",
        ],
      ),
    ],
    /** @param {any} found */
    update(found) {
      data = found;
      const rows = data.words;
      size.show(/** @type {any} */ (String(data.d_out)));
      torch.show(data.torch_error);
      splitWeights.forEach((table, h) => table.show({ rows, columns: rows, values: data.splits_weights[h] }));
      const places = Array.from({ length: data.d_out }, (_, i) => String(i));
      context.show({ rows, columns: places.map((_, i) => placeIn(i).join(".")), values: data.context });
      projection.show({ rows: places, columns: places, values: data.projection });
      projected.show({ rows, columns: places, values: data.projected });
    },
  };
}
