// Rung 9: the same steps for a head of the model that is served, and the way to it in Look.

import { make } from "../../lib/dom.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { LatestRequest } from "../../lib/server/latest.mjs";
import { makeLink } from "../../lib/link.mjs";
import { exact, fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { ask } from "../server.mjs";
import { StillStore } from "../still_store.mjs";
import { dotProduct, looks } from "../../widgets/arithmetic.mjs";
import { slider } from "../widgets/controls.mjs";
import { code, controls, heading, paragraph, rowOf } from "../widgets/elements.mjs";
import { formula, fraction, root, row, sub, sup } from "../../widgets/formula.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";
import { Stamp } from "../../widgets/stamp.mjs";

/** @import { Rung } from "../rung.js" */

const BOOK_WORDS = ["Your", "journey", "starts", "with", "one", "step"];

/** @type {Rung} */
export const loadedHead = {
  name: "The real thing",
  options: (_, model) => ({ model }),
  question: {
    ask: "In a trained model, what do most heads of the same layer look at?",
    options: ["All of them at the same tokens", "Each at something of its own"],
    right: 1,
    why:
      "Nothing forces them to differ, but a head that repeats another adds nothing. Move the two sliders and " +
      "compare.",
  },
  build(lesson) {
    const store = new StillStore((cell) => explain(cell));
    const matrix = new Matrix(store);
    const request = new LatestRequest();
    const explanation = make("div", { class: "hl-unfold", "aria-live": "polite" });
    const stamp = new Stamp(
      "the ladder's causal_by_minus_infinity on the model's queries and keys, against the weights the model used",
      true,
    );
    const packed = new Stamp("rung 8's weight splits, and the same weights packed into MultiHeadAttention");
    const published = new HeatTable({
      name: "The book's case, through MultiHeadAttention",
      axes: "words × 2 numbers",
    });
    const facts = make("p", { class: "hl-count" });
    const link = make("a", { class: "hl-link" }, "Open this head in Look →");
    const layer = slider({
      label: "layer",
      value: 0,
      change: (value) => lesson.set({ layer: value, head: lesson.options.head ?? 0 }),
    });
    const head = slider({
      label: "head",
      value: 0,
      change: (value) => lesson.set({ head: value, layer: lesson.options.layer ?? 0 }),
    });
    /** @type {any} */
    let data = null;

    /** Link to the head and the cell, in the theme that the address asks for. */
    function updateLink() {
      const address = new URL(makeLink(store.linkState, [], location.href));
      const theme = new URLSearchParams(location.search).get("__theme");
      if (theme) address.searchParams.set("__theme", theme);
      link.href = address.href;
    }

    /** @param {{ query: number, key: number }} cell */
    async function explain({ query, key }) {
      updateLink();
      const { sentence } = lesson;
      const body = { sentence, model: data.model, layer: data.layer, head: data.head, query, key };
      try {
        const cell = await request.send((signal) => ask("cell", body, signal));
        if (!cell) return;
        const [from, to] = [query, key].map((position) => visible(store.tokens[position].text));
        const { score, scale, scaled, weight, model_weight: used, query: left, key: right, products } = cell;
        const softmax = `× ${number(scale)} = ${number(scaled)}; softmax over the ${query + 1} keys so far gives `;
        // The result comes first: below a long sum it would be out of sight.
        explanation.replaceChildren(
          paragraph(`Score in L${data.layer} H${data.head}: `, ...looks(from, to), ` = ${fixed(score)}`),
          paragraph(softmax, make("b", {}, exact(weight)), `, and the model used ${exact(used)}.`),
          ...dotProduct({
            title: [`The score is a sum of ${left.length} products:`],
            left,
            right,
            products,
            total: score,
          }),
        );
      } catch (error) {
        explanation.textContent = /** @type {Error} */ (error).message;
      }
    }

    return {
      text: [
        paragraph(
          "Nothing is new here. The GPT on this page runs ",
          code("MultiHeadAttention"),
          ": weight splits, whose three projections are stacked in one matrix. First the book's case goes through ",
          "that same class. Then a trained head reads your sentence, and each of its weights is recomputed with the ",
          "steps of this ladder.",
        ),
      ],
      formula: formula(
        [
          row("[", "Q", ";", "K", ";", "V", "]"),
          "=",
          "LayerNorm",
          "(",
          sub("x", "layer"),
          ")",
          sub("W", "attn"),
          "+",
          sub("b", "attn"),
        ],
        ["Z", "=", "softmax", "(", fraction(row("Q", sup("K", "T")), root("head_dim")), "+", "mask", ")", "V"],
      ),
      picture: [
        heading("The book's case"),
        rowOf(published.element),
        packed.element,
        heading("A head of this page's model, on your sentence"),
        facts,
        controls(layer.element, head.element),
        make("div", { class: "hl-real" }, matrix.element, explanation),
        stamp.element,
        make("p", {}, link),
      ],
      update(found) {
        data = found;
        published.show({ rows: BOOK_WORDS, columns: ["0", "1"], values: data.published });
        packed.show(data.published_error);
        facts.textContent =
          `${data.model}: ${data.n_layer} layers × ${data.n_head} heads of ${data.head_dim} numbers. ` +
          "Another model can be chosen at the top of the page.";
        Object.assign(lesson.options, { layer: data.layer, head: data.head });
        layer.update(data.layer, data.n_layer - 1);
        head.update(data.head, data.n_head - 1);
        store.show(data);
        stamp.show(data.error, 1e-4);
      },
      // Another model has other heads.
      changeModel: (model) => lesson.set({ model, layer: null, head: null }),
    };
  },
};
