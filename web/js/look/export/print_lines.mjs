// The lines of the open picture for print: all tokens in two columns, and the lines that are on the page.

import { label } from "../../lib/drawing/axes.mjs";
import { monospace, sansSerif } from "../../lib/drawing/fonts.mjs";
import { counted } from "../../lib/numbers.mjs";
import { drawLine, linesOf } from "../panels/lines/lines.mjs";
import { frame, INK, ramp, SOFT } from "./print_frame.mjs";

/** @import { Store } from "../state/store.mjs" */

const ROW = 18; // units of a token
const [FROM, TO] = [190, 410]; // where the lines start and end
const WIDTH = 600;
const TITLES = 30;

/** @param {Store} store */
export function linesPicture(store) {
  const { tokens, count: n, pointer, openName, queries } = store;
  return frame({
    title: `${pointer.model} · ${openName}`,
    options: store.view.options,
    floor: store.weights.floor,
    notes: [`attention weights of ${counted(n, "token")} as lines`],
    width: WIDTH,
    height: TITLES + n * ROW,
    draw(context, left, top) {
      /** @param {number} i */
      const y = (i) => top + TITLES + (i + 0.5) * ROW;
      context.fillStyle = SOFT;
      context.font = sansSerif(14);
      context.textAlign = "right";
      context.fillText("this token (query)", left + FROM - 10, top + 10);
      context.textAlign = "left";
      context.fillText("looks at that token (key)", left + TO + 10, top + 10);
      context.strokeStyle = ramp().css[190];
      context.lineWidth = 2;
      for (const { query, key, strength } of linesOf(store)) {
        drawLine(context, left + FROM, y(query), left + TO, y(key), strength);
      }
      context.globalAlpha = 1;
      context.fillStyle = INK;
      for (let i = 0; i < n; i++) {
        const text = label(tokens[i].text);
        context.font = monospace(12, queries.includes(i) ? 700 : 400);
        context.textAlign = "right";
        context.fillText(text, left + FROM - 10, y(i));
        context.textAlign = "left";
        context.fillText(text, left + TO + 10, y(i));
        context.fillText(String(i), left, y(i));
      }
    },
  });
}
