// What did each layer expect? The logit lens.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { MAX_RAMP_SHADE, palette } from "../../../lib/drawing/palette.mjs";
import { exact, fixed, share } from "../../../lib/numbers.mjs";
import { asWritten, spoken, spokenApart, unitOf, visible } from "../../../lib/words.mjs";
import { amountCell } from "../bars.mjs";
import { shortName, TokenGrid } from "../token_grid.mjs";
import { askedPrediction, textBody, textProblem } from "../subject.mjs";
import { fillTable, makeCell, makeRow, makeTable } from "../../../widgets/table.mjs";

/** @import { ShownText } from "../../state/shown_text.mjs" */
/** @import { LogitLensAnswer } from "../../../lens.js" */
/** @import { TokenPicture } from "../token_grid.mjs" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

/** @type {Question} */
export const logitLens = {
  key: "logit-lens",
  title: TITLES["logit-lens"],
  hook: "What the model would predict if it stopped after each layer.",
  explanation:
    "The logit lens: after each layer, the residual stream is read out as if that layer were the last " +
    "(nostalgebraist 2020). Each cell shows the most probable next token; a stronger colour is a higher probability. " +
    "It is bold from the layer on at which the prediction settles, and grey where it repeats the token that was read.",
  caution:
    "The final norm and the output head were trained for the last layer alone, so their reading of an early " +
    "layer need not show what that layer represents. If the output head is tied to the embeddings, the first " +
    "readings often repeat the token itself.",
  defaults: {},
  build,
};

/**
 * When the prediction at a position is decided, in plain words.
 * @param {Pick<LogitLensAnswer, "layers" | "decided">} answer
 * @param {number} position
 */
export function decidedPlain({ layers: readings, decided }, position) {
  const last = readings.length - 1;
  const when = decided[position];
  const own = readings[last][position];
  const chance = share(own.probability);
  if (!when) return `${spoken(own.text)} leads from the start, and no layer changes that: it ends with ${chance}.`;
  const before = readings[when - 1][position];
  const [first, other] = spokenApart(own.text, before.text);
  const earlier = `before it, ${other} leads with ${share(before.probability)}`;
  if (when === last) return `Only the last layer decides on ${first}, with ${chance}; ${earlier}.`;
  const here = share(readings[when][position].probability);
  return `From layer ${when - 1} on, ${first} leads: with ${here} there and ${chance} at the end; ${earlier}.`;
}

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  const count = make("p", {});
  const strip = new LayerStrip(store);
  return {
    controls: [],
    picture: strip.element,
    element: make("div", { class: "hs-answer-part" }, count, strip.numbers),
    request() {
      const problem = textProblem(store);
      if (problem) return problem;
      store.selection.settle();
      return { route: "logit-lens", body: { ...textBody(store), top: 8 } };
    },
    /** @param {LogitLensAnswer} answer */
    draw(answer) {
      const n_layer = answer.layers.length - 1;
      const late = answer.decided.filter((reading) => reading === n_layer).length;
      count.textContent = `${late} of ${answer.tokens.length} next tokens are decided only in the last layer.`;
      const { position } = askedPrediction(store);
      conclude(decidedPlain(answer, position));
      strip.show(answer, position);
    },
  };
}

const MAX_NAMED = 3; // tokens of the chosen cell that the line below the strip names

/** Where a reading is taken: from the embedding, or after a layer. @param {number} reading */
const readingName = (reading) => (reading ? `after layer ${reading - 1}` : "of the embedding");

/** Whether a reading only repeats the token that was read. @param {LogitLensAnswer} answer */
const isRepeated = ({ layers, tokens }, /** @type {number} */ position, /** @type {number} */ reading) =>
  layers[reading][position].id === tokens[position].id;

