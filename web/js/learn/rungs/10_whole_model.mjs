// Rung 10: a loaded model, from one token to the probabilities of the next one, with every number recomputed.

import { make } from "../../lib/dom.mjs";
import { makeLink } from "../../lib/link.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { formula, sub, sup } from "../../widgets/formula.mjs";
import { HeatTable } from "../../widgets/heat_table.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { content } from "../content/10_whole_model.mjs";
import { Drawing } from "../widgets/drawing.mjs";
import { bars } from "../widgets/chart.mjs";
import { defined, heading, paragraph } from "../widgets/elements.mjs";
import { storyByTheLessons } from "../widgets/kite.mjs";
import { Strip } from "../widgets/strip.mjs";
import { compiledLoops, Draw } from "./10_draw.mjs";
import { HeadTiles } from "./10_head_tiles.mjs";
import { NumberPanel } from "./10_number_panel.mjs";
import { OpenHead } from "./10_open_head.mjs";

/** @import { Lesson, Prediction, Rung } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
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
  build: (lesson) => new WholeModel(lesson),
};

/** @extends {Drawing<"whole-model">} */
class WholeModel extends Drawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.head = new OpenHead(lesson);
    const choose = (/** @type {Strip} */ strip, /** @type {number} */ index) => this.#choose(strip, index);
    this.stages = stagesOf(choose);
    this.token = new Strip("token", "Token embedding", choose);
    this.position = new Strip("position", "Position embedding", choose);
    this.last = new Strip("last_x", "Residual stream after all layers", choose);
    this.lastNorm = new Strip("last_norm", "The last layer norm", choose);
    this.strips = [this.token, this.position, ...this.stages.strips, this.last, this.lastNorm];
    this.panel = new NumberPanel(lesson, () => this.strips, SOURCES);
    this.panel.shown = (stage) => lesson.diagram.mark(PART_OF[stage] ?? null);
    this.layers = layerPicker((layer) => lesson.set({ layer, head: this.data.head, query: this.data.query }));
    this.tiles = new HeadTiles((layer, h) => lesson.set({ layer, head: h, query: this.data.query }));
    this.tokens = make("div", { class: "hl-follow", role: "group", "aria-label": "The token to follow" });
    this.facts = make("p", { class: "hl-count" });
    this.layersSay = paragraph();
    this.asked = ""; // the model and the text that the prediction is about
    this.story = make("div");
    this.embedded = new Stamp(
      "token + position, compared with the model’s residual stream before its first layer",
      true,
    );
    this.ended = new Stamp("last layer norm, logits and probabilities, compared with the model’s own", true);
    this.packed = new Stamp("rung 8's weight splits, and the same weights packed into MultiHeadAttention");
    this.published = new HeatTable({
      name: "Raschka’s example, through MultiHeadAttention",
      axes: "words × 2 numbers",
    });
    this.draw = new Draw(lesson, (stage, name, id) => this.panel.show(stage, name, id));
    this.headTitle = heading("The head");
    this.layerTitle = heading("");
    this.shown = STAGES.map(({ stage }, i) => /** @type {const} */ ([PART_OF[stage], this.stages.strips[i].element]));
    this.stopFollowing = this.#makeStopFollowing();
    this.link = make("a", { class: "hl-link" }, "Open this head in Look →");
    /** Link to the head and the cell, and keep the theme that the address asks for. */
    this.head.chosen = () => {
      const address = new URL(makeLink(this.head.store.linkState, [], location.href));
      const theme = new URLSearchParams(location.search).get("__theme");
      if (theme) address.searchParams.set("__theme", theme);
      this.link.href = address.href;
    };
    this.formula = formula(
      [sub("x", "0"), "=", sub("E", "token"), "+", sub("P", "position")],
      ["x", "→", "x", "+", "Attention", "(", "LayerNorm", "(", "x", ")", ")"],
      ["x", "→", "x", "+", "MLP", "(", "LayerNorm", "(", "x", ")", ")"],
      [sub("p", "next"), "=", "softmax", "(", "LayerNorm", "(", sub("x", "end"), ")", sup("E", "T"), ")"],
    );
    this.parts = this.#makeParts();
    this.explanation = this.panel.element;
  }

  #choose(/** @type {Strip} */ strip, /** @type {number} */ index) {
    this.panel.show(strip.stage, strip.name, index);
  }

  #makeStopFollowing() {
    return this.lesson.diagram.follow(this.lesson.rung, [
      ["embedding", this.token.element],
      ["attention", this.tiles.element],
      ...this.shown.filter(([part], i) => part !== this.shown[i - 1]?.[0]).map(([...pair]) => pair),
      ["last_norm", this.last.element],
      ["unembedding", this.draw.table],
      ["softmax", this.draw.how],
    ]);
  }

  #showTokens() {
    const buttons = this.data.tokens.map((/** @type {string} */ text, /** @type {number} */ i) => {
      const onclick = () => this.lesson.set({ query: i, layer: this.data.layer, head: this.data.head });
      const pressed = String(i === this.data.query);
      return make("button", { type: "button", "aria-pressed": pressed, title: `Token ${i}`, onclick }, visible(text));
    });
    this.tokens.replaceChildren(...buttons);
  }

  /** Ask for a prediction about the text; while it stays the same, the question and the answer do. */
  #ask() {
    const text = JSON.stringify([this.data.model, this.data.ids]);
    if (text === this.asked) return;
    this.asked = text;
    this.lesson.rephrase(whenItAppears(this.data));
  }

  #makeParts() {
    return {
      facts: this.facts,
      story: this.story,
      tokens: this.tokens,
      layersSay: this.layersSay,
      layers: this.layers.element,
      tiles: this.tiles.element,
      draw: this.draw.element,
      kiteBuilt: storyByTheLessons(),
      hint: this.panel.hint,
      token: this.token.element,
      position: this.position.element,
      embedded: this.embedded.element,
      headTitle: this.headTitle,
      head: this.head.elements,
      link: make("p", {}, this.link),
      layerTitle: this.layerTitle,
      stages: this.stages.elements,
      last: this.last.element,
      lastNorm: this.lastNorm.element,
      ended: this.ended.element,
      published: this.published.element,
      packed: this.packed.element,
      loops: compiledLoops(),
    };
  }

  /** @param {Data["whole-model"]} found */
  update(found) {
    this.data = found;
    Object.assign(this.lesson.options, { layer: found.layer, head: found.head, query: found.query });
    this.published.show({ rows: BOOK_WORDS, columns: ["0", "1"], values: found.published });
    this.packed.show(found.published_error);
    const shape = `${found.n_layer} layers × ${found.n_head} heads of ${found.head_dim} numbers`;
    this.facts.replaceChildren(`${found.model}, chosen at the top: ${shape}. Losses in `, defined("nats"), ":");
    this.#ask();
    const open = (/** @type {Node[]} */ ...parts) => this.panel.open(...parts);
    this.story.replaceChildren(storyInNumbers(found.story, { name: found.model, size: found.vocab_size }, open));
    this.#showTokens();
    this.token.show(found.embedding.token, "learned, one row for each token");
    this.position.show(found.embedding.position, "learned, one row for each position");
    this.embedded.show(found.embedding.error, found.largest_error);
    this.layersSay.textContent = whatLayersSay(found);
    this.layers.update(found.guesses, found.layer);
    this.tiles.update(found);
    this.head.update(found);
    this.layerTitle.textContent = `“${visible(found.tokens[found.query])}” through layer ${found.layer}`;
    this.stages.update(found);
    this.last.show(found.end.x);
    this.lastNorm.show(found.end.normed);
    const { norm_error: norm, logits_error: logits, probability_error: probabilities } = found.end;
    this.ended.show(Math.max(norm, logits, probabilities), found.largest_error * 10);
    this.draw.update(found.end);
    this.panel.clear();
    this.lesson.diagram.count(found.n_layer);
  }

  notebook() {
    return { ...this.lesson.body, ...this.lesson.kept.draw };
  }

  /** @returns {Stop[]} */
  play() {
    const { tokens: texts, query, guesses, end, layer } = this.data;
    const word = visible(texts[query]);
    const layersOnTheWay = guesses.map((/** @type {{ text: string, p: number }} */ guess, /** @type {number} */ i) => ({
      at: this.layers.element.children[i],
      value: guess.p.toFixed(2),
      words:
        i === guesses.length - 1
          ? `After the last layer it predicts “${visible(guess.text)}”, with a probability of ${fixed(guess.p, 2)}.`
          : `${i ? `After layer ${i - 1}` : "So far"} it would predict “${visible(guess.text)}” next.`,
    }));
    const [{ text, logit, p }] = end.next;
    const inTable = (/** @type {number} */ i) => () => this.draw.table.querySelectorAll("tbody button")[i];
    return [
      { at: this.tokens.children[query], words: `“${word}” becomes a vector, to which every layer adds.` },
      ...layersOnTheWay.slice(0, layer + 1),
      ...this.tiles.stops,
      ...layersOnTheWay.slice(layer + 1),
      { at: inTable(0), words: `The vector’s dot product with that of “${visible(text)}” is ${fixed(logit, 2)}.` },
      { at: inTable(1), words: `Softmax over all ${number(this.data.vocab_size)} tokens: ${fixed(p, 2)}.` },
    ];
  }

  leave() {
    this.stopFollowing();
  }
}

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
  const where = passed ? `after layer ${passed - 1}, number ${passed} of ${n_layer}` : "with the embedding alone";
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
