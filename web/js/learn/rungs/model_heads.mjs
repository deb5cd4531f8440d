// All heads of the model as small pictures, to choose one from.

import { make, ARROWS } from "../../lib/dom.mjs";
import { packedPixels } from "../../lib/drawing/canvas.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { onThemeChange, palette } from "../../lib/drawing/palette.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { exact, fixed, number, clamp } from "../../lib/numbers.mjs";
import { DEFAULTS } from "../../lib/options.mjs";
import { Emitter } from "../../lib/emitter.mjs";
import { HeadWeights } from "../../lib/triangle.mjs";
import { visible, pictureName } from "../../lib/words.mjs";
import { dotProduct, looks } from "../../widgets/arithmetic.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { ask } from "../server.mjs";
import { paragraph } from "../widgets/elements.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Cell, LinkState, MatrixSource, PictureId, Token } from "../../types.js" */

const ROLES = {
  previous_token: { name: "previous token", does: "looks at the previous token" },
  induction: { name: "induction", does: "looks at what followed the same token earlier" },
  first_token: { name: "first token", does: "looks at the first token" },
};

/** @typedef {{ role: keyof typeof ROLES | "", score: number }} Role */

export class HeadTiles {
  /** @type {HTMLButtonElement[][]} */
  #tiles = [];
  /** @type {number[][][]} */
  #thumbnails = [];

  /** @param {(layer: number, head: number) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.grid = make("div", { class: "hl-tiles", role: "group", "aria-label": "All heads" });
    this.said = make("p", { class: "hl-count", role: "status" });
    this.element = make("div", {}, this.grid, this.said);
    onThemeChange(() => this.#paint());
  }

  /** @param {{ thumbnails: number[][][], roles: Role[][], layer: number, head: number }} data */
  update({ thumbnails, roles, layer, head }) {
    const [n_layer, n_head] = [thumbnails.length, thumbnails[0].length];
    if (this.#tiles.length !== n_layer || this.#tiles[0].length !== n_head) this.#build(n_layer, n_head);
    this.#thumbnails = thumbnails;
    this.#tiles.forEach((line, l) =>
      line.forEach((tile, h) => {
        const { role, score } = roles[l][h];
        const name = role ? ROLES[role].name : "";
        const does = role ? `: ${ROLES[role].does}, ${score.toFixed(2)} on average` : "";
        tile.title = `L${l} H${h}${does}`;
        tile.setAttribute("aria-label", tile.title);
        tile.setAttribute("aria-pressed", String(l === layer && h === head));
        tile.lastElementChild?.replaceChildren(name);
      }),
    );
    const { role, score } = roles[layer][head];
    const clear = role
      ? `has a clear role here, ${ROLES[role].name}: it ${ROLES[role].does} (${score.toFixed(2)})`
      : "";
    this.said.textContent = `L${layer} H${head} ${clear || "has no clear role in this text"}.`;
    this.#paint();
  }

  /** @param {number} n_layer @param {number} n_head */
  #build(n_layer, n_head) {
    this.grid.style.setProperty("--heads", String(n_head));
    this.#tiles = Array.from({ length: n_layer }, (_, l) =>
      Array.from({ length: n_head }, (__, h) => {
        const onclick = () => this.choose(l, h);
        return make("button", { type: "button", onclick }, make("canvas"), make("small"));
      }),
    );
    const rows = this.#tiles.flatMap((line, l) => [make("span", { class: "hl-tile-row" }, `L${l}`), ...line]);
    this.grid.replaceChildren(...rows);
  }

  #paint() {
    const { pixels } = palette().looks;
    this.#tiles.forEach((line, l) =>
      line.forEach((tile, h) => {
        const bytes = this.#thumbnails[l]?.[h];
        const canvas = /** @type {HTMLCanvasElement} */ (tile.firstElementChild);
        if (!bytes) return;
        const side = Math.round(Math.sqrt(bytes.length));
        canvas.width = canvas.height = side;
        const image = new ImageData(side, side);
        const target = packedPixels(image);
        bytes.forEach((byte, i) => (target[i] = pixels[Math.round(byte ** 2 / 255)]));
        canvas.getContext("2d")?.putImageData(image, 0, 0);
      }),
    );
  }
}

// The attention weights of one head as a matrix, each cell with its dot product.

export class OpenHead {
  #request = new LatestRequest();
  /** @type {any} */
  #data = null;
  /** @type {() => void} called when a cell is chosen */
  chosen = () => {};

