// What the colours mean.

import { make } from "./dom.mjs";
import { onThemeChange, palette } from "./palette.mjs";
import { SCALES, part } from "./scale.mjs";
import { MOST_BITS } from "./text.mjs";

/** A ramp with ticks; `ticks()` gives [place, text] pairs, and the words beside it say what is measured. */
function ruler(words, name, ticks) {
  const canvas = make("canvas", { width: 256, height: 1, "aria-hidden": true });
  const line = make("div", { class: "hs-ruler" }, canvas);
  const said = make("span", {}, words);
  const element = make("div", { class: "hs-scale" }, said, line);
  const draw = () => {
    const image = new ImageData(256, 1);
    new Uint32Array(image.data.buffer).set(palette()[name].pixels);
    canvas.getContext("2d").putImageData(image, 0, 0);
    const marks = ticks().map(([place, text]) => {
      const mark = make("span", {}, text);
      mark.style.left = `${100 * place}%`;
      return mark;
    });
    line.replaceChildren(canvas, ...marks);
  };
  onThemeChange(draw);
  draw();
  return { element, said, draw };
}

/** The scale of the weights, as the view has it. */
export function weightLegend(view) {
  const ticks = () => {
    const { scale } = view.options;
    return SCALES[scale].ticks.map((weight) => [part(scale, weight), String(weight)]);
  };
  const made = ruler("attention weight", "looks", ticks);
  view.on(() => {
    made.said.textContent = view.options.scale === "row" ? "of the row's largest" : "attention weight";
    made.draw();
  });
  return made.element;
}

export function surpriseLegend() {
  const ticks = [0, 2, 4, 6, MOST_BITS].map((bits) => [bits / MOST_BITS, bits === MOST_BITS ? `${bits}+` : String(bits)]);
  return ruler("surprise in bits", "surprise", () => ticks).element;
}

/** Two swatches: where the chosen token looks, and who looks at it. */
export function attentionLegend() {
  const [looks, seen] = [make("span", { class: "hs-swatch" }), make("span", { class: "hs-swatch" })];
  const paint = () => {
    looks.style.backgroundColor = palette().looks.css[170];
    seen.style.backgroundColor = palette().seen.css[170];
  };
  paint();
  onThemeChange(paint);
  const how = "Point at a token to see, click to lock it, shift-click for several; or arrow keys and Enter.";
  return make("p", { class: "hs-hint" }, looks, "where the outlined token looks ", seen, `who looks at it. ${how}`);
}
