// One thumbnail as pixels, by the same scale as the large picture.

import { tile } from "./triangle.mjs";

/** A step for each of the 256 bytes a thumbnail cell can have, on scales that need no more than the weight. */
function lookup(scale) {
  return Uint8Array.from({ length: 256 }, (_, byte) => scale.step((byte / 255) ** 2, scale.from, 1));
}

/** Draws pictures of one set of thumbnails; `rows` limits them to the first so many tokens. */
export class ThumbnailPainter {
  constructor(thumbnails, scale, pixels, room, rows = Infinity) {
    this.thumbnails = thumbnails;
    this.scale = scale;
    this.pixels = pixels;
    this.table = lookup(scale);
    // No finer than the screen: a browser that shrinks a picture drops lines.
    this.factor = Math.max(1, Math.ceil((thumbnails.side - 1) / Math.max(room - 1, 1)));
    this.side = thumbnails.side ? tile(thumbnails.side - 1, this.factor) + 1 : 0;
    this.shown = Math.min(this.side, tile(Math.max(rows - 1, 0), thumbnails.factor * this.factor) + 1);
  }

  /** The picture as an ImageData of `side` x `side`. */
  paint(picture) {
    const { side, pixels, scale, table } = this;
    const image = new ImageData(side, side);
    const target = new Uint32Array(image.data.buffer);
    const bytes = this.thumbnails.pooled(picture, this.factor, side);
    for (let row = 0; row < this.shown; row++) {
      const start = row * side;
      if (scale.perRow) {
        let most = 0;
        for (let key = scale.from; key <= row; key++) most = Math.max(most, bytes[start + key]);
        for (let key = 0; key <= row; key++) {
          target[start + key] = pixels[scale.step((bytes[start + key] / 255) ** 2, key, (most / 255) ** 2)];
        }
      } else {
        for (let key = 0; key <= row; key++) target[start + key] = pixels[key < scale.from ? 0 : table[bytes[start + key]]];
      }
    }
    return image;
  }
}
