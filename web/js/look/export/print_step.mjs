// "This step" for print: the row that every head had when one token was written.

import { label } from "../../lib/drawing/axes.mjs";
import { offscreenContext, packedPixels } from "../../lib/drawing/canvas.mjs";
import { monospace } from "../../lib/drawing/fonts.mjs";
import { Scale } from "../../lib/drawing/scale.mjs";
import { frame, INK, PIXELS, ramp } from "./print_frame.mjs";

/** @import { StepRows } from "../panels/step_rows.mjs" */
/** @import { Store } from "../state/store.mjs" */

const WIDTH = 1200; // units
const SIDE = 64; // units of the heads' names
const TOP = 26; // units of the keys
const [ROW, GAP] = [20, 8]; // units of a strip, and between two layers
const LABELLED = 10; // units of a key that has its token above it

/**
 * @param {Store} store
 * @param {StepRows} rows
 */
export function stepPicture(store, rows) {
  const n = (rows.query ?? 0) + 1;
  const { n_layer, n_head } = store.pointer;
  const scale = Scale.of(store);
  const cell = Math.max(1, Math.floor((PIXELS * (WIDTH - SIDE)) / n)) / PIXELS; // whole pixels
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
      const every = cell >= LABELLED ? 1 : Math.ceil(36 / cell);
      for (let key = 0; key < n; key += every) {
        const text = cell >= LABELLED ? label(store.tokens[key].text).slice(0, Math.floor(cell / 7)) : String(key);
        context.fillText(text, left + SIDE + (key + 0.5) * cell, top + 10);
      }
      context.textAlign = "left";
      for (let head = 0; head < n_layer * n_head; head++) {
        const up = top + TOP + head * ROW + Math.floor(head / n_head) * GAP;
        context.fillText(rows.name(head), left, up + ROW / 2);
        const row = rows.row(head);
        const largest = scale.largest(row, 0, n);
        const image = new ImageData(n, 1);
        packedPixels(image).set(Array.from(row, (weight, key) => colours[scale.step(weight, key, largest)]));
        const strip = offscreenContext(n, 1);
        strip.putImageData(image, 0, 0);
        context.drawImage(strip.canvas, left + SIDE, up, n * cell, ROW - 2);
      }
    },
  });
}

/**
 * The same numbers, exact: `attention[head]` holds the weights of all keys, heads counted through all layers.
 * @param {Store} store
 * @param {StepRows} rows
 */
export function stepJson(store, rows) {
  const query = rows.query ?? 0;
  const { model, sha256, n_layer, n_head } = store.pointer;
  const tokens = store.tokens.slice(0, query + 1).map(({ id, text }) => ({ id, text }));
  const heads = Array.from({ length: n_layer * n_head }, (_, head) => head);
  const attention = heads.map((head) => Array.from(rows.row(head), (weight) => Number(weight.toPrecision(9))));
  const content = { model, sha256, n_layer, n_head, query, tokens, attention };
  return new Blob([`${JSON.stringify(content)}\n`], { type: "application/json" });
}
