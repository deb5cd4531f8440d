// The legends of the colours.

import { mouseOrTouch, make } from "../../lib/dom.mjs";
import { context2d, packedPixels } from "../../lib/drawing/canvas.mjs";
import { onThemeChange, palette } from "../../lib/drawing/palette.mjs";
import { ticksOf } from "../../lib/drawing/scale.mjs";
import { barEnds, METRICS } from "../../lib/metrics.mjs";
import { counted, MAX_SURPRISE } from "../../lib/numbers.mjs";
import { sizeOf } from "../../lib/triangle.mjs";
import { effect } from "../../lib/reactive.mjs";

/** @import { MetricName } from "../../types.js" */
/** @import { RampName } from "../../lib/drawing/palette.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * A colour ramp with ticks.
 * @param {RampName} ramp
 * @param {() => [place: number, text: string][]} ticks
 */
export function rampLine(ramp, ticks) {
  const canvas = make("canvas", { width: 256, height: 1, "aria-hidden": true });
  const element = make("div", { class: "hs-ruler" }, canvas);
  const draw = () => {
    const image = new ImageData(256, 1);
    packedPixels(image).set(palette()[ramp].pixels);
    context2d(canvas).putImageData(image, 0, 0);
    const marks = ticks().map(([place, text]) => {
      const mark = make("span", {}, text);
      mark.style.left = `${100 * place}%`;
      return mark;
    });
    element.replaceChildren(canvas, ...marks);
  };
  onThemeChange(draw);
  draw();
  return { element, draw };
}

/**
 * A colour ramp with ticks and a title.
 * @param {string} words
 * @param {RampName} ramp
 * @param {() => [place: number, text: string][]} ticks
 */
export function ruler(words, ramp, ticks) {
  const { element: line, draw } = rampLine(ramp, ticks);
  const title = make("span", {}, words);
  return { element: make("div", { class: "hs-scale" }, title, line), title, draw };
}

/** The current scale of the weights. @param {ShownText} store */
export function weightLegend(store) {
  const { view } = store;
  let shown = "";
  const { element, title, draw } = ruler("attention weight", "looks", () =>
    ticksOf(view.options.scale, store.weights.floor),
  );
  effect(() => {
    const { scale } = view.options;
    const now = scale === "log" ? `log ${store.weights.floor}` : scale;
    if (now === shown) return;
    shown = now;
    title.textContent = scale === "row" ? "of the row’s largest" : "attention weight";
    draw();
  });
  return element;
}

export function surpriseLegend() {
  return ruler("surprise in bits", "surprise", () =>
    [0, 2, 4, 6, MAX_SURPRISE].map((bits) => [bits / MAX_SURPRISE, bits === MAX_SURPRISE ? `${bits}+` : String(bits)]),
  ).element;
}

/**
 * Two colour swatches with labels.
 * @param {string} looksWords
 * @param {string} seenWords
 */
function twoSwatches(looksWords, seenWords) {
  const [looks, seen] = [make("span", { class: "hs-swatch" }), make("span", { class: "hs-swatch" })];
  const paint = () => {
    looks.style.backgroundColor = palette().looks.css[170];
    seen.style.backgroundColor = palette().seen.css[170];
  };
  paint();
  onThemeChange(paint);
  return [looks, looksWords, " ", seen, seenWords];
}

/**
 * How to read the tile of a head: its rows are those of the matrix, and below it is a number.
 * @param {ShownText} store
 */
export function tileLegend(store) {
  const words = "Each row is a token, each column a token it can look at: the stronger the colour, the more attention.";
  const rows = make("p", { class: "hs-hint" }, words);
  const numbers = make("p", { class: "hs-hint" });
  const explain = () => {
    const { metric } = store.view.options;
    const { name, unit, help } = METRICS[metric];
    const text = store.isGrowing ? "the text so far" : counted(sizeOf(store.rows).rows, "token");
    const number = `Number: ${name}${unit === "bits" ? " in bits" : ""}, ${help}; mean over ${text}.`;
    const meaning = `${number} ${barWords(store, metric)}`;
    if (numbers.textContent !== meaning) numbers.textContent = meaning;
  };
  effect(explain);
  return make("div", { class: "hs-tile-legend" }, rows, numbers);
}

/**
 * The ends of the bars, which differ from text to text.
 * @param {ShownText} store
 * @param {MetricName} metric
 */
function barWords(store, metric) {
  const { least, most } = barEnds(store.data, metric);
  const { unit } = METRICS[metric];
  const [from, to] = [least, most].map((value) => (value ? value.toFixed(unit ? 1 : 2) : "0"));
  return `Bar: from ${from} to ${to}${unit && ` ${unit}`} in this text.`;
}

/** The legend of the text: where the selected token looks, and which tokens look at it. */
export function attentionLegend() {
  const how = mouseOrTouch(
    "Hover a token to see where it looks. Click a token to see the step that wrote it, that is, where the token " +
      "before it looked. Shift-click pins a token; the arrow keys and Enter do the same.",
    "Tap a token to see the step that wrote it, that is, where the token before it looked.",
  );
  const swatches = twoSwatches(
    "where the outlined token looks",
    "what looks at it, if it is under the pointer or locked. ",
  );
  const signs = "· is a space, ↵ a line break.";
  return make("p", { class: "hs-hint" }, ...swatches, make("span", { class: "hs-how-to-step" }, `${how} `), signs);
}
