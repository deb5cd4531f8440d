// Rung 10: a loaded model from one token to the probability of the next, every number of it recomputed.

import { make } from "../../../lib/dom.mjs";
import { makeLink } from "../../../lib/link.mjs";
import { visible } from "../../../lib/words.mjs";
import { code, heading, paragraph, rowOf } from "../../widgets/elements.mjs";
import { diagramOf } from "../../widgets/parts.mjs";
import { formula, fraction, root, row, sub, sup } from "../../../widgets/formula.mjs";
import { HeatTable } from "../../../widgets/heat_table.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { compiledLoops } from "./compiled_loops.mjs";
import { OpenHead } from "./open_head.mjs";
import { HeadTiles } from "./head_tiles.mjs";
import { layerPicker, nextTokens, storyInNumbers } from "./next_token.mjs";
import { NumberPanel } from "./number_panel.mjs";
import { PART_OF, SOURCES, STAGES, stagesOf } from "./stages.mjs";
import { Strip } from "./strip.mjs";

/** @import { Rung } from "../../rung.js" */

const BOOK_WORDS = ["Your", "journey", "starts", "with", "one", "step"];

/** @type {Rung} */
export const wholeModel = {
  name: "The whole model",
  learned: "From a token to the next one's probability, a GPT takes only the steps of these ten rungs.",
  options: () => ({ layer: null, head: null, query: null }),
  question: {
    ask: "In a trained model, what do most heads of the same layer look at?",
    options: ["All of them at the same tokens", "Each at something of its own"],
    right: 1,
    why: "Nothing forces them to differ, but a head that repeats another adds nothing. Compare their pictures below.",
  },
  build(lesson) {
    /** @type {any} */
    let data = null;
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
    panel.shown = (stage) => diagram.mark(PART_OF[stage] ?? null);
    const next = nextTokens((stage, name, id) => panel.show(stage, name, id));
    const layers = layerPicker((layer) => lesson.set({ layer, head: data.head, query: data.query }));
    const tiles = new HeadTiles((layer, h) => lesson.set({ layer, head: h, query: data.query }));
    const tokens = make("div", { class: "hl-follow", role: "group", "aria-label": "The token to follow" });
    const facts = make("p", { class: "hl-count" });
    const story = make("div", { class: "hl-row" });
    const embedded = new Stamp("token + position, against the model's residual stream before its first layer", true);
    const ended = new Stamp("last layer norm, logits and probabilities, against the model's own", true);
    const packed = new Stamp("rung 8's weight splits, and the same weights packed into MultiHeadAttention");
    const published = new HeatTable({ name: "The book's case, through MultiHeadAttention", axes: "words × 2 numbers" });
    const layerTitle = heading("");
    const shown = STAGES.map(({ stage }, i) => /** @type {const} */ ([PART_OF[stage], stages.strips[i].element]));
    const { diagram, follow } = diagramOf(lesson, [
      ["embedding", token.element],
      ["attention", tiles.element],
      ...shown.filter(([part], i) => part !== shown[i - 1]?.[0]).map(([...pair]) => pair),
      ["last_norm", last.element],
      ["unembedding", next.elements[0]],
      ["softmax", next.elements[1]],
    ]);
    const link = make("a", { class: "hl-link" }, "Open this head in Look →");

    /** Link to the head and the cell, in the theme that the address asks for. */
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

    return {
      text: [
        paragraph(
          "A model that was trained reads your sentence. Choose a token and follow it: from its embedding through all ",
          "layers to the probability of the token that comes next. Each number is the model's own, and each is " +
            "computed ",
          "a second time with the steps of this ladder.",
        ),
      ],
      formula: formula(
        [sub("x", "0"), "=", sub("E", "token"), "+", sub("P", "position")],
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
        [sub("p", "next"), "=", "softmax", "(", "LayerNorm", "(", sub("x", "end"), ")", sup("E", "T"), ")"],
      ),
      picture: [
        diagram.element,
        facts,
        story,
        heading("1. Choose a token to follow"),
        tokens,
        token.element,
        position.element,
        embedded.element,
        heading("2. Choose a layer and a head"),
        paragraph(
          "Below each layer is what the model would say next if it ended before that layer. Every tile is one head on ",
          "your sentence, named if it has a clear role.",
        ),
        layers.element,
        tiles.element,
        ...head.elements,
        make("p", {}, link),
        layerTitle,
        ...stages.elements,
        heading("4. From the last layer to the next token"),
        paragraph(
          "After the last layer comes one more layer norm. Its dot product with a token's own embedding is that " +
            "token's ",
          "logit, and the softmax over all of them gives the probabilities. Click a logit or a probability.",
        ),
        last.element,
        lastNorm.element,
        ...next.elements,
        ended.element,
        heading("The book's case in the same class"),
        paragraph(
          "The GPT runs ",
          code("MultiHeadAttention"),
          ": weight splits whose three projections are stacked in one matrix. The book's numbers go through it too.",
        ),
        rowOf(published.element),
        packed.element,
        compiledLoops(),
        panel.element,
      ],
      update(found) {
        data = found;
        Object.assign(lesson.options, { layer: data.layer, head: data.head, query: data.query });
        published.show({ rows: BOOK_WORDS, columns: ["0", "1"], values: data.published });
        packed.show(data.published_error);
        facts.textContent =
          `${data.model}: ${data.n_layer} layers × ${data.n_head} heads of ${data.head_dim} numbers. ` +
          "Another model can be chosen at the top of the page.";
        const open = (/** @type {Node[]} */ ...parts) => panel.open(...parts);
        story.replaceChildren(storyInNumbers(data.story, { name: data.model, size: data.vocab_size }, open));
        showTokens();
        token.show(data.embedding.token, "learned, one row for each token");
        position.show(data.embedding.position, "learned, one row for each place");
        embedded.show(data.embedding.error, data.largest_error);
        layers.update(data.guesses, data.layer);
        tiles.update(data);
        head.update(data);
        layerTitle.textContent = `3. “${visible(data.tokens[data.query])}” through layer ${data.layer}`;
        stages.update(data);
        last.show(data.end.x);
        lastNorm.show(data.end.normed);
        next.update(data.end);
        const { norm_error: norm, logits_error: logits, probability_error: probabilities } = data.end;
        ended.show(Math.max(norm, logits, probabilities), data.largest_error * 10);
        panel.clear();
        diagram.count(data.n_layer);
      },
      leave: follow(),
    };
  },
};
