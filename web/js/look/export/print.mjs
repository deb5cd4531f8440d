// Pictures as files: the open head as matrix or lines, all heads, or one step, in a frame with a title and a legend.
// The same code draws PNG and SVG. Sizes are in units of PIXELS pixels.

import { areRectangles, firstQuery, keysOf, sizeOf } from "../../lib/triangle.mjs";
import { canvasOf, monospace, offscreenContext, packedPixels, sansSerif } from "../../lib/drawing/canvas.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale, SCALES, ticksOf } from "../../lib/drawing/scale.mjs";
import { MAX_CELLS, SvgContext } from "./svg_context.mjs";
import { drawAxes, label, labelMargin } from "../../lib/drawing/axes.mjs";
import { ThumbnailPainter, TrianglePainter } from "../../lib/drawing/images.mjs";
import { counted, measured } from "../../lib/numbers.mjs";
import { drawLine, linesOf } from "../panels/lines.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { ORDERS } from "../../lib/options.mjs";

/** @import { ScaleOptions } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { StepRows } from "../panels/step_rows.mjs" */
/** @import { Card, Grid } from "../panels/grid.mjs" */

/** @typedef {OffscreenCanvasRenderingContext2D | SvgContext} PrintContext */

/**
 * @typedef {object} Picture
 * @property {string} title
 * @property {number} width
 * @property {number} height
 * @property {(context: PrintContext) => void} draw
 */

const PIXELS = 2;
const PAD = 24;
const HEAD_HEIGHT = 74; // height of the title's lines
const FOOT_HEIGHT = 62; // height of the legend
const MIN_WIDTH = 460;
const INK = "#1b2430";
const SOFT = "#566172";

/** The colours of files: always light, whatever the theme of the page. */
const ramp = () => palette("light").looks;

/**
 * A picture inside its frame.
 * @param {object} picture
 * @param {string} picture.title
 * @param {ScaleOptions} picture.options
 * @param {number} [picture.floor] of a logarithmic scale
 * @param {string[]} picture.notes
 * @param {number} picture.width without the frame
 * @param {number} picture.height
 * @param {(context: PrintContext, left: number, top: number) => void} picture.draw fills it
 * @returns {Picture}
 */
function frame({ title, options, floor, notes, width, height, draw }) {
  const fullWidth = Math.max(width, MIN_WIDTH) + 2 * PAD;
  const fullHeight = height + HEAD_HEIGHT + FOOT_HEIGHT + 2 * PAD;
  return {
    title,
    width: fullWidth,
    height: fullHeight,
    draw(context) {
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, fullWidth, fullHeight);
      context.textBaseline = "middle";
      context.textAlign = "left";
      context.fillStyle = INK;
      context.font = sansSerif(26, 600);
      context.fillText(title, PAD, PAD + 16);
      context.fillStyle = SOFT;
      context.font = sansSerif(14);
      context.fillText([...notes, ...describeColours(options)].join(", "), PAD, PAD + 46);
      draw(context, PAD, PAD + HEAD_HEIGHT);
      legend(context, options, floor, PAD, PAD + HEAD_HEIGHT + height + 20);
    },
  };
}

/** How weights become colours, in words. @param {ScaleOptions} options */
function describeColours({ scale, hideFirst, threshold }) {
  const words = [`colours: ${SCALES[scale].name}`];
  if (hideFirst) words.push("first token hidden");
  if (threshold) words.push(`weights below ${threshold.toFixed(4)} not drawn`);
  return words;
}

/**
 * @param {PrintContext} context
 * @param {ScaleOptions} options
 * @param {number | undefined} floor
 * @param {number} left
 * @param {number} top
 */
function legend(context, { scale }, floor, left, top) {
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = SOFT;
  context.font = sansSerif(14);
  const title = scale === "row" ? "of the row’s largest weight" : "attention weight";
  context.fillText(title, left, top + 7);
  const [start, width] = [left + Math.ceil(context.measureText(title).width) + 20, 256];
  const image = new ImageData(256, 1);
  packedPixels(image).set(ramp().pixels);
  context.drawImage(canvasOf(image), start, top, width, 14);
  context.textAlign = "center";
  context.font = sansSerif(12);
  for (const [place, text] of ticksOf(scale, floor)) {
    const x = start + width * place;
    context.fillRect(x - 0.5, top + 14, 1, 4);
    context.fillText(text, x, top + 27);
  }
}

