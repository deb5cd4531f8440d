// "What would each layer have predicted?": the logit lens.

import { make, setFlag } from "../../../lib/dom.mjs";
import { MAX_RAMP_SHADE, palette } from "../../../lib/drawing/palette.mjs";
import { clamp, exact, fixed } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { amountCell } from "../bars.mjs";
import { askedPrediction, selectSomething, textBody, textProblem } from "../subject.mjs";
import { onResize } from "../../../lib/reactive.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { fillTable, makeCell, makeRow, makeTable } from "../../../widgets/table.mjs";
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
    "(nostalgebraist 2020). Each cell shows the most probable next token; a stronger colour is a higher probability.",
  caution:
    "The final norm and the output head were trained for the last layer alone, so their reading of an early " +
    "layer need not show what that layer represents. If the output head is tied to the embeddings, the first " +
    "readings often repeat the token itself.",
  defaults: {},
  build,
};

/**
 * When the prediction at a position is decided, in plain words.
 * @param {LogitLensAnswer} answer
 * @param {number} position
 */
function decidedPlain({ tokens, layers: readings, decided }, position) {
  const last = readings.length - 1;
  const when = decided[position];
  const [after, next] = [tokens[position].text, readings[last][position].text].map((text) => `“${visible(text)}”`);
  if (!when)
    return `After ${after}, ${next} is the most probable token from the embedding onwards: no layer changes that.`;
  const which = when === last ? `only in ${shortName(when)}, the last layer` : `in ${shortName(when)}`;
  const rest = when === last ? "" : `; the layers after it, up to ${shortName(last)}, do not change that`;
  return `After ${after}, the model settles on ${next} ${which}${rest}.`;
}

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  const sentence = make("p", { class: "hs-answer" });
  const table = new ReadingsTable(store);
  return {
    controls: [],
    element: make("div", { class: "hs-answer-part" }, sentence, table.element),
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
      const count = answer.tokens.length;
      sentence.textContent = `${late} of ${count} next tokens are decided only in the last layer.`;
      const { position } = askedPrediction(store);
      conclude(decidedPlain(answer, position));
      table.show(answer, position);
    },
  };
}

const MAX_ROWS = 64; // tokens in the table at once
const ROOM_ABOVE = 90; // CSS pixels of the table that stay in view above the chosen row

/** Where a reading is taken: from the embedding, or after a layer. @param {number} reading */
const readingName = (reading) => (reading ? `after layer ${reading - 1}` : "of the embedding");

/** The same, short enough for a column heading. @param {number} reading */
export const shortName = (reading) => (reading ? `L${reading - 1}` : "embed");

/** The first row of the window of rows centred on `position`. @param {number} position @param {number} count */
export const windowStart = (position, count) => clamp(position - MAX_ROWS / 2, 0, Math.max(0, count - MAX_ROWS));

