// One thumbnail as pixels, by the same scale as the large picture.

import { tile } from "../thumbnails.mjs";
import { packedPixels } from "./canvas.mjs";

/** @import { Thumbnails } from "../thumbnails.mjs" */
/** @import { Scale } from "./scale.mjs" */

/** The weight that a byte of a thumbnail encodes. @param {number} byte */
const weightOf = (byte) => (byte / 255) ** 2;

/** The step of each of the 256 bytes of a thumbnail, on scales that do not depend on the row. @param {Scale} scale */
function lookup(scale) {
  return Uint8Array.from({ length: 256 }, (_, byte) => scale.step(weightOf(byte), scale.firstKey, 1));
}

/** A pixel that lets the page show through: of a row after the step that is looked at. @param {number} pixel */
const faded = (pixel) => ((pixel & 0x00ffffff) | 0x40000000) >>> 0;

/** Draws the pictures of one set of thumbnails. */
export class ThumbnailPainter {
  /**
   * @param {Thumbnails} thumbnails
   * @param {Scale} scale
   * @param {Uint32Array} pixels of the colour ramp
   * @param {Uint32Array | null} mirrored of the ramp for the other half of the square, which is empty without: in the
   *   row of a token what looks at it later
   * @param {number} room pixels that a side may have
   * @param {number} [rows] the tokens drawn in full colour
   * @param {number} [drawn] and with those after them, which are faded
   * @param {boolean} [isGrowing] whether the picture is of what is drawn alone, so that it fills its tile
   */
  constructor(thumbnails, scale, pixels, mirrored, room, rows = Infinity, drawn = rows, isGrowing = false) {
    this.thumbnails = thumbnails;
    this.scale = scale;
    this.pixels = pixels;
    this.mirrored = mirrored;
    this.table = lookup(scale);
    // No finer than the screen: a browser that shrinks a picture drops lines.
    this.factor = Math.max(1, Math.ceil((thumbnails.side - 1) / Math.max(room - 1, 1)));
    this.whole = thumbnails.side ? tile(thumbnails.side - 1, this.factor) + 1 : 0; // cells of a side
    const sideOf = (/** @type {number} */ count) =>
      Math.min(this.whole, tile(Math.max(count - 1, 0), thumbnails.factor * this.factor) + 1);
    this.shown = sideOf(rows);
    this.drawn = sideOf(drawn);
    this.side = isGrowing ? this.drawn : this.whole;
  }

  /** The picture, `side` x `side` pixels. @param {number} picture */
  paint(picture) {
    const { side, whole, pixels, mirrored, scale, table } = this;
    const image = new ImageData(side, side);
    const target = packedPixels(image);
    const bytes = this.thumbnails.pooled(picture, this.factor, whole);
    for (let row = 0; row < this.drawn; row++) {
      const [start, line] = [row * whole, row * side];
      const isLater = row >= this.shown;
      let largest = 0; // byte of this row
      if (scale.perRow)
        for (let key = scale.firstKey; key <= row; key++) largest = Math.max(largest, bytes[start + key]);
      for (let key = 0; key <= row; key++) {
        const byte = bytes[start + key];
        const weighted = scale.perRow ? scale.step(weightOf(byte), key, weightOf(largest)) : table[byte];
        const step = key < scale.firstKey ? 0 : weighted;
        target[line + key] = isLater ? faded(pixels[step]) : pixels[step];
        if (mirrored && key < row) target[key * side + row] = isLater ? faded(mirrored[step]) : mirrored[step];
      }
    }
    return image;
  }
}
