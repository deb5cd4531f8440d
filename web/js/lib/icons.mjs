// The page's icons: 16 by 16, in the colour of the text.

import { svg } from "./dom.mjs";

const SHAPES = {
  sliders: "M2 4h6M12 4h2M10 2v4M2 12h2M8 12h6M6 10v4",
  chevron: "M4 6l4 4 4-4",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  end: "M3 3l6 5-6 5zM12 3v10",
  pin: "M6 2h4l-.5 5 2.5 2H4l2.5-2zM8 9v5",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  menu: "M2 4h12M2 8h12M2 12h12",
  dice: "M3 3h10v10H3zM6 6h.01M10 6h.01M8 8h.01M6 10h.01M10 10h.01",
};
const FILLED = new Set(["play"]);

/** @typedef {keyof typeof SHAPES} IconName */

/** @param {IconName} name */
export const icon = (name) =>
  svg(
    "svg",
    { viewBox: "0 0 16 16", "aria-hidden": "true", class: FILLED.has(name) ? "hs-icon hs-filled" : "hs-icon" },
    svg("path", { d: SHAPES[name] }),
  );

/** The logo: a causal attention matrix with one diagonal. */
export function logo() {
  const cells = [];
  for (let row = 0; row < 4; row++) {
    for (let column = 0; column <= row; column++) {
      const opacity = column === row - 1 || row === 0 ? 1 : 0.3;
      cells.push(svg("rect", { x: 1 + column * 4.6, y: 1 + row * 4.6, width: 4, height: 4, rx: 0.8, opacity }));
    }
  }
  return svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true", class: "hs-logo" }, ...cells);
}
