// "What would each layer have predicted?": the logit lens.

import { make, setFlag } from "../../../lib/dom.mjs";
import { MAX_RAMP_SHADE, palette } from "../../../lib/drawing/palette.mjs";
import { clamp, exact, fixed, share } from "../../../lib/numbers.mjs";
import { asWritten, spoken, visible } from "../../../lib/words.mjs";
import { amountCell } from "../bars.mjs";
import { askedPrediction, selectSomething, textBody, textProblem } from "../subject.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeCell, makeRow, makeTable, makeTitle } from "../../../widgets/table.mjs";
import { Roving } from "../../../widgets/roving.mjs";

/** @import { ShownText } from "../../state/shown_text.mjs" */
/** @import { LogitLensAnswer } from "../../../lens.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

/** @type {Question} */
export const logitLens = {
  key: "logit-lens",
  title: "What would each layer have predicted?",
  hook: "What the model would predict if it stopped after each layer.",
  explanation:
    "The logit lens: after each layer, the residual stream is read out as if that layer were the last " +
    "(nostalgebraist 2020). Each cell shows the most probable next token; a stronger colour is a higher probability. " +
    "It is bold from the layer on at which the prediction settles.",
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
  if (!when) return `${named(own)} leads from the start, and no layer changes that: it ends with ${chance}.`;
  const before = readings[when - 1][position];
  const [first, other] = [own, before].map((one) => named(one, own.text.trim() === before.text.trim()));
  const earlier = `before it, ${other} leads with ${share(before.probability)}`;
  if (when === last) return `Only the last layer decides on ${first}, with ${chance}; ${earlier}.`;
  const here = share(readings[when][position].probability);
  return `From layer ${when - 1} on, ${first} leads: with ${here} there and ${chance} at the end; ${earlier}.`;
}

/** A token in a sentence; exactly where another one would read the same. @param {{ text: string }} token */
const named = ({ text }, isExact = false) => (isExact ? `“${visible(text)}”` : spoken(text));

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
      selectSomething(store);
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

const MAX_COLUMNS = 64; // tokens in the strip at once
const MAX_NAMED = 3; // tokens of the chosen cell that the line below the strip names
const ROOM_BESIDE = 70; // CSS pixels of the strip that stay in view beside the chosen column

/** Where a reading is taken: from the embedding, or after a layer. @param {number} reading */
const readingName = (reading) => (reading ? `after layer ${reading - 1}` : "of the embedding");

/** The same, short enough for the title of a row. @param {number} reading */
export const shortName = (reading) => (reading ? `L${reading - 1}` : "start");

/** The first column of the window centred on `position`. @param {number} position @param {number} count */
export const windowStart = (position, count) => clamp(position - MAX_COLUMNS / 2, 0, Math.max(0, count - MAX_COLUMNS));

