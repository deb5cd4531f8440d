// The whole grid for print, as it stands on the page: a table of layers and heads, or the heads in their order.

import { font } from "./axes.mjs";
import { INK, PIXELS, SOFT, frame, ramp, words } from "./print_frame.mjs";
import { Scale } from "./scale.mjs";
import { ThumbnailPainter } from "./thumbnail.mjs";
import { METRICS, ORDERS } from "./view.mjs";
import { counted, measured } from "./words.mjs";

const ROOM = 4000; // pixels across, of which no thumbnail takes more than ...
const MOST = 240;
const GAP = 12; // pixels between them
const SIDE = 46; // units of the layers' names
const TOP = 24; // units of the heads' names
const CAPTION = 40; // pixels for what stands below a head that is out of its row
const FAINT = 0.22; // as on the page

export function gridPicture(store, grid) {
  const { pointer } = store;
  const { options } = store.view;
  const { n_layer, n_head } = pointer;
  const columns = options.sorted ? Math.max(1, Math.ceil(Math.sqrt(1.6 * grid.shown.length))) : n_head + 2;
  const painter = new ThumbnailPainter(store.thumbnails, new Scale(options), ramp().pixels, Infinity, store.step ?? Infinity);
  const target = Math.min(MOST, Math.floor(ROOM / columns) - GAP);
  const pixels = painter.side * Math.max(1, Math.floor(target / Math.max(painter.side, 1)));
  const [across, down] = [pixels + GAP, pixels + GAP + (options.sorted ? CAPTION : 0)];
  const place = ({ place: [layer, column] }, i) => (options.sorted ? [Math.floor(i / columns), i % columns] : [layer, column]);
  const rows = options.sorted ? Math.ceil(grid.shown.length / columns) : n_layer + 1;
  const [side, top] = options.sorted ? [0, 0] : [SIDE, TOP];
  const order = options.sorted ? `heads by ${METRICS[options.metric].name}, ${ORDERS[options.sorted]}` : "rows are layers, columns heads";
  return frame({
    title: `${pointer.model} · ${options.sorted ? counted(grid.shown.length, "head") : "all heads"}`,
    options,
    notes: [`attention weights of ${counted(store.rows, "token")}`, order],
    width: side + (columns * across) / PIXELS,
    height: top + (rows * down) / PIXELS,
    draw(context, left, up) {
      const image = new OffscreenCanvas(columns * across, rows * down);
      paintAll(image.getContext("2d"));
      context.drawImage(image, left + side, up + top, image.width / PIXELS, image.height / PIXELS);
      context.textBaseline = "middle";
      if (options.sorted) captions(context, left, up);
      else names(context, left, up);
    },
  });

  function paintAll(target) {
    target.imageSmoothingEnabled = false;
    const small = new OffscreenCanvas(painter.side, painter.side);
    for (const [i, card] of grid.shown.entries()) {
      const [row, column] = place(card, i);
      small.getContext("2d").putImageData(painter.paint(store.index(card.place)), 0, 0);
      target.globalAlpha = card.out ? FAINT : 1;
      target.drawImage(small, column * across, row * down, pixels, pixels);
    }
  }

  function names(context, left, up) {
    context.fillStyle = INK;
    context.font = font(Math.min(14, across / PIXELS / 4));
    context.textAlign = "center";
    const middle = (i) => (i * across + pixels / 2) / PIXELS;
    const heads = Array.from({ length: n_head }, (_, head) => `H${head}`);
    for (const [i, name] of [...heads, "mean", "rollout"].entries()) context.fillText(name, left + side + middle(i), up + top / 2);
    context.textAlign = "left";
    for (let layer = 0; layer < n_layer; layer++) context.fillText(`L${layer}`, left, up + top + middle(layer));
    context.textAlign = "right";
    context.fillText("mean of all heads", left + side + (n_head * across) / PIXELS - 8, up + top + middle(n_layer));
  }

  function captions(context, left, up) {
    for (const [i, card] of grid.shown.entries()) {
      const [row, column] = place(card, i);
      const [x, y] = [left + (column * across) / PIXELS, up + (row * down + pixels) / PIXELS + 9];
      context.textAlign = "left";
      context.fillStyle = INK;
      context.font = font(11);
      context.fillText(card.name, x, y);
      context.textAlign = "right";
      context.fillStyle = SOFT;
      context.font = words(11);
      context.fillText(measured(card.value, METRICS[options.metric]), x + pixels / PIXELS, y);
    }
  }
}