/** @param {Picture} picture */
export async function toPng({ width, height, draw }) {
  const context = offscreenContext(Math.ceil(width * PIXELS), Math.ceil(height * PIXELS));
  context.scale(PIXELS, PIXELS);
  context.imageSmoothingEnabled = false;
  draw(context);
  return context.canvas.convertToBlob({ type: "image/png" });
}

/** @param {Picture} picture */
export function toSvg({ title, width, height, draw }) {
  let context = new SvgContext(width, height);
  draw(context);
  if (context.cells > MAX_CELLS) {
    context = new SvgContext(width, height, true);
    draw(context);
  }
  return new Blob([context.text(title)], { type: "image/svg+xml" });
}

const MIN_SIDE = 2400; // pixels of a side
const MAX_SIDE = 4000; // pixels to which a side may grow so that each row is labelled with its token
const MIN_LABELLED_CELL = 12; // pixels that a cell needs for its token
const MAX_LABEL = 18; // units of a label
const NAME = 26; // room for the name of an axis

/** Whole pixels for each cell, so that all have the same size. @param {number} n */
function cellPixels(n) {
  const least = Math.ceil(MIN_SIDE / n);
  return n * MIN_LABELLED_CELL <= MAX_SIDE ? Math.max(least, MIN_LABELLED_CELL) : least;
}

/** @param {ShownText} store */
export function headPicture(store) {
  const { tokens, count: n, pointer, openName } = store;
  const { options } = store.view;
  const { rows, columns } = sizeOf(n);
  const pixels = cellPixels(Math.max(rows, columns));
  const cell = pixels / PIXELS;
  const size = pixels < MIN_LABELLED_CELL ? MAX_LABEL : Math.min(MAX_LABEL, 0.9 * cell);
  const texts = pixels >= MIN_LABELLED_CELL;
  const ruler = offscreenContext(1, 1);
  const margin = texts ? labelMargin(ruler, tokens, n, size) : 3 * MAX_LABEL;
  return frame({
    title: `${pointer.model}, ${openName}`,
    options,
    floor: store.weights.floor,
    notes: [`attention weights of ${counted(n, "token")}`],
    width: NAME + margin + columns * cell,
    height: NAME + margin + rows * cell,
    draw(context, left, top) {
      context.font = sansSerif(16);
      context.fillStyle = SOFT;
      context.fillText("looks at that token (key) →", left + NAME + margin, top + NAME / 2);
      context.save();
      context.translate(left + NAME / 2, top + NAME + margin);
      context.rotate(Math.PI / 2);
      context.fillText("this token (query) →", 0, 0);
      context.restore();
      context.save();
      context.translate(left + NAME, top + NAME);
      const image = new TrianglePainter().paint(store.weights, n, Scale.of(store), ramp());
      context.drawImage(image, margin, margin, columns * cell, rows * cell);
      drawAxes(context, tokens, n, { margin, cell, high: cell, texts, size }, INK);
      context.restore();
    },
  });
}

const LINE_ROW = 18; // units of a token
const [FROM, TO] = [190, 410]; // where the lines start and end
const LINES_WIDTH = 600;
const TITLES = 30;

/** @param {ShownText} store */
export function linesPicture(store) {
  const { tokens, count: n, pointer, openName } = store;
  const { queries } = store.selection;
  const { rows, columns } = sizeOf(n);
  return frame({
    title: `${pointer.model}, ${openName}`,
    options: store.view.options,
    floor: store.weights.floor,
    notes: [`attention weights of ${counted(n, "token")} as lines`],
    width: LINES_WIDTH,
    height: TITLES + Math.max(rows, columns) * LINE_ROW,
    draw(context, left, top) {
      /** @param {number} i */
      const y = (i) => top + TITLES + (i + 0.5) * LINE_ROW;
      context.fillStyle = SOFT;
      context.font = sansSerif(14);
      context.textAlign = "right";
      context.fillText("this token (query)", left + FROM - 10, top + 10);
      context.textAlign = "left";
      context.fillText("looks at that token (key)", left + TO + 10, top + 10);
      context.strokeStyle = ramp().css[190];
      context.lineWidth = 2;
      for (const { query, key, strength } of linesOf(store)) {
        drawLine(context, left + FROM, y(query - firstQuery()), left + TO, y(key), strength);
      }
      context.globalAlpha = 1;
      context.fillStyle = INK;
      for (let i = 0; i < rows; i++) {
        const query = firstQuery() + i;
        context.font = monospace(12, queries.includes(query) ? 700 : 400);
        context.textAlign = "right";
        context.fillText(label(tokens[query].text), left + FROM - 10, y(i));
        context.textAlign = "left";
        context.fillText(String(query), left, y(i));
      }
      for (let key = 0; key < columns; key++) {
        context.font = monospace(12, !areRectangles() && queries.includes(key) ? 700 : 400);
        context.fillText(label(tokens[key].text), left + TO + 10, y(key));
      }
    },
  });
}

