// What stands around a printed picture: whose it is, how it was coloured, and what the colours mean. Sizes are in units
// of which PIXELS pixels make one.

import { palette } from "./palette.mjs";
import { SCALES, part } from "./scale.mjs";

export const PIXELS = 2;
export const PAD = 24;
export const HEAD = 74; // height of the title's lines
const FOOT = 62; // height of the legend
export const LEAST_WIDTH = 460;
export const INK = "#1b2430";
export const SOFT = "#566172";
export const words = (size, weight = 400) => `${weight} ${size}px system-ui, -apple-system, Segoe UI, sans-serif`;

/** The looks of print: always light, whatever theme the page has. */
export const ramp = () => palette("light").looks;

/** A picture of `width` x `height` units inside its frame; `draw(context, left, top)` fills it. */
export function frame({ title, options, notes, width, height, draw }) {
  const whole = [Math.max(width, LEAST_WIDTH) + 2 * PAD, height + HEAD + FOOT + 2 * PAD];
  return {
    title,
    width: whole[0],
    height: whole[1],
    draw(context) {
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, ...whole);
      context.textBaseline = "middle";
      context.textAlign = "left";
      context.fillStyle = INK;
      context.font = words(26, 600);
      context.fillText(title, PAD, PAD + 16);
      context.fillStyle = SOFT;
      context.font = words(14);
      context.fillText([...notes, ...coloured(options)].join(", "), PAD, PAD + 46);
      draw(context, PAD, PAD + HEAD);
      legend(context, options, PAD, PAD + HEAD + height + 20);
    },
  };
}

/** How the weights became colours, in words. */
function coloured({ scale, hideFirst, threshold }) {
  const said = [`colours: ${SCALES[scale].name}`];
  if (hideFirst) said.push("first token hidden");
  if (threshold) said.push(`weights below ${threshold.toFixed(4)} not drawn`);
  return said;
}

function legend(context, { scale }, left, top) {
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = SOFT;
  context.font = words(14);
  const said = scale === "row" ? "of the row's largest weight" : "attention weight";
  context.fillText(said, left, top + 7);
  const [start, width] = [left + Math.ceil(context.measureText(said).width) + 20, 256];
  const strip = new OffscreenCanvas(256, 1);
  const image = new ImageData(256, 1);
  new Uint32Array(image.data.buffer).set(ramp().pixels);
  strip.getContext("2d").putImageData(image, 0, 0);
  context.drawImage(strip, start, top, width, 14);
  context.textAlign = "center";
  context.font = words(12);
  for (const weight of SCALES[scale].ticks) {
    const x = start + width * part(scale, weight);
    context.fillRect(x - 0.5, top + 14, 1, 4);
    context.fillText(String(weight), x, top + 27);
  }
}
