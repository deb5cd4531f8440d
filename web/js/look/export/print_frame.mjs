// The frame of a printed picture: what it shows, how it is coloured, and what the colours mean. Sizes are in units of
// PIXELS pixels.

import { offscreenContext, packedPixels } from "../../lib/drawing/canvas.mjs";
import { sansSerif } from "../../lib/drawing/fonts.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { SCALES, ticksOf } from "../../lib/drawing/scale.mjs";

/** @import { ScaleOptions } from "../../types.js" */
/** @import { SvgContext } from "./svg_context.mjs" */

/** @typedef {OffscreenCanvasRenderingContext2D | SvgContext} PrintContext */

/**
 * @typedef {object} Picture
 * @property {string} title
 * @property {number} width
 * @property {number} height
 * @property {(context: PrintContext) => void} draw
 */

export const PIXELS = 2;
const PAD = 24;
const HEAD = 74; // height of the title's lines
const FOOT = 62; // height of the legend
const LEAST_WIDTH = 460;
export const INK = "#1b2430";
export const SOFT = "#566172";

/** The colours of print: always light, whatever theme the page has. */
export const ramp = () => palette("light").looks;

/**
 * A picture inside its frame.
 * @param {object} picture
 * @param {string} picture.title
 * @param {ScaleOptions} picture.options
 * @param {number} [picture.floor] of a logarithmic scale
 * @param {string[]} picture.notes
 * @param {number} picture.width without the frame
 * @param {number} picture.height
 * @param {(context: PrintContext, left: number, top: number) => void} picture.draw fills it
 * @returns {Picture}
 */
export function frame({ title, options, floor, notes, width, height, draw }) {
  const fullWidth = Math.max(width, LEAST_WIDTH) + 2 * PAD;
  const fullHeight = height + HEAD + FOOT + 2 * PAD;
  return {
    title,
    width: fullWidth,
    height: fullHeight,
    draw(context) {
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, fullWidth, fullHeight);
      context.textBaseline = "middle";
      context.textAlign = "left";
      context.fillStyle = INK;
      context.font = sansSerif(26, 600);
      context.fillText(title, PAD, PAD + 16);
      context.fillStyle = SOFT;
      context.font = sansSerif(14);
      context.fillText([...notes, ...describeColours(options)].join(", "), PAD, PAD + 46);
      draw(context, PAD, PAD + HEAD);
      legend(context, options, floor, PAD, PAD + HEAD + height + 20);
    },
  };
}

/** How the weights became colours, in words. @param {ScaleOptions} options */
function describeColours({ scale, hideFirst, threshold }) {
  const words = [`colours: ${SCALES[scale].name}`];
  if (hideFirst) words.push("first token hidden");
  if (threshold) words.push(`weights below ${threshold.toFixed(4)} not drawn`);
  return words;
}

/**
 * @param {PrintContext} context
 * @param {ScaleOptions} options
 * @param {number | undefined} floor
 * @param {number} left
 * @param {number} top
 */
function legend(context, { scale }, floor, left, top) {
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = SOFT;
  context.font = sansSerif(14);
  const title = scale === "row" ? "of the row's largest weight" : "attention weight";
  context.fillText(title, left, top + 7);
  const [start, width] = [left + Math.ceil(context.measureText(title).width) + 20, 256];
  const image = new ImageData(256, 1);
  packedPixels(image).set(ramp().pixels);
  const strip = offscreenContext(256, 1);
  strip.putImageData(image, 0, 0);
  context.drawImage(strip.canvas, start, top, width, 14);
  context.textAlign = "center";
  context.font = sansSerif(12);
  for (const [place, text] of ticksOf(scale, floor)) {
    const x = start + width * place;
    context.fillRect(x - 0.5, top + 14, 1, 4);
    context.fillText(text, x, top + 27);
  }
}
