// Rung 9: the same picture for a head of the model that is served, and the way to it in Look.

import { make } from "../look/dom.mjs";
import { makeLink } from "../look/link.mjs";
import { Matrix } from "../look/matrix.mjs";
import { HeadWeights } from "../look/triangle.mjs";
import { View } from "../look/view.mjs";
import { exact, visible } from "../look/words.mjs";
import { Newest } from "./ask.mjs";
import { formula, fraction, root, row, sub, sup } from "./formula.mjs";
import { Heat } from "./heat.mjs";
import { fixed, number } from "./numbers.mjs";
import { Stamp, code, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";
import { dotProduct, looks } from "./unfold.mjs";

/** As much of the workspace's store as its matrix needs, for a text that does not grow. */
class Still {
  constructor() {
    this.view = new View();
    this.listeners = {};
    this.tokens = [];
    this.weights = new HeadWeights();
    this.pointer = {};
    this.open = [0, 0];
    this.locked = [];
    this.step = this.hover = null;
  }

  on(topics, callback) {
    for (const topic of topics.split(" ")) (this.listeners[topic] ??= []).push(callback);
  }

  emit(...topics) {
    for (const callback of new Set(topics.flatMap((topic) => this.listeners[topic] ?? []))) callback();
  }

  get count() {
    return this.weights.rows;
  }

  get openName() {
    return `L${this.open[0]} H${this.open[1]}`;
  }

  get queries() {
    return this.locked.map(({ query }) => query);
  }

  get focus() {
    return this.hover ?? this.locked.at(-1) ?? null;
  }

  point(cell) {
    this.hover = cell;
    this.emit("focus");
  }

  lock(cell) {
    this.locked = cell ? [cell] : [];
    this.emit("focus");
    if (cell) this.chosen?.(cell);
  }

  show(data) {
    this.pointer = { model: data.model, sha256: data.sha256, n_prompt: data.ids.length };
    this.tokens = data.tokens.map((text, i) => ({ text, id: data.ids[i], logprob: null }));
    this.weights = new HeadWeights();
    this.weights.append(Float32Array.from(data.weights));
    this.open = [data.layer, data.head];
    this.hover = null;
    const query = this.count - 1;
    this.emit("tokens", "weights", "open", "focus");
    this.lock({ query, key: this.weights.strongest(query, Math.min(1, query)) });
  }
}

export const real = {
  name: "The real thing",
  options: (isBook, model) => ({ model }),
  question: {
    ask: "In a trained model, what do most heads of the same layer look at?",
    options: ["All of them the same tokens", "Each something of its own"],
    right: 1,
    why: "Nothing tells them to differ, but a head that repeats another adds nothing. Move the two sliders and compare.",
  },
  build(lesson) {
    const still = new Still();
    const matrix = new Matrix(still);
    const newest = new Newest();
    const unfold = make("div", { class: "hl-unfold", "aria-live": "polite" });
    const stamp = new Stamp("the ladder's causal_by_minus_infinity on the model's queries and keys, against the weights the model used");
    const packed = new Stamp("rung 8's weight splits, and the same weights packed into MultiHeadAttention");
    const published = new Heat({ name: "The book's case, through MultiHeadAttention", axes: "words × 2 numbers" });
    const facts = make("p", { class: "hl-count" });
    const link = make("a", { class: "hl-link" }, "Open this head in Look →");
    const layer = slider({ label: "layer", max: 1, value: 0, change: (value) => lesson.set({ layer: value, head: lesson.options.head ?? 0 }) });
    const head = slider({ label: "head", max: 1, value: 0, change: (value) => lesson.set({ head: value, layer: lesson.options.layer ?? 0 }) });
    let data = null;

    /** To the head and the cell, in the theme that the address asks for. */
    function aim() {
      const to = new URL(makeLink(still), location.href);
      const theme = new URLSearchParams(location.search).get("__theme");
      if (theme) to.searchParams.set("__theme", theme);
      link.href = to.href;
    }

    still.chosen = async ({ query, key }) => {
      aim();
      try {
        const cell = await newest.ask("cell", { sentence: lesson.sentence, model: data.model, layer: data.layer, head: data.head, query, key });
        if (!cell) return;
        const [from, to] = [still.tokens[query].text, still.tokens[key].text].map(visible);
        const { score, scale, scaled, weight, model_weight: used, query: left, key: right, products } = cell;
        // The result first: a long sum would leave it out of sight.
        unfold.replaceChildren(
          paragraph(`Score in L${data.layer} H${data.head}: `, ...looks(from, to), ` = ${fixed(score)}`),
          paragraph(`× ${number(scale)} = ${number(scaled)}; softmax over the ${query + 1} keys so far gives `, make("b", {}, exact(weight)), `, and the model used ${exact(used)}.`),
          ...dotProduct({ title: [`The score is a sum of ${left.length} products:`], left, right, products, total: score }),
        );
      } catch (error) {
        unfold.textContent = error.message;
      }
    };

    return {
      text: [
        paragraph("Nothing is new here. The GPT on this page runs ", code("MultiHeadAttention"), ": weight splits, whose three projections lie on top of each other in one matrix. First the book's case goes through that very class. Then a trained head reads your sentence, and every weight of it is computed once more with the steps of this ladder."),
      ],
      formula: formula(
        [row("[", "Q", ";", "K", ";", "V", "]"), "=", "LayerNorm", "(", sub("x", "layer"), ")", sub("W", "attn"), "+", sub("b", "attn")],
        ["Z", "=", "softmax", "(", fraction(row("Q", sup("K", "T")), root("head_dim")), "+", "mask", ")", "V"],
      ),
      picture: [
        heading("The book's case"),
        rowOf(published.element),
        packed.element,
        heading("A head of this page's model, on your sentence"),
        facts,
        controls(layer.element, head.element),
        make("div", { class: "hl-real" }, matrix.element, unfold),
        stamp.element,
        make("p", {}, link),
      ],
      update(found) {
        data = found;
        published.show({ rows: ["Your", "journey", "starts", "with", "one", "step"], columns: ["0", "1"], values: data.published });
        packed.show(data.published_error);
        facts.textContent = `${data.model}: ${data.n_layer} layers × ${data.n_head} heads of ${data.head_dim} numbers. Another model can be chosen at the top of the page.`;
        Object.assign(lesson.options, { layer: data.layer, head: data.head });
        layer.update(data.layer, data.n_layer - 1);
        head.update(data.head, data.n_head - 1);
        still.show(data);
        stamp.show(data.error, 1e-4);
      },
      /** Another model is chosen at the top: its heads are others. */
      model: (model) => lesson.set({ model, layer: null, head: null }),
    };
  },
};
