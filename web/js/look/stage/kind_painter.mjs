// Where heads look, in the colours of what they do: the more weight, the more ink, on the ground of the page.

import { isStill } from "../../lib/dom.mjs";
import { context2d, offscreenContext } from "../../lib/drawing/canvas.mjs";
import { ThumbnailPainter } from "../../lib/drawing/images.mjs";
import { parseHex } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";

/** @import { Thumbnails } from "../../lib/drawing/thumbnails.mjs" */
/** @import { Kind } from "./gains.mjs" */

/** @typedef {Kind | "more" | "less"} Ink of a role, or of a number for or against */
/** @typedef {{ x: number, y: number, width: number, height: number }} Place in a canvas */

const SCALE = new Scale({ scale: "sqrt", threshold: 0, hideFirst: false });
const FAINT = 0.06; // of the darkest shade: what is fainter has no ink
const BLEND = 450; // milliseconds
const CORNER = 4; // radius of a tile in CSS pixels

/** 256 shades of a colour, from none to all of its ink. @param {string} colour as #rrggbb */
function inksOf(colour) {
  const [red, green, blue] = parseHex(colour);
  return Uint32Array.from({ length: 256 }, (_, shade) => {
    const value = shade / 255;
    const alpha = value < FAINT ? 0 : Math.min(255, Math.round(255 * (value ** 1.25 + 0.02)));
    return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

/** @type {Map<string, string>} by theme and name: to ask for a style is slow */
const colours = new Map();
/** @type {Map<string, Uint32Array>} by colour */
const inks = new Map();

/** @param {string} name @param {string} theme */
function colourOf(name, theme) {
  const key = `${theme} ${name}`;
  const known = colours.get(key) ?? getComputedStyle(document.body).getPropertyValue(`--hs-${name}`);
  colours.set(key, known);
  return known;
}

/** @param {string} colour */
function inksFor(colour) {
  const known = inks.get(colour) ?? inksOf(colour);
  inks.set(colour, known);
  return known;
}

/** @type {OffscreenCanvasRenderingContext2D | null} of one picture, a pixel for each cell */
let small = null;

/** @param {ImageData} image */
function inPixels(image) {
  const { width } = image;
  small ??= offscreenContext(width, width);
  if (small.canvas.width !== width) small.canvas.width = small.canvas.height = width;
  small.putImageData(image, 0, 0);
  return small.canvas;
}

export class KindPainter {
  /** @type {Map<Ink, ThumbnailPainter>} */
  #painters = new Map();

  /**
   * @param {Thumbnails} thumbnails
   * @param {number} rows tokens
   * @param {number} room pixels of a side
   */
  constructor(thumbnails, rows, room) {
    this.thumbnails = thumbnails;
    this.rows = rows;
    this.room = room;
    this.theme = document.body.classList.contains("dark") ? "dark" : "light";
  }

  /** @param {Ink} kind @returns {ThumbnailPainter | null} null while there is nothing to paint */
  #painterOf(kind) {
    const { thumbnails, rows, room } = this;
    if (!thumbnails.side || rows < 1) return null;
    const painter =
      this.#painters.get(kind) ??
      new ThumbnailPainter(thumbnails, SCALE, inksFor(colourOf(kind, this.theme)), room, rows, rows, true);
    this.#painters.set(kind, painter);
    return painter;
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number} picture its number
   * @param {Ink} kind
   */
  paint(canvas, picture, kind) {
    const painter = this.#painterOf(kind);
    if (!painter) return;
    if (canvas.width !== painter.side) canvas.width = canvas.height = painter.side;
    context2d(canvas).putImageData(painter.paint(picture), 0, 0);
  }

  /**
   * Paint a picture into its place in the field, on the ground of a tile.
   * @param {CanvasRenderingContext2D} context
   * @param {number} picture its number
   * @param {Ink} kind
   * @param {Place} place
   */
  paintAt(context, picture, kind, { x, y, width, height }) {
    context.save();
    context.beginPath();
    context.roundRect(x, y, width, height, CORNER);
    context.clip();
    context.fillStyle = colourOf("well", this.theme);
    context.fillRect(x, y, width, height);
    const painter = this.#painterOf(kind);
    if (painter) {
      context.imageSmoothingEnabled = false;
      context.drawImage(inPixels(painter.paint(picture)), x, y, width, height);
    }
    context.restore();
  }
}

/** Let what a canvas shows fade out, while what is painted next fades in. @param {HTMLCanvasElement} canvas */
export function blend(canvas) {
  if (isStill() || !canvas.width) return;
  const before = /** @type {HTMLCanvasElement} */ (canvas.cloneNode());
  context2d(before).drawImage(canvas, 0, 0);
  canvas.after(before);
  const { opacity } = getComputedStyle(canvas);
  canvas.animate({ opacity: ["0", opacity] }, BLEND);
  void before.animate({ opacity: [opacity, "0"] }, BLEND).finished.finally(() => before.remove());
}
