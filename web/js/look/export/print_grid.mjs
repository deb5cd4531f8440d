// The whole grid for print, as it is on the page: a table of layers and heads, or the heads in their order.

import { offscreenContext } from "../../lib/drawing/canvas.mjs";
import { monospace, sansSerif } from "../../lib/drawing/fonts.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { ThumbnailPainter } from "../../lib/drawing/thumbnail_painter.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { counted, measured } from "../../lib/numbers.mjs";
import { ORDERS } from "../../lib/options.mjs";
import { frame, INK, PIXELS, ramp, SOFT } from "./print_frame.mjs";

/** @import { Card, Grid } from "../panels/grid.mjs" */
/** @import { Store } from "../state/store.mjs" */
/** @import { PrintContext } from "./print_frame.mjs" */

const ROOM = 4000; // pixels across
const MOST = 240; // pixels across of one thumbnail
const GAP = 12; // pixels between them
const SIDE = 46; // units of the layers' names
const TOP = 24; // units of the heads' names
const CAPTION = 40; // pixels for the text below a head where they are sorted
const FAINT = 0.22; // opacity of heads outside the chosen range, as on the page

/**
 * @param {Store} store
 * @param {Grid} grid
 */
export function gridPicture(store, grid) {
  const { pointer } = store;
  const { options } = store.view;
  const { sorted } = options;
  const summaries = grid.hasSummaries;
  const { n_layer, n_head } = pointer;
  const columns = sorted ? Math.max(1, Math.ceil(Math.sqrt(1.6 * grid.shown.length))) : grid.tableColumns;
  const rows = sorted ? Math.ceil(grid.shown.length / columns) : n_layer + (summaries ? 1 : 0);
  const { pixels: colours } = ramp();
  const painter = new ThumbnailPainter(
    store.thumbnails,
    new Scale(store.view.options),
    colours,
    null,
    Infinity,
    store.step ?? Infinity,
  );
  const target = Math.min(MOST, Math.floor(ROOM / columns) - GAP);
  const pixels = painter.side * Math.max(1, Math.floor(target / Math.max(painter.side, 1)));
  const [across, down] = [pixels + GAP, pixels + GAP + (sorted ? CAPTION : 0)];
  const [side, top] = sorted ? [0, 0] : [SIDE, TOP];
  const metric = METRICS[options.metric];
  const order = sorted ? `heads by ${metric.name}, ${ORDERS[sorted]}` : "rows are layers, columns heads";
  return frame({
    title: `${pointer.model} · ${sorted ? counted(grid.shown.length, "head") : "all heads"}`,
    options,
    notes: [`attention weights of ${counted(store.rows, "token")}`, order],
    width: side + (columns * across) / PIXELS,
    height: top + (rows * down) / PIXELS,
    draw(context, left, up) {
      paintAll(context, left + side, up + top);
      context.textBaseline = "middle";
      if (sorted) writeCaptions(context, left, up);
      else writeNames(context, left, up);
    },
  });

  /**
   * The row and the column of a card.
   * @param {Card} card
   * @param {number} i
   */
  function cellOf(card, i) {
    return sorted ? [Math.floor(i / columns), i % columns] : card.place;
  }

  /**
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  function paintAll(context, left, up) {
    const small = offscreenContext(painter.side, painter.side);
    for (const [i, card] of grid.shown.entries()) {
      const [row, column] = cellOf(card, i);
      small.putImageData(painter.paint(store.index(card.place)), 0, 0);
      context.globalAlpha = card.filtered ? FAINT : 1;
      const [x, y, size] = [column * across, row * down, pixels].map((each) => each / PIXELS);
      context.drawImage(small.canvas, left + x, up + y, size, size);
    }
    context.globalAlpha = 1;
  }

  /**
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  function writeNames(context, left, up) {
    context.fillStyle = INK;
    context.font = monospace(Math.min(14, across / PIXELS / 4));
    context.textAlign = "center";
    /** @param {number} i */
    const middle = (i) => (i * across + pixels / 2) / PIXELS;
    const heads = Array.from({ length: n_head }, (_, head) => `H${head}`);
    for (const [i, name] of [...heads, ...(summaries ? ["mean", "rollout"] : [])].entries()) {
      context.fillText(name, left + side + middle(i), up + top / 2);
    }
    context.textAlign = "left";
    for (let layer = 0; layer < n_layer; layer++) context.fillText(`L${layer}`, left, up + top + middle(layer));
    if (!summaries) return;
    context.textAlign = "right";
    context.fillText("mean of all heads", left + side + (n_head * across) / PIXELS - 8, up + top + middle(n_layer));
  }

  /**
   * @param {PrintContext} context
   * @param {number} left
   * @param {number} up
   */
  function writeCaptions(context, left, up) {
    for (const [i, card] of grid.shown.entries()) {
      const [row, column] = cellOf(card, i);
      const [x, y] = [left + (column * across) / PIXELS, up + (row * down + pixels) / PIXELS + 9];
      context.textAlign = "left";
      context.fillStyle = INK;
      context.font = monospace(11);
      context.fillText(card.name, x, y);
      context.textAlign = "right";
      context.fillStyle = SOFT;
      context.font = sansSerif(11);
      context.fillText(measured(card.value, metric), x + pixels / PIXELS, y);
    }
  }
}
