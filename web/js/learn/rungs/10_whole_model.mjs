// Rung 10: a loaded model, from one token to the probabilities of the next one, with every number recomputed.

import { make } from "../../lib/dom.mjs";
import { makeLink } from "../../lib/link.mjs";
import { exact, fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { formula, sub, sup } from "../../widgets/formula.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/10_whole_model.mjs";
import { bars } from "../widgets/chart.mjs";
import { defined, heading, paragraph } from "../widgets/elements.mjs";
import { storyByTheLessons } from "../widgets/kite.mjs";
import { Strip } from "../widgets/strip.mjs";
import { compiledLoops, Draw } from "./10_draw.mjs";
import { HeadTiles } from "./10_head_tiles.mjs";
import { NumberPanel } from "./10_number_panel.mjs";
import { OpenHead } from "./10_open_head.mjs";

/** @import { Prediction, Rung } from "../rung.js" */
/** @import { Data } from "../data.js" */
/** @import { Part } from "../widgets/diagram.mjs" */

const BOOK_WORDS = ["Your", "journey", "starts", "with", "one", "step"];

/** @type {Rung<"whole-model">} */
export const wholeModel = {
  ...content,
  key: "whole-model",
  options: () => ({ layer: null, head: null, query: null }),
  choices: () => ({ draw: { temperature: 1, top_k: 0, top_p: 1, seed: 1, draws: 1 } }),
  ofSentence: ["query"],
  followsModel: true,
  own({ end: { next } }) {
    const [{ text, p }, second] = next;
    return {
      kind: "number",
      ask:
        `“${visible(text)}” has the logit ${fixed(next[0].logit)} and “${visible(second.text)}” has ` +
        `${fixed(second.logit)}. How many times as probable is the first?`,
      right: p / second.p,
      tolerance: 0.02 + 0.002 * (p / second.p),
      mistakes: [
        { number: next[0].logit - second.logit, reply: "That is the difference of the logits: e to the power of it." },
        { number: next[0].logit / second.logit, reply: "The chances are not in the ratio of the logits." },
        { number: second.p / p, reply: "That is the other way round." },
        { number: p, reply: "That is the probability of the first." },
      ],
      hint: "Softmax exponentiates both logits and divides by the same sum, which cancels in the ratio.",
      second: `The logits differ by ${fixed(next[0].logit - second.logit)}.`,
      why: `exp(${fixed(next[0].logit)} − ${fixed(second.logit)}), the quotient of the two exponentials.`,
    };
  },
  build(lesson) {
    /** @type {Data["whole-model"]} */
    let data;
    const head = new OpenHead(lesson);
    const choose = (/** @type {Strip} */ strip, /** @type {number} */ index) =>
      panel.show(strip.stage, strip.name, index);
    const stages = stagesOf(choose);
    const [token, position] = ["Token", "Position"].map(
      (name) => new Strip(name.toLowerCase(), `${name} embedding`, choose),
    );
    const [last, lastNorm] = [
      new Strip("last_x", "Residual stream after all layers", choose),
      new Strip("last_norm", "The last layer norm", choose),
    ];
    const strips = [token, position, ...stages.strips, last, lastNorm];
    const panel = new NumberPanel(lesson, () => strips, SOURCES);
    panel.shown = (stage) => lesson.diagram.mark(PART_OF[stage] ?? null);
    const layers = layerPicker((layer) => lesson.set({ layer, head: data.head, query: data.query }));
    const tiles = new HeadTiles((layer, h) => lesson.set({ layer, head: h, query: data.query }));
    const tokens = make("div", { class: "hl-follow", role: "group", "aria-label": "The token to follow" });
    const facts = make("p", { class: "hl-count" });
    const layersSay = paragraph();
    let asked = ""; // the model and the text that the prediction is about
    const story = make("div");
    const embedded = new Stamp(
      "token + position, compared with the model’s residual stream before its first layer",
      true,
    );
    const ended = new Stamp("last layer norm, logits and probabilities, compared with the model’s own", true);
    const packed = new Stamp("rung 8's weight splits, and the same weights packed into MultiHeadAttention");
    const published = new HeatTable({ name: "The book’s case, through MultiHeadAttention", axes: "words × 2 numbers" });
    const draw = new Draw(lesson, (stage, name, id) => panel.show(stage, name, id));
    const [headTitle, layerTitle] = [heading("The head"), heading("")];
    const shown = STAGES.map(({ stage }, i) => /** @type {const} */ ([PART_OF[stage], stages.strips[i].element]));
    const stopFollowing = lesson.diagram.follow(lesson.rung, [
      ["embedding", token.element],
      ["attention", tiles.element],
      ...shown.filter(([part], i) => part !== shown[i - 1]?.[0]).map(([...pair]) => pair),
      ["last_norm", last.element],
      ["unembedding", draw.table],
      ["softmax", draw.how],
    ]);
    const link = make("a", { class: "hl-link" }, "Open this head in Look →");

    /** Link to the head and the cell, and keep the theme that the address asks for. */
    head.chosen = () => {
      const address = new URL(makeLink(head.store.linkState, [], location.href));
      const theme = new URLSearchParams(location.search).get("__theme");
      if (theme) address.searchParams.set("__theme", theme);
      link.href = address.href;
    };

    function showTokens() {
      const buttons = data.tokens.map((/** @type {string} */ text, /** @type {number} */ i) => {
        const onclick = () => lesson.set({ query: i, layer: data.layer, head: data.head });
        const pressed = String(i === data.query);
        return make("button", { type: "button", "aria-pressed": pressed, title: `Token ${i}`, onclick }, visible(text));
      });
      tokens.replaceChildren(...buttons);
    }

    /** Ask for a prediction about the text; while it stays the same, the question and the answer do. */
    function ask() {
      const text = JSON.stringify([data.model, data.ids]);
      if (text === asked) return;
      asked = text;
      lesson.rephrase(whenItAppears(data));
    }

    return {
      formula: formula(
        [sub("x", "0"), "=", sub("E", "token"), "+", sub("P", "position")],
        ["x", "→", "x", "+", "Attention", "(", "LayerNorm", "(", "x", ")", ")"],
        ["x", "→", "x", "+", "MLP", "(", "LayerNorm", "(", "x", ")", ")"],
        [sub("p", "next"), "=", "softmax", "(", "LayerNorm", "(", sub("x", "end"), ")", sup("E", "T"), ")"],
      ),
      parts: {
        facts,
        story,
        tokens,
        layersSay,
        layers: layers.element,
        tiles: tiles.element,
        draw: draw.element,
        kiteBuilt: storyByTheLessons(),
        hint: panel.hint,
        token: token.element,
        position: position.element,
        embedded: embedded.element,
        headTitle,
        head: head.elements,
        link: make("p", {}, link),
        layerTitle,
        stages: stages.elements,
        last: last.element,
        lastNorm: lastNorm.element,
        ended: ended.element,
        published: published.element,
        packed: packed.element,
        loops: compiledLoops(),
      },
      explanation: panel.element,
      update(found) {
        data = found;
        Object.assign(lesson.options, { layer: data.layer, head: data.head, query: data.query });
        published.show({ rows: BOOK_WORDS, columns: ["0", "1"], values: data.published });
        packed.show(data.published_error);
        const shape = `${data.n_layer} layers × ${data.n_head} heads of ${data.head_dim} numbers`;
        facts.replaceChildren(`${data.model}, chosen at the top: ${shape}. Losses in `, defined("nats"), ":");
        ask();
        const open = (/** @type {Node[]} */ ...parts) => panel.open(...parts);
        story.replaceChildren(storyInNumbers(data.story, { name: data.model, size: data.vocab_size }, open));
        showTokens();
        token.show(data.embedding.token, "learned, one row for each token");
        position.show(data.embedding.position, "learned, one row for each position");
        embedded.show(data.embedding.error, data.largest_error);
        layersSay.textContent = whatLayersSay(data);
        layers.update(data.guesses, data.layer);
        tiles.update(data);
        head.update(data);
        layerTitle.textContent = `“${visible(data.tokens[data.query])}” through layer ${data.layer}`;
        stages.update(data);
        last.show(data.end.x);
        lastNorm.show(data.end.normed);
        const { norm_error: norm, logits_error: logits, probability_error: probabilities } = data.end;
        ended.show(Math.max(norm, logits, probabilities), data.largest_error * 10);
        draw.update(data.end);
        panel.clear();
        lesson.diagram.count(data.n_layer);
      },
      notebook: () => ({ ...lesson.body, ...lesson.kept.draw }),
      play() {
        const { tokens: texts, query, guesses, end, layer } = data;
        const word = visible(texts[query]);
        const layersOnTheWay = guesses.map(
          (/** @type {{ text: string, p: number }} */ guess, /** @type {number} */ i) => ({
            at: layers.element.children[i],
            value: guess.p.toFixed(2),
            words:
              i === guesses.length - 1
                ? `After the last layer it predicts “${visible(guess.text)}”, with a probability of ${exact(guess.p)}.`
                : `${i ? `After layer ${i - 1}` : "So far"} it would predict “${visible(guess.text)}” next.`,
          }),
        );
        const [{ text, logit, p }] = end.next;
        const inTable = (/** @type {number} */ i) => () => draw.table.querySelectorAll("tbody button")[i];
        return [
          { at: tokens.children[query], words: `“${word}” becomes a vector, to which every layer adds.` },
          ...layersOnTheWay.slice(0, layer + 1),
          ...tiles.stops,
          ...layersOnTheWay.slice(layer + 1),
          { at: inTable(0), words: `The vector’s dot product with that of “${visible(text)}” is ${fixed(logit, 2)}.` },
          { at: inTable(1), words: `Softmax over all ${number(data.vocab_size)} tokens: ${exact(p)}.` },
        ];
      },
      leave: stopFollowing,
    };
  },
};

// The stages of one token in a layer, as strips of numbers, each compared with the model's own.

/** @typedef {{ stage: string, name: string, words: string, error?: string }} Stage */

/** @type {Stage[]} */
const STAGES = [
  { stage: "x", name: "Residual stream", words: "the layer’s input" },
  { stage: "normed", name: "Layer norm", words: "what attention reads", error: "normed" },
  { stage: "query", name: "Query of the head", words: "what the token looks for", error: "query" },
  { stage: "key", name: "Key of the head", words: "what it is found by", error: "key" },
  { stage: "value", name: "Value of the head", words: "what it contributes when it is found", error: "value" },
  { stage: "context", name: "Context vector of the head", words: "attention weights · values" },
  { stage: "heads", name: "All heads side by side", words: "one context vector after the other", error: "heads" },
  { stage: "attended", name: "Output projection", words: "what attention adds", error: "attended" },
  { stage: "resid_mid", name: "Residual stream + attention", words: "the first sum", error: "resid_mid" },
  { stage: "mlp_input", name: "Layer norm again", words: "what the MLP reads", error: "mlp_input" },
  { stage: "hidden", name: "Hidden numbers of the MLP", words: "four times as many", error: "hidden" },
  { stage: "activated", name: "After GELU", words: "negative numbers almost vanish", error: "activated" },
  { stage: "mlp_output", name: "Output of the MLP", words: "what the MLP adds", error: "mlp_output" },
  { stage: "after", name: "Residual stream after the layer", words: "the second sum", error: "after" },
];

/** The part of the diagram that shows a stage. @type {Record<string, Part>} */
const PART_OF = {
  token: "embedding",
  position: "embedding",
  x: "norm",
  normed: "norm",
  query: "attention",
  key: "attention",
  value: "attention",
  context: "attention",
  heads: "attention",
  attended: "attention",
  resid_mid: "add",
  mlp_input: "norm_again",
  hidden: "mlp",
  activated: "mlp",
  mlp_output: "mlp",
  after: "add_again",
  last_x: "last_norm",
  last_norm: "last_norm",
  logit: "unembedding",
  probability: "softmax",
};

/** The stages that each stage is computed from. @type {Record<string, string[]>} */
const SOURCES = {
  x: ["token", "position"],
  normed: ["x"],
  query: ["normed"],
  key: ["normed"],
  value: ["normed"],
  context: ["value"],
  heads: ["context"],
  attended: ["heads"],
  resid_mid: ["x", "attended"],
  mlp_input: ["resid_mid"],
  hidden: ["mlp_input"],
  activated: ["hidden"],
  mlp_output: ["activated"],
  after: ["resid_mid", "mlp_output"],
  last_norm: ["last_x"],
  logit: ["last_norm"],
};

/** @param {(strip: Strip, index: number) => void} choose */
function stagesOf(choose) {
  const strips = STAGES.map(({ stage, name }) => new Strip(stage, name, choose));
  const stamp = new Stamp(
    "every stage of this layer for every token, compared with the outputs of the model’s own modules",
    true,
  );
  const items = STAGES.map(({ words }, i) => {
    const error = make("small", {});
    return { error, element: make("li", {}, strips[i].element, make("p", { class: "hl-stage" }, words, error)) };
  });
  /** @param {any} data */
  function update({ vectors, of_head: head, errors, largest_error: most, head: which, head_dim: size }) {
    STAGES.forEach(({ stage, error }, i) => {
      const values = vectors[stage] ?? head[stage];
      const note = stage === "heads" ? `numbers ${which * size} to ${(which + 1) * size - 1} are this head’s` : "";
      strips[i].show(values, note);
      const found = error ? errors[error] : null;
      items[i].error.textContent =
        found === null ? "" : ` · differs from the model by at most ${found.toExponential(1).replace("-", "−")}`;
    });
    stamp.show(Math.max(.../** @type {number[]} */ (Object.values(errors))), most);
  }
  return {
    strips,
    elements: [make("ol", { class: "hl-stages" }, ...items.map(({ element }) => element)), stamp.element],
    update,
  };
}

const WHEN = ["In the first half of the layers, or before", "In the second half", "Only after the last layer"];

/**
 * A question about the token that is followed: when the model's final prediction first appears.
 * @param {Pick<Data["whole-model"], "sha256" | "ids" | "guesses" | "tokens" | "query">} data
 * @returns {Prediction}
 */
export function whenItAppears({ sha256, ids, guesses, tokens, query }) {
  const n_layer = guesses.length - 1;
  const { id, text } = guesses[n_layer];
  const passed = guesses.findIndex((guess) => guess.id === id); // layers, until it appears
  const isLost = guesses.slice(passed).some((guess) => guess.id !== id);
  const where = passed ? `after layer ${passed - 1}` : "with the embedding alone";
  return {
    ask:
      `Stop the model after each layer in turn: when does its final prediction of what follows ` +
      `“${visible(tokens[query])}” first appear?`,
    options: WHEN,
    right: passed === n_layer ? 2 : passed <= n_layer / 2 ? 0 : 1,
    why: `“${visible(text)}” first appears ${where}${isLost ? ", is lost again and comes back" : ""}.`,
    about: JSON.stringify([sha256, ids, query]),
  };
}

/** What the boxes of the layers and the tiles show, and on how many heads a name. @param {Data["whole-model"]} data */
function whatLayersSay({ guesses, ids, query, roles }) {
  const heads = roles.flat();
  const itself =
    guesses[0].id === ids[query] ? ": at first the token itself, as its vector is still the embedding" : "";
  const named = heads.filter(({ role }) => role).length;
  return (
    `Each box has the prediction if the model ended there${itself}. Each tile is a head, named if it has one simple ` +
    "job in this text: to look at the previous token, at the first, or at what followed the same token earlier " +
    `(${named} of ${heads.length}).`
  );
}

/**
 * The embedding and the layers, each with the token that the model would predict if it ended there.
 * @param {(layer: number) => void} choose
 */
function layerPicker(choose) {
  const element = make("div", { class: "hl-layers", role: "group", "aria-label": "Layers" });
  /** @param {{ text: string, p: number, length: number }[]} guesses @param {number} chosen */
  function update(guesses, chosen) {
    const boxes = guesses.map(({ text, p, length }, i) => {
      const guess = make("small", {}, `“${visible(text)}” ${p.toFixed(2)}`);
      const [layer, name] = [i - 1, i ? `after layer ${i - 1}` : "embedding"];
      const title = `The vector there has length ${fixed(length, 2)} and would predict “${text}”`;
      if (!i) return make("span", { class: "hl-end", title }, name, guess);
      const attributes = { type: "button", title, "aria-pressed": String(layer === chosen) };
      return make("button", { ...attributes, onclick: () => choose(layer) }, name, guess);
    });
    element.replaceChildren(...boxes);
  }
  return { element, update };
}

/**
 * The losses of guessing, of a bigram model and of this model.
 * @param {{ uniform: number, bigram: number | null, model: number | null }} story
 * @param {{ name: string, size: number }} model
 * @param {(...parts: Node[]) => void} open shows the arithmetic behind a number
 */
function storyInNumbers({ uniform, bigram, model }, { name, size }, open) {
  const all = number(size);
  const lines = [{ label: `all ${all} tokens equally likely: ln ${all}`, value: uniform }];
  const why = [
    `Each of ${all} tokens gets the probability 1 / ${all}: −ln (1 / ${all}) = ln ${all} = ${fixed(uniform)}`,
  ];
  if (bigram !== null) {
    lines.push({ label: "a bigram model of the same text", value: bigram });
    why.push(
      "The mean of −ln p over the same held-out text, where p is how often the token follows the one before it in " +
        `the training text, with 0.1 added to the count of every pair: ${fixed(bigram)}. Rung 3 trains such a table.`,
    );
  }
  if (model !== null) {
    lines.push({ label: `${name}, according to its model card`, value: model });
    why.push(
      `The mean of −ln p over held-out text, measured when ${name} was trained: ${fixed(model)}. The end of this ` +
        "rung shows the same −ln p for one token of your sentence.",
    );
  }
  return bars("Nats per token: lower is better", lines, uniform, {
    format: (value) => fixed(value, 2),
    explain: (i) => open(make("p", {}, why[i])),
  });
}
