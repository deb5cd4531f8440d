// The tile under the pointer at reading size, with what that head does in this text.

import { make } from "../../lib/dom.mjs";
import { context2d } from "../../lib/drawing/canvas.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { ThumbnailPainter } from "../../lib/drawing/thumbnail_painter.mjs";
import { pictureName } from "../../lib/words.mjs";
import { describePicture } from "./top_heads.mjs";

/** @import { Place } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */
/** @import { Grid } from "./grid.mjs" */

/**
 * @param {Store} store
 * @param {Grid} grid
 */
export function headPreview(store, grid) {
  const canvas = make("canvas", { "aria-hidden": true });
  const [name, text] = [make("b", {}), make("p", { class: "hs-hint" })];
  const element = make("div", { class: "hs-preview", "aria-hidden": true }, canvas, make("div", {}, name, text));
  /** @type {Place | null} under the pointer */
  let hovered = null;

  const draw = () => {
    const place = hovered; // the open one is beside it, larger
    element.hidden = !place || place.join() === store.open.join();
    if (!place || element.hidden) return;
    const { looks, seen } = palette();
    const painter = new ThumbnailPainter(
      store.thumbnails,
      new Scale(store.view.options),
      looks.pixels,
      seen.pixels,
      Infinity,
      store.step ?? store.readable,
    );
    if (!painter.side) return;
    canvas.width = canvas.height = painter.side;
    context2d(canvas).putImageData(painter.paint(store.index(place)), 0, 0);
    name.textContent = pictureName(place, store.pointer);
    text.textContent = describePicture(store, place);
  };

  grid.onHover((place) => {
    hovered = place;
    draw();
  });
  store.on("thumbnails view open", draw);
  draw();
  return element;
}