const STEP_WIDTH = 1200; // units
const SIDE = 64; // units of the heads' names
const TOP = 26; // units of the keys
const [ROW, GAP] = [20, 8]; // units of a strip, and between two layers
const LABELLED_KEY = 10; // units that a key needs for its token above it

/**
 * @param {ShownText} store
 * @param {StepRows} rows
 */
export function stepPicture(store, rows) {
  const n = keysOf(rows.query ?? 0);
  const { n_layer, n_head } = store.pointer;
  const scale = Scale.of(store);
  const cell = Math.max(1, Math.floor((PIXELS * (STEP_WIDTH - SIDE)) / n)) / PIXELS; // whole pixels
  const colours = ramp().pixels;
  return frame({
    title: `${store.pointer.model} · ${rows.title}`,
    options: store.view.options,
    floor: store.weights.floor,
    notes: ["one strip per head, keys from left to right"],
    width: SIDE + n * cell,
    height: TOP + n_layer * n_head * ROW + (n_layer - 1) * GAP,
    draw(context, left, top) {
      context.font = monospace(12);
      context.fillStyle = INK;
      context.textAlign = "center";
      const every = cell >= LABELLED_KEY ? 1 : Math.ceil(36 / cell);
      for (let key = 0; key < n; key += every) {
        const text = cell >= LABELLED_KEY ? label(store.tokens[key].text).slice(0, Math.floor(cell / 7)) : String(key);
        context.fillText(text, left + SIDE + (key + 0.5) * cell, top + 10);
      }
      context.textAlign = "left";
      for (let head = 0; head < n_layer * n_head; head++) {
        const up = top + TOP + head * ROW + Math.floor(head / n_head) * GAP;
        context.fillText(rows.name(head), left, up + ROW / 2);
        const row = rows.row(head);
        const largest = scale.largest(row, 0, n);
        const image = new ImageData(n, 1);
        packedPixels(image).set(Array.from(row, (weight, key) => colours[scale.shade(weight, key, largest)]));
        context.drawImage(canvasOf(image), left + SIDE, up, n * cell, ROW - 2);
      }
    },
  });
}

const MAX_GRID = 4000; // pixels across
const MAX_TILE = 240; // pixels across of one thumbnail
const TILE_GAP = 12; // pixels between them
const LAYERS = 46; // units of the layers' names
const COLUMNS = 24; // units of the heads' names
const TAG = 32; // pixels for the word above a head that has a role
const CAPTION = 40; // pixels for the text below a head when heads are sorted
const FAINT_OPACITY = 0.22; // opacity of heads outside the chosen range, as on the page

export class GridPicture {
  /**
   * @param {ShownText} store
   * @param {Grid} grid
   */
  constructor(store, grid) {
    this.store = store;
    this.grid = grid;
    const { pointer } = store;
    this.pointer = pointer;
    const { options } = store.view;
    const { sorted } = options;
    this.options = options;
    this.sorted = sorted;
    this.summaries = grid.hasSummaries;
    const { n_layer } = pointer;
    this.columns = this.sorted ? Math.max(1, Math.ceil(Math.sqrt(1.6 * grid.shown.length))) : grid.tableColumns;
    this.rows = this.sorted ? Math.ceil(grid.shown.length / this.columns) : n_layer + (this.summaries ? 1 : 0);
    const { pixels: colours } = ramp();
    this.painter = new ThumbnailPainter(
      store.data.thumbnails,
      new Scale(store.view.options),
      colours,
      Infinity,
      store.selection.step ?? Infinity,
    );
    const target = Math.min(MAX_TILE, Math.floor(MAX_GRID / this.columns) - TILE_GAP);
    this.pixels = this.painter.side * Math.max(1, Math.floor(target / Math.max(this.painter.side, 1)));
    this.across = this.pixels + TILE_GAP;
    this.down = TAG + this.pixels + TILE_GAP + (sorted ? CAPTION : 0);
    this.side = sorted ? 0 : LAYERS;
    this.top = sorted ? 0 : COLUMNS;
    this.metric = METRICS[this.options.metric];
    this.order = this.sorted
      ? `heads by ${this.metric.name}, ${ORDERS[this.sorted]}`
      : "rows are layers, columns heads";
  }

