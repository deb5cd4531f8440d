// Rung 8: several heads, one after the other and all at once.

import { make } from "../look/dom.mjs";
import { post } from "./ask.mjs";
import { bars } from "./chart.mjs";
import { formula, row, sub } from "./formula.mjs";
import { fixed, milliseconds, number } from "./numbers.mjs";
import { Stamp, code, controls, heading, paragraph, rowOf, slider } from "./parts.mjs";
import { AXES, Unfolding, dotCell, dotProduct, named } from "./unfold.mjs";

const HEADS = [1, 2, 4, 8, 16, 32];
const TOKENS = [16, 64, 128, 256, 512];

export const manyHeads = {
  name: "Many heads",
  options: {},
  question: {
    ask: "Eight heads of 8 numbers, or one head of 64: which needs more weights for its queries?",
    options: ["Eight heads", "One head", "Neither"],
    right: 2,
    why: "Eight matrices for 8 numbers each, on top of each other, are one matrix for 64. That is why all heads can be computed by one projection that is split afterwards.",
  },
  build(lesson) {
    const stamp = new Stamp("stacked heads and weight splits, after the transfer of the weights");
    const unfolding = new Unfolding();
    let data;
    const half = (r, c) => dotProduct({
      title: [`Head ${Math.floor(c / 2)}, number ${c % 2} of the context of `, named(data.words[r]), ": each attention weight × value"],
      left: data.merged_terms[Math.floor(c / 2)].left[r],
      right: data.merged_terms[Math.floor(c / 2)].right[c % 2],
      products: data.merged_terms[Math.floor(c / 2)].products[r][c % 2],
      total: data.merged[r][c],
    });
    const weights = [0, 1].map((head) => unfolding.heat({ name: `Attention weights, head ${head}`, axes: AXES, explain: (r, c) => [paragraph(named(data.words[r]), " (query) looks at ", named(data.words[c]), ` (key) with ${fixed(data.head_weights[head][r][c])} in head ${head}.`)] }));
    const stacked = unfolding.heat({ name: "Stacked heads", axes: "head 0 | head 1", explain: half });
    const merged = unfolding.heat({ name: "Weight splits", axes: "head 0 | head 1", explain: half });
    const projected = unfolding.heat({
      name: "After the output projection",
      axes: "the book's own weight splits",
      explain: (r, c) => [
        ...dotCell({ terms: data.projected_terms, r, c, total: data.projected[r][c], title: ["Output ", String(c), " of ", named(data.words[r]), `: the context of both heads × row ${c} of the projection, + bias ${number(data.bias[c])}`] }),
      ],
    });
    const context = unfolding.heat({ name: "Before the output projection", axes: "2 heads × 1 number", explain: (r, c) => [paragraph(`Head ${c} says `, make("b", {}, fixed(data.context[r][c])), " about ", named(data.words[r]), ".")] });
    const batched = new Stamp("a product of all heads at once, and head by head");
    const operands = [0, 1].map((head) => unfolding.heat({ name: `Head ${head}`, axes: "3 tokens × 4 numbers", explain: (r, c) => [paragraph(`Number ${c} of token ${r} in head ${head}.`)] }));
    const products = [0, 1].map((head) => unfolding.heat({ name: `Head ${head} × itself, transposed`, axes: "3 × 3 tokens", explain: (r, c) => dotCell({ terms: data.product_terms[head], r, c, total: data.product[head][r][c], title: [`Head ${head}: token ${r} · token ${c}`] }) }));
    const timing = timingPart();
    return {
      text: [
        paragraph("One head makes one picture of who looks at whom. Several heads, each with matrices of its own, make several, and their context vectors stand side by side. Computed one after the other they are ", make("dfn", {}, "stacked heads"), ". Put their matrices on top of each other, and one projection serves all: its result is split into heads, and all scores are one batched product. These are ", make("dfn", {}, "weight splits"), ". An ", make("dfn", {}, "output projection"), " then mixes what the heads found."),
      ],
      formula: formula(
        ["(", "B", ",", "T", ",", "C", ")", "→", "(", "B", ",", "n_head", ",", "T", ",", "head_dim", ")", "→", "(", "B", ",", "T", ",", "C", ")"],
        ["Z", "=", row("[", sub("Z", "0"), ";", "…", ";", sub("Z", "n"), "]"), sub("W", "out"), "+", sub("b", "out")],
      ),
      picture: [
        rowOf(...weights.map((heat) => heat.element)),
        rowOf(stacked.element, merged.element),
        stamp.element,
        rowOf(context.element, projected.element),
        heading("All heads in one product"),
        paragraph("A product of tensors ", code("(B, n_head, T, head_dim)"), " is one matrix product for each head, done together."),
        rowOf(...operands.map((heat) => heat.element)),
        rowOf(...products.map((heat) => heat.element)),
        batched.element,
        unfolding.element,
        ...timing.elements,
      ],
      update(found) {
        data = found;
        const rows = data.words;
        weights.forEach((heat, head) => heat.show({ rows, columns: rows, values: data.head_weights[head] }));
        for (const [heat, name] of [[stacked, "stacked"], [merged, "merged"]]) heat.show({ rows, columns: ["0", "1", "0", "1"], values: data[name] });
        context.show({ rows, columns: ["head 0", "head 1"], values: data.context });
        projected.show({ rows, columns: ["0", "1"], values: data.projected });
        operands.forEach((heat, head) => heat.show({ rows: ["0", "1", "2"], columns: ["0", "1", "2", "3"], values: data.heads[head] }));
        products.forEach((heat, head) => heat.show({ rows: ["0", "1", "2"], columns: ["0", "1", "2"], values: data.product[head] }));
        stamp.show(data.error);
        batched.show(data.product_error);
        unfolding.renew(merged, [1, 0]);
      },
    };
  },
};

