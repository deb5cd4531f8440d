// Numbers in the grid instead of the attention: a colour and a number on every head's tile, and what they mean.

import { make } from "../../lib/dom.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { ruler } from "../panels/legend.mjs";

/** @import { Overlay } from "./question.js" */
/** @import { Card } from "../panels/grid.mjs" */
/** @import { Store } from "../state/store.mjs" */

/**
 * Where a fraction of the largest value lies on the ramp, from 0 to 1. As for attention weights it is the square root
 * that is drawn, or all but a few heads would look alike.
 * @param {Overlay["ramp"]} ramp
 * @param {number} part from -1 to 1
 */
function placeOf(ramp, part) {
  const root = Math.sign(part) * Math.sqrt(Math.abs(part));
  return ramp === "change" ? (1 + root) / 2 : Math.max(root, 0);
}

/**
 * The colour of a value, and an ink that can be read on it.
 * @param {Overlay} overlay
 * @param {number} value
 */
export function overlayColours(overlay, value) {
  const ramp = palette()[overlay.ramp];
  const step = Math.round(255 * placeOf(overlay.ramp, clamp(value / Math.max(overlay.most, 1e-12), -1, 1)));
  return { colour: ramp.css[step], ink: ramp.ink[step] };
}

/**
 * Colour the tiles, or give them back to the attention.
 * @param {HTMLElement} grid
 * @param {Card[]} cards
 * @param {Overlay | null} overlay
 */
export function paintOverlay(grid, cards, overlay) {
  grid.classList.toggle("hs-overlaid", overlay !== null);
  for (const { place, name, isHead, button, number } of cards) {
    const value = isHead ? (overlay?.values[place[0]]?.[place[1]] ?? null) : null;
    const { colour, ink } = overlay && value !== null ? overlayColours(overlay, value) : { colour: "", ink: "" };
    button.style.setProperty("--hs-tile", colour);
    button.style.setProperty("--hs-ink", ink);
    button.classList.toggle("hs-has-value", value !== null);
    if (!overlay) continue;
    number.textContent = value === null ? "" : overlay.short(value);
    const label = value === null ? name : `${name}, ${overlay.title}: ${overlay.long(value)}`;
    button.setAttribute("aria-label", label);
    button.title = label;
  }
}

/** What the colours of the overlay mean, and the way back to the attention. @param {Store} store */
export function overlayLegend(store) {
  const button = make("button", { type: "button", class: "hs-small", onclick: () => store.toggleOverlay() });
  const title = make("span", {});
  const [left, right] = [make("span", {}), make("span", {})];
  const ends = make("div", { class: "hs-overlay-ends" }, left, right);
  /** @param {number[]} parts @returns {[number, string][]} */
  const ticks = (parts) => {
    const { overlay } = store;
    if (!overlay) return [];
    return parts.map((part) => [placeOf(overlay.ramp, part), overlay.short(part * overlay.most)]);
  };
  const ramps = {
    change: ruler("", "change", () => ticks([-1, -0.25, 0, 0.25, 1])),
    looks: ruler("", "looks", () => ticks([0, 0.0625, 0.25, 1])),
  };
  const bar = make("div", {}, ramps.change.element, ramps.looks.element, ends);
  const top = make("div", { class: "hs-overlay-top" }, title, button);
  const element = make("div", { class: "hs-overlay-legend" }, top, bar);
  const show = () => {
    const { overlay } = store;
    element.hidden = !overlay;
    if (!overlay) return;
    title.textContent = overlay.title;
    bar.hidden = !store.shownOverlay;
    button.textContent = store.shownOverlay ? "Back to attention" : "Colour the heads";
    for (const [name, ramp] of Object.entries(ramps)) {
      ramp.element.hidden = name !== overlay.ramp;
      ramp.draw();
    }
    [left.textContent, right.textContent] = overlay.ends;
  };
  store.on("overlay", show);
  show();
  return element;
}