  /** @param {Lesson} lesson */
  constructor(lesson) {
    this.lesson = lesson;
    this.store = new StillStore((cell) => this.#explain(cell));
    this.explanation = make("div", { class: "hl-unfold", "aria-live": "polite" });
    this.stamp = new Stamp(
      "the ladder's causal_by_minus_infinity on the model's queries and keys, against the weights the model used",
      true,
    );
    const matrix = new Matrix(this.store);
    this.elements = [make("div", { class: "hl-real" }, matrix.element, this.explanation), this.stamp.element];
  }

  /** @param {any} data */
  update(data) {
    this.#data = data;
    this.store.show(data);
    this.stamp.show(data.error, data.largest_error);
  }

  /** @param {{ query: number, key: number }} cell */
  async #explain({ query, key }) {
    this.chosen();
    const { layer, head } = this.#data;
    try {
      const body = { ...this.lesson.body, layer, head, query, key };
      const cell = await this.#request.send((signal) => ask("cell", body, signal));
      if (!cell) return;
      const [from, to] = [query, key].map((position) => visible(this.store.tokens[position].text));
      const { score, scale, scaled, weight, model_weight: used, query: left, key: right, products } = cell;
      const softmax =
        `× ${number(scale)} (1 / √${left.length}) = ${number(scaled)}; ` +
        `softmax over the ${query + 1} keys so far gives `;
      // The result comes first: below a long sum it would not be visible.
      this.explanation.replaceChildren(
        paragraph(`Score in L${layer} H${head}: `, ...looks(from, to), ` = ${fixed(score)}`),
        paragraph(softmax, make("b", {}, exact(weight)), `, and the model used ${exact(used)}.`),
        ...dotProduct({
          title: [`The score is a sum of ${left.length} products:`],
          left,
          right,
          products,
          total: score,
          few: 12,
        }),
      );
    } catch (error) {
      this.explanation.textContent = /** @type {Error} */ (error).message;
    }
  }
}

// A long vector as a strip of coloured cells. Pointing at a cell shows its number.

const [COLUMNS, FEW] = [128, 64]; // the most cells in a line, and on a phone
const PHONE = 640; // pixels
const IN_A_ROW = 8; // numbers in a row of the table
const [CELL, LINE] = [8, 15]; // pixels of the canvas
const STRONGEST = 225; // of the 256 steps of a ramp, as in the tables

/** @typedef {(strip: Strip, index: number) => void} Choose */

export class Strip {
  /** @type {number[]} */
  values = [];
  index = 0;
  /** @type {Set<number>} */
  #lit = new Set();
  #isChosen = false;

  /**
   * @param {string} stage as the server knows it
   * @param {string} name
   * @param {Choose} choose
   */
  constructor(stage, name, choose) {
    this.stage = stage;
    this.name = name;
    this.choose = choose;
    this.canvas = make("canvas", { class: "hl-strip", tabindex: 0, role: "slider", "aria-label": name });
    this.said = make("span", { class: "hl-strip-value" });
    this.size = make("span", { class: "hl-axes" });
    this.rows = make("tbody", {});
    const table = make("table", {}, make("caption", { class: "hs-hidden" }, name), this.rows);
    this.table = new TableView(`Show ${name} as table`, () => this.#drawTable(), table);
    const caption = make("figcaption", {}, make("b", {}, name), " ", this.size, " ", this.table.toggle, " ", this.said);
    this.element = make("figure", { class: "hl-figure" }, caption, this.canvas, this.table.element);
    this.canvas.addEventListener(
      "pointermove",
      (event) => event.pointerType === "mouse" && this.#take(this.#at(event)),
    );
    this.canvas.addEventListener("click", (event) => this.#take(this.#at(event)));
    this.canvas.addEventListener("keydown", (event) => this.#move(event));
    onThemeChange(() => this.draw());
  }

  /** @param {number[]} values @param {string} [note] */
  show(values, note = "") {
    this.values = values;
    this.index = clamp(this.index, 0, values.length - 1);
    this.size.textContent = `${values.length} numbers${note ? `, ${note}` : ""}`;
    this.#say();
    this.draw();
    this.table.refresh();
  }

  /** Show the same numbers as a table, each row headed by the index of its first number. */
  #drawTable() {
    const rows = [];
    for (let first = 0; first < this.values.length; first += IN_A_ROW) {
      const cells = this.values.slice(first, first + IN_A_ROW).map((value) => make("td", {}, fixed(value)));
      rows.push(make("tr", {}, make("th", { scope: "row" }, first), ...cells));
    }
    this.rows.replaceChildren(...rows);
  }

  get columns() {
    return Math.min(innerWidth > PHONE ? COLUMNS : FEW, this.values.length);
  }

  /** @param {MouseEvent} event */
  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.columns);
    const line = Math.floor(((event.clientY - box.top) / box.height) * Math.ceil(this.values.length / this.columns));
    return clamp(line * this.columns + clamp(column, 0, this.columns - 1), 0, this.values.length - 1);
  }