class ReadingsTable {
  #start = 0;
  /** @type {[position: number, reading: number]} the chosen cell */
  #cell = [0, 0];
  /** @type {LogitLensAnswer | null} */
  #answer = null;
  #isNew = false; // whether the columns must still be scrolled to the last one
  /** @type {ReturnType<typeof palette> | null} the colours that are shown */
  #ramps = null;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.table = makeTable({}, { class: "hs-answer-table hs-readings", "data-table": "readings" });
    this.scroll = make("div", { class: "hs-answer-scroll" }, this.table);
    this.wide = make("p", { class: "hs-hint", hidden: true }, "Scroll sideways for the earlier layers.");
    const measure = () => (this.wide.hidden = this.scroll.scrollWidth <= this.scroll.clientWidth + 1);
    onResize(measure, this.table, this.scroll);
    const turn = (/** @type {number} */ by) => () => this.open(this.#start + by);
    this.earlier = smallButton("Earlier tokens", turn(-MAX_ROWS));
    this.later = smallButton("Later tokens", turn(MAX_ROWS));
    this.turning = make("p", { class: "hs-controls" }, this.earlier, this.later);
    this.detail = make("div", { class: "hs-answer-part", "aria-live": "polite" });
    this.element = make("div", { class: "hs-answer-part" }, this.wide, this.scroll, this.turning, this.detail);
    this.table.addEventListener("click", (event) => this.choose(event.target));
    const columns = () => this.#answer?.layers.length ?? 1;
    const choose = (/** @type {number} */ at) =>
      this.selectCell(this.#start + Math.floor(at / columns()), at % columns());
    this.roving = new Roving(this.table, () => [...this.table.querySelectorAll("button")], { columns, choose });
  }

  /**
   * @param {LogitLensAnswer} answer
   * @param {number} position of the selected prediction
   */
  show(answer, position) {
    const isOther = answer !== this.#answer;
    this.#answer = answer;
    if (isOther) {
      this.#cell[1] = answer.layers.length - 1;
      this.#isNew = true;
      this.table.style.setProperty("--readings", String(answer.layers.length));
    }
    if (isOther || position !== this.#cell[0]) this.select(clamp(position, 0, answer.tokens.length - 1));
    else if (this.#ramps !== palette()) this.open(this.#start);
  }

  /** Choose a row and scroll it into view. @param {number} position */
  select(position) {
    const answer = this.#answer;
    if (!answer) return;
    this.#cell[0] = position;
    const isShown = position >= this.#start && position < this.#start + MAX_ROWS && this.table.childElementCount > 0;
    this.open(isShown ? this.#start : windowStart(position, answer.tokens.length));
    this.explain();
    this.reveal(position);
  }

  /**
   * Scroll a row into view and, if there is no room for all layers, the column of the model's own answer.
   * @param {number} position
   */
  reveal(position) {
    // Once the table has a size. Only the table scrolls, so that the page stays where it is.
    requestAnimationFrame(() => {
      const { scroll } = this;
      const top = this.row(position)?.offsetTop ?? 0;
      scroll.scrollTop = clamp(scroll.scrollTop, top - scroll.clientHeight + ROOM_ABOVE, top - ROOM_ABOVE);
      if (this.#isNew) scroll.scrollLeft = scroll.scrollWidth;
      this.#isNew = false;
    });
  }

  /** Show the rows from `start` on. @param {number} start */
  open(start) {
    const answer = this.#answer;
    if (!answer) return;
    const count = answer.tokens.length;
    this.#start = clamp(start, 0, Math.max(0, count - MAX_ROWS));
    this.draw(answer);
    this.turning.hidden = count <= MAX_ROWS;
    this.earlier.disabled = this.#start === 0;
    this.later.disabled = this.#start + MAX_ROWS >= count;
  }

  /** @param {LogitLensAnswer} answer */
  draw({ tokens, layers, decided }) {
    this.#ramps = palette();
    const positions = tokens.slice(this.#start, this.#start + MAX_ROWS).map((_, i) => this.#start + i);
    const rows = positions.map((position) => {
      const token = [visible(tokens[position].text), make("small", {}, position)];
      const when = makeCell(shortName(decided[position]), { class: "hs-decided" });
      const cells = layers.map((_, reading) => this.makeCell(position, reading));
      return makeRow([token, when, ...cells], { "data-position": position });
    });
    fillTable(this.table, {
      name: "The most probable next token after each layer",
      titles: ["after", "settles", ...layers.map((_, reading) => shortName(reading))],
      rows,
    });
    this.mark();
  }

  /** @param {number} position @param {number} reading */
  makeCell(position, reading) {
    const { tokens, layers, decided } = /** @type {LogitLensAnswer} */ (this.#answer);
    const { text, probability } = layers[reading][position];
    const after = `after “${visible(tokens[position].text)}”`;
    const name = `${after}, ${readingName(reading)}: “${visible(text)}”, probability ${exact(probability)}`;
    const button = make("button", { type: "button", tabindex: -1, "aria-label": name, title: name }, visible(text));
    const cell = makeCell(button, { "data-reading": reading });
    palette().looks.paint(cell, Math.round(MAX_RAMP_SHADE * probability));
    cell.classList.toggle("hs-settled", reading >= decided[position]);
    return cell;
  }

  /** @param {number} position @returns {HTMLTableRowElement | null} */
  row(position) {
    return this.table.querySelector(`tr[data-position="${position}"]`);
  }

  /** Outline the chosen cell, which Tab reaches; if it is not shown, Tab reaches the first one. */
  mark() {
    const [position, reading] = this.#cell;
    for (const row of /** @type {NodeListOf<HTMLElement>} */ (this.table.querySelectorAll("[data-position]"))) {
      const isHere = Number(row.dataset.position) === position;
      setFlag(row, "data-here", isHere);
      row.querySelectorAll("button").forEach((button, i) => setFlag(button, "aria-pressed", isHere && i === reading));
    }
    this.roving.update(this.row(position)?.querySelectorAll("button")[reading]);
  }

  /** @param {EventTarget | null} target */
  choose(target) {
    /** @param {string} selector @returns {HTMLElement | null} */
    const around = (selector) => (target instanceof Element ? target.closest(selector) : null);
    const [row, cell] = [around("[data-position]"), around("[data-reading]")];
    if (row && cell) this.selectCell(Number(row.dataset.position), Number(cell.dataset.reading));
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
    this.detail.replaceChildren(make("p", {}, make("b", {}, `${name}. `), words), table);
  }
}
