// The sentence with its threads and its next word as a picture: what stands on the page, in its colours.

import { offscreenContext, sansSerif } from "../../lib/drawing/canvas.mjs";

/** @import { Picture, PrintContext } from "./print.mjs" */

const PAD = 32; // CSS pixels around the sentence
const [CAPTION, LINE] = [16, 24]; // CSS pixels of the letters below it, and of their lines
const BASELINE = 0.36; // of the size of the letters, below their middle

/** @typedef {{ d: string, colour: string, width: number, ink: number, dashes: number[] }} Thread */
/**
 * @typedef {object} Word
 * @property {string} text
 * @property {number} x
 * @property {number} y
 * @property {number} [width] that it takes
 * @property {number} size of its letters
 * @property {number} weight
 * @property {string} colour
 */

/**
 * @param {HTMLElement} sentence
 * @param {string} said of the next word, in a line below
 * @returns {Picture}
 */
export function sentencePicture(sentence, said) {
  const { left, top, width, height } = sentence.getBoundingClientRect();
  const visible = (/** @type {DOMRect} */ box) => box.width && box.bottom > top && box.top < top + height;
  /** @type {Word[]} */
  const words = [];
  for (const part of sentence.querySelectorAll(".hs-letters, .hs-next-in-place")) {
    const box = part.getBoundingClientRect();
    const next = part instanceof HTMLElement ? part.dataset.word : ""; // no text: a style shows it
    const text = next || part.textContent;
    if (!text || !visible(box)) continue;
    const { fontSize, fontWeight, color } = getComputedStyle(part, next ? "::before" : null);
    const size = parseFloat(fontSize) * (Number(getComputedStyle(part).getPropertyValue("--fit")) || 1);
    const y = (box.top + box.bottom) / 2 - top + BASELINE * size;
    const room = next ? undefined : box.width;
    words.push({ text, x: box.left - left, y, width: room, size, weight: Number(fontWeight), colour: color });
  }
  const threads = [...sentence.querySelectorAll("[data-head]")].map((path) => threadOf(path));
  const caption = linesOf(said, width);
  const whole = { width: width + 2 * PAD, height: height + caption.length * LINE + 2 * PAD };
  const style = getComputedStyle(sentence);
  const ground = style.getPropertyValue("--hs-ground");
  return {
    title: [words.map(({ text }) => text).join(" "), said].filter(Boolean).join(". "),
    ...whole,
    draw(context) {
      context.fillStyle = ground;
      context.fillRect(0, 0, whole.width, whole.height);
      context.save();
      context.translate(PAD, PAD);
      for (const thread of threads) drawThread(context, thread);
      context.globalAlpha = 1;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      for (const { text, x, y, width: room, size, weight, colour } of words) {
        context.fillStyle = colour;
        context.font = sansSerif(size, weight);
        context.fillText(text, x, y, room);
      }
      context.fillStyle = style.getPropertyValue("--hs-soft");
      context.font = sansSerif(CAPTION);
      caption.forEach((line, i) => context.fillText(line, 0, height + (i + 1) * LINE));
      context.restore();
    },
  };
}

/** The lines of a text that is as wide as the sentence. @param {string} text @param {number} width */
function linesOf(text, width) {
  const ruler = offscreenContext(1, 1);
  ruler.font = sansSerif(CAPTION);
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = [...lines.slice(-1), word].join(" ");
    if (lines.length && ruler.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** @param {Element} path @returns {Thread} */
function threadOf(path) {
  const { stroke, strokeWidth, strokeOpacity, opacity, strokeDasharray } = getComputedStyle(path);
  // What a thread draws itself with is a dash as long as the thread.
  const dashes = path.hasAttribute("pathLength") ? [] : (strokeDasharray.match(/[\d.]+/g) ?? []).map(Number);
  const ink = Number(strokeOpacity) * Number(opacity);
  return { d: path.getAttribute("d") ?? "", colour: stroke, width: parseFloat(strokeWidth), ink, dashes };
}

/** @param {PrintContext} context @param {Thread} thread */
function drawThread(context, { d, colour, width, ink, dashes }) {
  context.globalAlpha = ink;
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dashes);
  context.beginPath();
  for (const [, command, numbers] of d.matchAll(/([MCL])([^MCL]*)/g)) {
    const [x, y, ...more] = numbers.split(/[ ,]/).map(Number);
    if (command === "M") context.moveTo(x, y);
    else if (command === "L") context.lineTo(x, y);
    else context.bezierCurveTo(x, y, more[0], more[1], more[2], more[3]);
  }
  context.stroke();
}
