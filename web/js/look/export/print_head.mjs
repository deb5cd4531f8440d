// The open picture for print: its cells, both axes with the tokens, and what it shows.

import { drawAxes, labelMargin } from "../../lib/drawing/axes.mjs";
import { offscreenContext } from "../../lib/drawing/canvas.mjs";
import { sansSerif } from "../../lib/drawing/fonts.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { paintTriangle } from "../../lib/drawing/triangle_image.mjs";
import { counted } from "../../lib/numbers.mjs";
import { frame, INK, PIXELS, ramp, SOFT } from "./print_frame.mjs";

/** @import { Store } from "../state/store.mjs" */

const LEAST = 2400; // pixels of a side
const MOST = 4000; // to which it may grow so that each token is written beside its row
const LABELLED = 12; // pixels of a cell that has its token beside it
const LARGEST = 18; // units of a label
const NAME = 26; // room for the name of an axis

/** Whole pixels for each cell, so that all have the same size. @param {number} n */
function cellPixels(n) {
  const least = Math.ceil(LEAST / n);
  return n * LABELLED <= MOST ? Math.max(least, LABELLED) : least;
}

/** @param {Store} store */
export function headPicture(store) {
  const { tokens, count: n, pointer, openName } = store;
  const { options } = store.view;
  const pixels = cellPixels(n);
  const cell = pixels / PIXELS;
  const size = pixels < LABELLED ? LARGEST : Math.min(LARGEST, 0.9 * cell);
  const texts = pixels >= LABELLED;
  const ruler = offscreenContext(1, 1);
  const margin = texts ? labelMargin(ruler, tokens, n, size) : 3 * LARGEST;
  const side = margin + n * cell;
  return frame({
    title: `${pointer.model} · ${openName}`,
    options,
    floor: store.weights.floor,
    notes: [`attention weights of ${counted(n, "token")}`],
    width: NAME + side,
    height: NAME + side,
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
      const image = paintTriangle(store.weights.values, n, Scale.of(store), ramp());
      context.drawImage(image, margin, margin, n * cell, n * cell);
      drawAxes(context, tokens, n, { margin, cell, texts, size }, INK);
      context.restore();
    },
  });
}