/** The most probable next token after each layer: for the selected word, and one fold away for every word. */
export class LayerStrip {
  /** @type {LogitLensAnswer | null} */
  #answer = null;
  /** @type {ReturnType<typeof palette> | null} the colours that are shown */
  #ramps = null;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.column = makeTable({}, { class: "hs-layer-column", "data-table": "layers" });
    this.repeats = make("p", { class: "hs-hint" });
    this.grid = new TokenGrid("The most probable next token after each layer", "readings", (position) => {
      this.explain();
      store.selection.look(position);
    });
    this.chosen = make("p", { class: "hs-hint", "aria-live": "polite" });
    this.every = make("details", {}, make("summary", {}, `Every ${unitOf(store)}`), this.grid.element, this.chosen);
    this.every.open = store.view.options.details;
    this.every.addEventListener("toggle", () => this.grid.reveal());
    this.element = make("div", { class: "hs-answer-part" }, this.column, this.repeats, this.every);
    this.numbers = make("div", { class: "hs-answer-part" });
  }

  /**
   * @param {LogitLensAnswer} answer
   * @param {number} position of the selected prediction
   */
  show(answer, position) {
    const isOther = answer !== this.#answer;
    this.#answer = answer;
    if (isOther) this.grid.show(pictureOf(answer), position, answer.layers.length - 1);
    else if (position !== this.grid.cell[0]) this.grid.select(position);
    else if (this.#ramps !== palette()) this.grid.repaint();
    else return;
    this.#ramps = palette();
    this.#drawColumn(answer, position);
    this.explain();
  }

  /** @param {LogitLensAnswer} answer @param {number} position */
  #drawColumn(answer, position) {
    const readings = answer.layers.map((layer) => layer[position]);
    const repeated = readings.map((_, reading) => isRepeated(answer, position, reading));
    const rows = readings.map(({ text, probability }, reading) => {
      const word = makeCell(make("span", {}, asWritten(text)), { class: repeated[reading] ? "hs-repeats" : "" });
      const chip = /** @type {HTMLElement} */ (word.firstElementChild);
      if (!repeated[reading]) palette().looks.paint(chip, Math.round(MAX_RAMP_SHADE * probability));
      const bar = make("i", { "aria-hidden": "true" });
      bar.style.width = `${100 * probability}%`;
      const name = reading ? `Layer ${reading - 1}` : "Start";
      const css = settledClass(answer, position, reading);
      return makeRow([name, word, makeCell(bar), share(probability)], { class: css });
    });
    const after = spoken(answer.tokens[position].text);
    fillTable(this.column, { name: `The most probable next token after each layer, following ${after}`, rows });
    this.column.style.setProperty("--rows", String(rows.length));
    this.repeats.textContent = `Grey: ${after} itself, the ${unitOf(this.store)} that was read last.`;
    this.repeats.hidden = !repeated.includes(true);
  }

  /** The distribution of the chosen cell. */
  explain() {
    const answer = this.#answer;
    if (!answer) return;
    const [position, reading] = this.grid.cell;
    const { top, kl, answer: chance } = answer.layers[reading][position];
    const own = answer.layers[answer.layers.length - 1][position];
    const after = spoken(answer.tokens[position].text);
    const first = top.slice(0, MAX_NAMED).map(({ text, probability }) => `${asWritten(text)} ${share(probability)}`);
    const where = reading ? `After layer ${reading - 1}` : "Before any layer";
    this.chosen.textContent = `${where}, following ${after}: ${first.join(", ")}. More ink is likelier.`;
    const token = `${after} at position ${position}`;
    const words =
      reading === answer.layers.length - 1
        ? "This is the model’s own answer."
        : `${fixed(kl)} nats from the model’s answer. That answer, ${spoken(own.text)}, has probability ` +
          `${exact(chance)} here.`;
    const rows = top.map(({ text, probability }) => [
      visible(text),
      amountCell(probability, top[0].probability, exact(probability)),
    ]);
    const name = `The reading ${readingName(reading)}, after ${token}`;
    const table = makeTable({ rows }, { class: "hs-answer-table", "data-table": "reading", "aria-label": name });
    this.numbers.replaceChildren(make("p", {}, make("b", {}, `${name}. `), words), table);
  }
}

/** Whether the prediction is settled at a reading. @param {LogitLensAnswer} answer */
const settledClass = ({ decided }, /** @type {number} */ position, /** @type {number} */ reading) =>
  reading < decided[position] ? "" : reading === decided[position] ? "hs-settled hs-settles" : "hs-settled";

/** @param {LogitLensAnswer} answer @returns {TokenPicture} */
const pictureOf = (answer) => ({
  first: 0,
  end: answer.tokens.length,
  corner: "read up to",
  title: (position) => {
    const { text } = answer.tokens[position];
    return { content: asWritten(text), label: `“${visible(text)}” at position ${position}` };
  },
  rows: answer.layers.map((_, reading) => shortName(reading)),
  cell: (position, reading) => {
    const { text, probability } = answer.layers[reading][position];
    const after = `after “${visible(answer.tokens[position].text)}”`;
    const isRepeat = isRepeated(answer, position, reading);
    const settled = settledClass(answer, position, reading);
    return {
      text: asWritten(text),
      label: `${after}, ${readingName(reading)}: “${visible(text)}”, probability ${exact(probability)}`,
      ramp: palette().looks,
      shade: isRepeat ? 0 : Math.round(MAX_RAMP_SHADE * probability),
      css: isRepeat ? `hs-repeats ${settled}` : settled,
    };
  },
  foot: { title: "settles", text: (position) => shortName(answer.decided[position]) },
});