  /** @param {number} index */
  #take(index) {
    if (index === this.index && this.#isChosen) return;
    this.index = index;
    this.#say();
    this.choose(this, index);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const move = ARROWS[event.key];
    if (!move) return;
    this.#take(clamp(this.index + move[0] * this.columns + move[1], 0, this.values.length - 1));
    event.preventDefault();
  }

  #say() {
    const value = fixed(this.values[this.index] ?? 0);
    this.said.textContent = `number ${this.index}: ${value}`;
    this.canvas.setAttribute("aria-valuenow", String(this.index));
    this.canvas.setAttribute("aria-valuemin", "0");
    this.canvas.setAttribute("aria-valuemax", String(this.values.length - 1));
    this.canvas.setAttribute("aria-valuetext", this.said.textContent);
  }

  /** Mark the chosen number, or the numbers `lit` behind it. @param {boolean} isChosen @param {number[]} lit */
  mark(isChosen, lit) {
    this.#isChosen = isChosen;
    this.#lit = new Set(lit);
    this.element.classList.toggle("hl-strip-lit", lit.length > 0);
    this.draw();
  }

  draw() {
    const { values, columns, canvas } = this;
    const context = canvas.getContext("2d");
    if (!context || !values.length) return;
    const lines = Math.ceil(values.length / columns);
    Object.assign(canvas, { width: columns * CELL, height: lines * LINE });
    canvas.style.maxWidth = `${columns * CELL}px`;
    const ramps = palette();
    const most = Math.max(...values.map(Math.abs), 1e-9);
    const style = getComputedStyle(canvas);
    values.forEach((value, i) => {
      const [x, y] = [(i % columns) * CELL, Math.floor(i / columns) * LINE];
      const ramp = value < 0 ? ramps.seen : ramps.looks;
      context.fillStyle = ramp.css[Math.round((STRONGEST * Math.abs(value)) / most)];
      context.fillRect(x, y, CELL - 1, LINE - 1);
      const isHere = this.#isChosen && i === this.index;
      if (!isHere && !this.#lit.has(i)) return;
      context.strokeStyle = style.getPropertyValue(isHere ? "--hs-mark" : "--hl-left");
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, CELL - 3, LINE - 3);
    });
  }
}

// The part of the workspace's store that a matrix needs, for a text that does not grow.

/** @typedef {{ query: number, key: number }} WholeCell */

/** @implements {MatrixSource} */
class StillStore extends Emitter {
  view = { options: DEFAULTS };
  weights = new HeadWeights();
  step = null;
  /** @type {Token[]} */
  tokens = [];
  /** @type {PictureId} */
  open = [0, 0];
  /** @type {WholeCell | null} */
  #hover = null;
  /** @type {WholeCell | null} */
  #locked = null;
  #text = { model: "", sha256: "", n_layer: 1, n_head: 1 };

  /** @param {(cell: WholeCell) => void} chosen called when a cell is locked */
  constructor(chosen) {
    super();
    this.chosen = chosen;
  }

  get count() {
    return this.weights.rows;
  }

  get openName() {
    return pictureName(this.open, this.#text);
  }

  get queries() {
    return this.#locked ? [this.#locked.query] : [];
  }

  get focus() {
    return this.#hover ?? this.#locked;
  }

  /** @returns {LinkState} */
  get linkState() {
    const { model, sha256 } = this.#text;
    const ids = this.tokens.map((token) => token.id);
    const locked = this.#locked ? [this.#locked] : [];
    const { open, step } = this;
    const text = { model, sha256, ids, n_prompt: ids.length, head_mask: null, settings: {} };
    return { ...text, open, locked, step, options: DEFAULTS };
  }

  /** @param {Cell | null} cell */
  point(cell) {
    this.#hover = cell && this.#complete(cell);
    this.emit("focus");
  }

  /** @param {Cell | null} cell */
  lock(cell) {
    this.#locked = cell && this.#complete(cell);
    this.emit("focus");
    if (this.#locked) this.chosen(this.#locked);
  }

  /** Show a head that the server has computed. @param {any} data */
  show(data) {
    const { model, sha256, n_layer, n_head } = data;
    this.#text = { model, sha256, n_layer, n_head };
    this.tokens = data.tokens.map((/** @type {string} */ text, /** @type {number} */ i) => {
      return { text, id: data.ids[i], logprob: null };
    });
    this.weights = new HeadWeights();
    this.weights.append(Float32Array.from(data.weights));
    this.open = [data.layer, data.head];
    this.#hover = this.#locked = null; // they pointed at tokens of the previous text
    this.emit("tokens", "weights", "open", "focus");
    const query = data.query ?? this.count - 1;
    this.lock({ query, key: this.weights.strongest(query, Math.min(1, query)) });
  }

  /** @param {Cell} cell @returns {WholeCell} */
  #complete({ query, key }) {
    return { query, key: key ?? this.weights.strongest(query) };
  }
}