/** The most probable next token after each layer: a column for each token of the text, a row for each layer. */
export class LayerStrip {
  #start = 0;
  /** @type {[position: number, reading: number]} the chosen cell */
  #cell = [0, 0];
  /** @type {LogitLensAnswer | null} */
  #answer = null;
  /** @type {ReturnType<typeof palette> | null} the colours that are shown */
  #ramps = null;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.table = makeTable({}, { class: "hs-answer-table hs-readings", "data-table": "readings" });
    this.scroll = make("div", { class: "hs-answer-scroll hs-readings-scroll" }, this.table);
    const turn = (/** @type {number} */ by) => () => this.open(this.#start + by);
    this.earlier = smallButton("Earlier tokens", turn(-MAX_COLUMNS));
    this.later = smallButton("Later tokens", turn(MAX_COLUMNS));
    this.turning = make("p", { class: "hs-controls" }, this.earlier, this.later);
    this.chosen = make("p", { class: "hs-hint", "aria-live": "polite" });
    this.element = make("div", { class: "hs-answer-part" }, this.scroll, this.turning, this.chosen);
    this.numbers = make("div", { class: "hs-answer-part" });
    this.table.addEventListener("click", (event) => this.choose(event.target));
    const columns = () => this.#positions().length || 1;
    const choose = (/** @type {number} */ at) =>
      this.selectCell(this.#start + (at % columns()), Math.floor(at / columns()));
    this.roving = new Roving(this.table, () => [...this.table.querySelectorAll("button")], { columns, choose });
  }

  /** The positions of the columns. */
  #positions() {
    const count = Math.min((this.#answer?.tokens.length ?? 0) - this.#start, MAX_COLUMNS);
    return Array.from({ length: count }, (_, i) => this.#start + i);
  }

  /**
   * @param {LogitLensAnswer} answer
   * @param {number} position of the selected prediction
   */
  show(answer, position) {
    const isOther = answer !== this.#answer;
    this.#answer = answer;
    if (isOther) this.#cell[1] = answer.layers.length - 1;
    if (isOther || position !== this.#cell[0]) this.select(clamp(position, 0, answer.tokens.length - 1), isOther);
    else if (this.#ramps !== palette()) this.open(this.#start);
  }

  /** Choose a column and scroll it into view. @param {number} position @param {boolean} isOther answer */
  select(position, isOther) {
    const answer = this.#answer;
    if (!answer) return;
    this.#cell[0] = position;
    const isShown = !isOther && this.#positions().includes(position);
    if (isShown) this.mark();
    else this.open(windowStart(position, answer.tokens.length));
    this.explain();
    this.reveal(position);
  }

  /** Scroll a column into view, with what comes before it. @param {number} position */
  reveal(position) {
    // Once the strip has a size. Only the strip scrolls, so that the page stays where it is.
    requestAnimationFrame(() => {
      const { scroll } = this;
      const left = this.title(position)?.offsetLeft ?? 0;
      scroll.scrollLeft = clamp(scroll.scrollLeft, left - scroll.clientWidth + ROOM_BESIDE, left - 2 * ROOM_BESIDE);
    });
  }

  /** Show the columns from `start` on. @param {number} start */
  open(start) {
    const answer = this.#answer;
    if (!answer) return;
    const count = answer.tokens.length;
    this.#start = clamp(start, 0, Math.max(0, count - MAX_COLUMNS));
    this.draw(answer);
    this.turning.hidden = count <= MAX_COLUMNS;
    this.earlier.disabled = this.#start === 0;
    this.later.disabled = this.#start + MAX_COLUMNS >= count;
  }

  /** @param {LogitLensAnswer} answer */
  draw({ tokens, layers, decided }) {
    this.#ramps = palette();
    const positions = this.#positions();
    this.table.style.setProperty("--columns", String(positions.length));
    const titles = positions.map((position) => {
      const text = visible(tokens[position].text);
      return makeTitle(asWritten(tokens[position].text), { "data-position": position, title: `${text} ${position}` });
    });
    const rows = layers.map((_, reading) => [
      shortName(reading),
      ...positions.map((position) => this.makeCell(position, reading)),
    ]);
    const settles = positions.map((position) => makeCell(shortName(decided[position])));
    fillTable(this.table, {
      name: "The most probable next token after each layer",
      titles: ["read up to", ...titles],
      rows: [...rows, makeRow(["settles", ...settles], { class: "hs-decided" })],
    });
    this.mark();
  }

  /** @param {number} position @param {number} reading */
  makeCell(position, reading) {
    const { tokens, layers, decided } = /** @type {LogitLensAnswer} */ (this.#answer);
    const { text, probability } = layers[reading][position];
    const after = `after “${visible(tokens[position].text)}”`;
    const name = `${after}, ${readingName(reading)}: “${visible(text)}”, probability ${exact(probability)}`;
    const button = make("button", { type: "button", tabindex: -1, "aria-label": name, title: name }, asWritten(text));
    const cell = makeCell(button, { "data-reading": reading, "data-position": position });
    palette().looks.paint(cell, Math.round(MAX_RAMP_SHADE * probability));
    cell.classList.toggle("hs-settled", reading >= decided[position]);
    cell.classList.toggle("hs-settles", reading === decided[position]);
    return cell;
  }

  /** @param {number} position @returns {HTMLElement | null} */
  title(position) {
    return this.table.querySelector(`th[data-position="${position}"]`);
  }

  /** Outline the chosen cell, which Tab reaches; if it is not shown, Tab reaches the first one. */
  mark() {
    const [position, reading] = this.#cell;
    /** @type {HTMLButtonElement | undefined} */
    let chosen;
    for (const cell of /** @type {NodeListOf<HTMLElement>} */ (this.table.querySelectorAll("[data-position]"))) {
      const isHere = Number(cell.dataset.position) === position;
      setFlag(cell, "data-here", isHere);
      const button = cell.querySelector("button");
      const isChosen = isHere && Number(cell.dataset.reading) === reading;
      if (button) setFlag(button, "aria-pressed", isChosen);
      if (isChosen) chosen = button ?? undefined;
    }
    this.roving.update(chosen);
  }

  /** @param {EventTarget | null} target */
  choose(target) {
    /** @type {HTMLElement | null} */
    const cell = target instanceof Element ? target.closest("td[data-reading]") : null;
    if (cell) this.selectCell(Number(cell.dataset.position), Number(cell.dataset.reading));
  }

  /** Choose a cell, and with it the prediction in all panels. @param {number} position @param {number} reading */
  selectCell(position, reading) {
    const { store } = this;
    this.#cell = [position, reading];
    this.mark();
    this.explain();
    store.selection.look(position);
  }

  /** The distribution of the chosen cell. */
  explain() {
    const answer = this.#answer;
    if (!answer) return;
    const [position, reading] = this.#cell;
    const { top, kl, answer: chance } = answer.layers[reading][position];
    const own = answer.layers[answer.layers.length - 1][position];
    const after = spoken(answer.tokens[position].text);
    const first = top.slice(0, MAX_NAMED).map(({ text, probability }) => `${asWritten(text)} ${share(probability)}`);
    const where = reading ? `After layer ${reading - 1}` : "Before any layer";
    this.chosen.textContent = `${where}, following ${after}: ${first.join(", ")}. Darker is likelier.`;
    const token = `“${visible(answer.tokens[position].text)}” at position ${position}`;
    const words =
      reading === answer.layers.length - 1
        ? "This is the model’s own answer."
        : `${fixed(kl)} nats from the model’s answer. That answer, “${visible(own.text)}”, has probability ` +
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