/** Measured on the server when the button is pressed. */
function timingPart() {
  const asked = { n_head: 8, n_tokens: 64 };
  const result = make("div", { class: "hl-row" });
  const said = make("p", { class: "hl-count", role: "status" });
  const stamp = new Stamp("the three constructions on the same random tokens");
  stamp.element.hidden = true;
  const measure = make("button", { type: "button", class: "hs-small hl-primary", onclick: () => run() }, "Measure now");

  async function run() {
    measure.disabled = true;
    said.textContent = "Measuring ...";
    try {
      const { constructions, stages, difference, rounds, n_embd, n_head, n_tokens } = await (await post("times", asked)).json();
      const entries = (times) => Object.entries(times).map(([label, value]) => ({ label, value }));
      const longest = (times) => Math.max(...Object.values(times));
      said.textContent = `${n_head} heads, ${n_embd} numbers a token, ${n_tokens} tokens: the fastest of ${rounds} runs or more, just now on this server. Another machine has other times: compare the bars.`;
      result.replaceChildren(
        bars("The same attention, built three ways", entries(constructions), longest(constructions), milliseconds),
        bars("Where the time of the weight splits goes", entries(stages), longest(stages), milliseconds),
      );
      stamp.element.hidden = false;
      stamp.show(difference);
    } catch (error) {
      said.textContent = error.message;
    }
    measure.disabled = false;
  }

  const heads = slider({ label: "heads", values: HEADS, value: asked.n_head, change: (n_head) => Object.assign(asked, { n_head }) });
  const tokens = slider({ label: "tokens", values: TOKENS, value: asked.n_tokens, change: (n_tokens) => Object.assign(asked, { n_tokens }) });
  return {
    elements: [
      heading("Where the time goes"),
      paragraph("With few tokens, many small products cost more than one large one: stacked heads are the slowest. With many tokens the time goes into the attention weights, n_head × T × T numbers that softmax writes and reads several times. Then stacked heads can be the faster ones, since the weights of one head at a time fit into the processor's cache."),
      paragraph(code("MultiHeadAttention"), " is the class that the GPT runs: one fused projection, and a fused softmax that never writes the weights down."),
      controls(heads.element, tokens.element, measure),
      said,
      result,
      stamp.element,
    ],
  };
}