  picture() {
    return frame({
      title: `${this.pointer.model} · ${this.sorted ? counted(this.grid.shown.length, "head") : "all heads"}`,
      options: this.options,
      notes: [`attention weights of ${counted(this.store.rows, "token")}`, this.order],
      width: this.side + (this.columns * this.across) / PIXELS,
      height: this.top + (this.rows * this.down) / PIXELS,
      draw: (context, left, up) => {
        this.paintAll(context, left + this.side, up + this.top);
        context.textBaseline = "middle";
        this.writeWords(context, left + this.side, up + this.top);
        if (this.sorted) this.writeCaptions(context, left, up);
        else this.writeNames(context, left, up);
      },
    });
  }

  /**
   * The row and the column of a card.
   * @param {Card} card
   * @param {number} i
   */
  cellOf(card, i) {
    return this.sorted ? [Math.floor(i / this.columns), i % this.columns] : card.picture;
  }

  /**
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  paintAll(context, left, up) {
    const small = offscreenContext(this.painter.side, this.painter.side);
    for (const [i, card] of this.grid.shown.entries()) {
      const [row, column] = this.cellOf(card, i);
      small.putImageData(this.painter.paint(this.store.data.index(card.picture)), 0, 0);
      context.globalAlpha = card.filtered ? FAINT_OPACITY : 1;
      const [x, y, size] = [column * this.across, row * this.down + TAG, this.pixels].map((each) => each / PIXELS);
      context.drawImage(small.canvas, left + x, up + y, size, size);
    }
    context.globalAlpha = 1;
  }

  /**
   * What heads with a role do, above their pictures.
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  writeWords(context, left, up) {
    context.textAlign = "left";
    context.fillStyle = INK;
    context.font = sansSerif(12);
    for (const [i, card] of this.grid.shown.entries()) {
      const [row, column] = this.cellOf(card, i);
      if (card.word)
        context.fillText(card.word, left + (column * this.across) / PIXELS, up + (row * this.down + TAG / 2) / PIXELS);
    }
  }

  /**
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  writeNames(context, left, up) {
    const { n_layer, n_head } = this.pointer;
    context.fillStyle = INK;
    context.font = monospace(Math.min(14, this.across / PIXELS / 4));
    context.textAlign = "center";
    /** @param {number} column */
    const middle = (column) => (column * this.across + this.pixels / 2) / PIXELS;
    /** @param {number} row */
    const height = (row) => (row * this.down + TAG + this.pixels / 2) / PIXELS;
    const heads = Array.from({ length: n_head }, (_, head) => `H${head}`);
    for (const [i, name] of [...heads, ...(this.summaries ? ["mean", "rollout"] : [])].entries()) {
      context.fillText(name, left + this.side + middle(i), up + this.top / 2);
    }
    context.textAlign = "left";
    for (let layer = 0; layer < n_layer; layer++) context.fillText(`L${layer}`, left, up + this.top + height(layer));
    if (!this.summaries) return;
    context.textAlign = "right";
    context.fillText(
      "mean of all heads",
      left + this.side + (n_head * this.across) / PIXELS - 8,
      up + this.top + height(n_layer),
    );
  }

  /**
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  writeCaptions(context, left, up) {
    for (const [i, card] of this.grid.shown.entries()) {
      const [row, column] = this.cellOf(card, i);
      const [x, y] = [left + (column * this.across) / PIXELS, up + (row * this.down + TAG + this.pixels) / PIXELS + 9];
      context.textAlign = "left";
      context.fillStyle = INK;
      context.font = monospace(11);
      context.fillText(card.name, x, y);
      context.textAlign = "right";
      context.fillStyle = SOFT;
      context.font = sansSerif(11);
      context.fillText(measured(card.value, this.metric), x + this.pixels / PIXELS, y);
    }
  }
}
