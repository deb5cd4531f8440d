// Where heads look, in the colours of what they do: the more weight, the more ink, on the ground of the page.

import { isStill } from "../../lib/dom.mjs";
import { context2d } from "../../lib/drawing/canvas.mjs";
import { ThumbnailPainter } from "../../lib/drawing/images.mjs";
import { parseHex } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";

/** @import { Thumbnails } from "../../lib/drawing/thumbnails.mjs" */
/** @import { Kind } from "./gains.mjs" */

/** @typedef {Kind | "more" | "less"} Ink of a role, or of a number for or against */

const SCALE = new Scale({ scale: "sqrt", threshold: 0, hideFirst: false });
const FAINT = 0.06; // of the darkest shade: what is fainter has no ink
const BLEND = 450; // milliseconds

/** 256 shades of a colour, from none to all of its ink. @param {string} colour as #rrggbb */
function inksOf(colour) {
  const [red, green, blue] = parseHex(colour);
  return Uint32Array.from({ length: 256 }, (_, shade) => {
    const value = shade / 255;
    const alpha = value < FAINT ? 0 : Math.min(255, Math.round(255 * (value ** 1.25 + 0.02)));
    return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
}

/** @type {Map<string, Uint32Array>} by theme and kind: to ask for a style is slow */
const inks = new Map();

/** @param {Ink} kind @param {string} theme */
function inksFor(kind, theme) {
  const key = `${theme} ${kind}`;
  const known = inks.get(key) ?? inksOf(getComputedStyle(document.body).getPropertyValue(`--hs-${kind}`));
  inks.set(key, known);
  return known;
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

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {number} picture its number
   * @param {Ink} kind
   */
  paint(canvas, picture, kind) {
    const { thumbnails, rows, room } = this;
    if (!thumbnails.side || rows < 1) return;
    const painter =
      this.#painters.get(kind) ??
      new ThumbnailPainter(thumbnails, SCALE, inksFor(kind, this.theme), room, rows, rows, true);
    this.#painters.set(kind, painter);
    if (canvas.width !== painter.side) canvas.width = canvas.height = painter.side;
    context2d(canvas).putImageData(painter.paint(picture), 0, 0);
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
