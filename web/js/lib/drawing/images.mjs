// Pictures as images: exact weights, signed differences, and thumbnails.

import { firstTile, tile } from "./thumbnails.mjs";
import { areRectangles, cells, firstQuery, keysOf, sizeOf } from "../triangle.mjs";
import { canvasOf, packedPixels } from "./canvas.mjs";
import { clamp } from "../numbers.mjs";
import { position } from "./scale.mjs";

/** @import { Ramp } from "./palette.mjs" */
/** @import { Scale } from "./scale.mjs" */
/** @import { ScaleOptions } from "../../types.js" */
/** @import { Thumbnails } from "./thumbnails.mjs" */
/** @import { HeadWeights } from "../triangle.mjs" */

/** Paints the picture of a head. While the text grows, it looks only at the new rows. */
export class TrianglePainter {
  /** @type {HeadWeights | null} */
  #weights = null;
  #key = ""; // of the scale and the factor
  #rows = 0; // that the shades include
  #shades = new Uint8Array(0); // on the ramp, of the pixels of each row

  /**
   * One pixel per cell; with factors, the largest of `factor` x `down` cells. A triangle has the same factor both ways.
   * @param {HeadWeights} weights
   * @param {number} n rows
   * @param {Scale} scale
   * @param {Ramp} ramp
   */
  paint(weights, n, scale, ramp, factor = 1, down = factor) {
    if (areRectangles()) return paintRectangle(weights, n, scale, ramp, factor, down);
    const side = tile(n - 1, factor) + 1;
    this.#extend(weights, n, scale, factor);
    const image = new ImageData(side, side);
    const target = packedPixels(image);
    for (let row = 0; row < side; row++) {
      const [from, end] = [cells(row), keysOf(row, side)];
      const first = firstTile(row, factor, weights.window);
      for (let key = first; key < end; key++) target[row * side + key] = ramp.pixels[this.#shades[from + key]];
    }
    return canvasOf(image);
  }

  /** @param {HeadWeights} weights @param {number} n @param {Scale} scale @param {number} factor */
  #extend(weights, n, scale, factor) {
    const key = `${scale.key} ${factor}`;
    const isSame = weights === this.#weights && key === this.#key && n >= this.#rows;
    if (!isSame) [this.#weights, this.#key, this.#rows] = [weights, key, 0];
    const before = this.#shades;
    const used = isSame ? before.length : 0;
    this.#shades = new Uint8Array(Math.max(cells(tile(n - 1, factor) + 1), used));
    this.#shades.set(before.subarray(0, used));
    const { values } = weights;
    for (; this.#rows < n; this.#rows++) {
      const query = this.#rows;
      const from = cells(query);
      const row = cells(tile(query, factor));
      const end = keysOf(query);
      const largest = scale.largest(values, from, end);
      for (let at = 0; at < end; at++) {
        const pixel = row + tile(at, factor);
        const shade = scale.shade(values[from + at], at, largest);
        if (shade > this.#shades[pixel]) this.#shades[pixel] = shade;
      }
    }
  }
}

/**
 * @param {HeadWeights} weights
 * @param {number} n tokens
 * @param {Scale} scale
 * @param {Ramp} ramp
 * @param {number} across keys in a pixel
 * @param {number} down queries in a pixel
 */
function paintRectangle(weights, n, scale, ramp, across, down) {
  const size = sizeOf(n);
  const columns = tile(size.columns - 1, across) + 1;
  const image = new ImageData(columns, tile(size.rows - 1, down) + 1);
  const shades = new Uint8Array(image.width * image.height);
  for (let i = 0; i < size.rows; i++) {
    const row = weights.row(firstQuery() + i);
    const largest = scale.largest(row, 0, row.length);
    for (let key = 0; key < row.length; key++) {
      const pixel = tile(i, down) * columns + tile(key, across);
      shades[pixel] = Math.max(shades[pixel], scale.shade(row[key], key, largest));
    }
  }
  packedPixels(image).set(Uint32Array.from(shades, (shade) => ramp.pixels[shade]));
  return canvasOf(image);
}

/**
 * The shade of a difference on a ramp from -limit to limit.
 * @param {number} difference
 * @param {number} limit
 * @param {ScaleOptions} options
 */
function differenceShade(difference, limit, { scale, threshold }) {
  if (Math.abs(difference) < threshold) return 128;
  const part = Math.sign(difference) * position(scale, Math.abs(difference) / limit);
  return clamp(Math.round(127.5 + 127.5 * part), 0, 255);
}

/**
 * One pixel per cell; with a `factor`, the cell of `factor` x `factor` that differs most. NaN has its own colour.
 * @param {Float32Array} values
 * @param {number} n rows
 * @param {object} looks
 * @param {Ramp} looks.ramp
 * @param {number} looks.limit the difference at the end of the ramp
 * @param {ScaleOptions} looks.options
 * @param {number} looks.unknown a packed colour
 * @param {number} [looks.factor]
 */
export function paintDifference(values, n, { ramp, limit, options, unknown, factor = 1 }) {
  const side = tile(n - 1, factor) + 1;
  const image = new ImageData(side, side);
  const target = packedPixels(image);
  const most = new Float32Array(side * side).fill(-1);
  for (let query = 0; query < n; query++) {
    for (let key = 0; key <= query; key++) {
      const pixel = tile(query, factor) * side + tile(key, factor);
      const value = options.hideFirst && key === 0 ? 0 : values[cells(query) + key];
      const size = Number.isNaN(value) ? -0.5 : Math.abs(value);
      if (size <= most[pixel]) continue;
      most[pixel] = size;
      target[pixel] = Number.isNaN(value) ? unknown : ramp.pixels[differenceShade(value, limit, options)];
    }
  }
  return canvasOf(image);
}

/** The weight that a byte of a thumbnail encodes. @param {number} byte */
export const weightOf = (byte) => (byte / 255) ** 2;

/** The shade of each of the 256 bytes of a thumbnail, on scales that do not depend on the row. @param {Scale} scale */
function lookup(scale) {
  return Uint8Array.from({ length: 256 }, (_, byte) => scale.shade(weightOf(byte), scale.firstKey, 1));
}

/** A pixel that lets the page show through, for rows after the selected step. @param {number} pixel */
const faded = (pixel) => ((pixel & 0x00ffffff) | 0x40000000) >>> 0;

/** Draws the pictures of one set of thumbnails. */
export class ThumbnailPainter {
  /**
   * @param {Thumbnails} thumbnails
   * @param {Scale} scale
   * @param {Uint32Array} pixels of the colour ramp
   * @param {number} room the most pixels that a side may have
   * @param {number} [rows] the tokens drawn in full colour
   * @param {number} [drawn] and those after them, which are faded
   * @param {boolean} [isGrowing] whether the picture shows only what is drawn, and so fills its tile
   */
  constructor(thumbnails, scale, pixels, room, rows = Infinity, drawn = rows, isGrowing = false) {
    this.thumbnails = thumbnails;
    this.scale = scale;
    this.pixels = pixels;
    this.table = lookup(scale);
    // No finer than the screen: a browser that shrinks a picture drops lines.
    this.factor = Math.max(1, Math.ceil((thumbnails.side - 1) / Math.max(room - 1, 1)));
    this.whole = thumbnails.side ? tile(thumbnails.side - 1, this.factor) + 1 : 0; // cells of a side
    const sideOf = (/** @type {number} */ count) =>
      Math.min(this.whole, tile(Math.max(count - 1, 0), thumbnails.factor * this.factor) + 1);
    this.shown = sideOf(rows);
    this.drawn = sideOf(drawn);
    this.side = isGrowing ? this.drawn : this.whole;
    this.image = new ImageData(Math.max(this.side, 1), Math.max(this.side, 1));
  }

  /** The picture, `side` x `side` pixels, until the next one is painted. @param {number} picture */
  paint(picture) {
    const { side, whole, pixels, scale, table, image } = this;
    const target = packedPixels(image);
    const bytes = this.thumbnails.pooled(picture, this.factor, whole);
    const [factor, window] = [this.factor * this.thumbnails.factor, this.thumbnails.windowOf(picture)];
    for (let row = 0; row < this.drawn; row++) {
      const [start, line] = [row * whole, row * side];
      const isLater = row >= this.shown;
      const [end, wide] = [keysOf(row, side), keysOf(row, whole)];
      let largest = 0; // byte of this row
      if (scale.perRow)
        for (let key = scale.firstKey; key < wide; key++) largest = Math.max(largest, bytes[start + key]);
      const first = firstTile(row, factor, window);
      target.fill(0, line, line + first);
      for (let key = first; key < end; key++) {
        const byte = bytes[start + key];
        const weighted = scale.perRow ? scale.shade(weightOf(byte), key, weightOf(largest)) : table[byte];
        const shade = key < scale.firstKey ? 0 : weighted;
        target[line + key] = isLater ? faded(pixels[shade]) : pixels[shade];
      }
    }
    return image;
  }
}
