// Numbers in the grid instead of the attention: a colour and a number on every head's tile, a legend, and arcs between
// heads.

import { make, svg } from "../../lib/dom.mjs";
import { palette } from "../../lib/drawing/palette.mjs";
import { isSamePicture } from "../../lib/heads.mjs";
import { clamp } from "../../lib/numbers.mjs";
import { effect } from "../../lib/reactive.mjs";
import { ruler } from "./legend.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Arc, Overlay, PictureId } from "../../types.js" */
/** @import { Card } from "./grid.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/**
 * The position on the ramp, from 0 to 1, of a fraction of the largest value. As with attention weights, the square root
 * is drawn: otherwise all but a few heads would look alike.
 * @param {Overlay["ramp"]} ramp
 * @param {number} part from -1 to 1
 */
function rampPosition(ramp, part) {
  const root = Math.sign(part) * Math.sqrt(Math.abs(part));
  return ramp === "change" ? (1 + root) / 2 : Math.max(root, 0);
}

/**
 * The colour of a value, and a text colour that can be read on it.
 * @param {Overlay} overlay
 * @param {number} value
 */
function overlayColours(overlay, value) {
  const ramp = palette()[overlay.ramp];
  const shade = Math.round(255 * rampPosition(overlay.ramp, clamp(value / Math.max(overlay.most, 1e-12), -1, 1)));
  return { colour: ramp.css[shade], ink: ramp.ink[shade] };
}

const WIDEST_RING = 8; // CSS pixels: of a standard error as large as the value with the strongest colour

/**
 * The width of the ring that stands for a head's standard error.
 * @param {Pick<Overlay, "errors" | "most">} overlay
 * @param {PictureId} picture
 */
export const ringWidth = ({ errors, most }, [layer, head]) =>
  WIDEST_RING * clamp((errors?.[layer]?.[head] ?? 0) / Math.max(most, 1e-12), 0, 1);

/**
 * Colour the tiles, or show the attention again.
 * @param {HTMLElement} grid
 * @param {Card[]} cards
 * @param {Overlay | null} overlay
 */
export function paintOverlay(grid, cards, overlay) {
  grid.classList.toggle("hs-overlaid", overlay !== null);
  for (const { picture, name, isHead, button, number } of cards) {
    const value = isHead ? (overlay?.values[picture[0]]?.[picture[1]] ?? null) : null;
    const { colour, ink } = overlay && value !== null ? overlayColours(overlay, value) : { colour: "", ink: "" };
    button.style.setProperty("--hs-tile", colour);
    button.style.setProperty("--hs-ink", ink);
    const hasRing = value !== null && overlay?.errors !== undefined;
    button.classList.toggle("hs-ringed", hasRing);
    button.style.setProperty("--hs-ring", hasRing ? `${ringWidth(overlay, picture)}px` : "");
    button.classList.toggle("hs-has-value", value !== null);
    if (!overlay) continue;
    number.textContent = value === null ? "" : overlay.short(value);
    const label = value === null ? name : `${name}, ${overlay.title}: ${overlay.long(value)}`;
    button.setAttribute("aria-label", label);
    button.title = label;
  }
}

/** The legend of the overlay, with a button that switches back to the attention. @param {ShownText} store */
export function overlayLegend(store) {
  const button = smallButton("", () => store.answer.toggleOverlay());
  const title = make("span", {});
  const [left, right] = [make("span", {}), make("span", {})];
  const ends = make("div", { class: "hs-overlay-ends" }, left, right);
  /** @param {number[]} parts @returns {[number, string][]} */
  const ticks = (parts) => {
    const { overlay } = store.answer;
    if (!overlay) return [];
    return parts.map((part) => [rampPosition(overlay.ramp, part), overlay.short(part * overlay.most)]);
  };
  const ramps = {
    change: ruler("", "change", () => ticks([-1, -0.25, 0, 0.25, 1])),
    looks: ruler("", "looks", () => ticks([0, 0.0625, 0.25, 1])),
  };
  const bar = make("div", {}, ramps.change.element, ramps.looks.element, ends);
  const top = make("div", { class: "hs-overlay-top" }, title, button);
  const element = make("div", { class: "hs-overlay-legend" }, top, bar);
  const show = () => {
    const { overlay } = store.answer;
    element.hidden = !overlay;
    if (!overlay) return;
    title.textContent = overlay.title;
    bar.hidden = !store.answer.shownOverlay;
    button.textContent = store.answer.shownOverlay ? "Back to attention" : "Colour the heads";
    for (const [name, ramp] of Object.entries(ramps)) {
      ramp.element.hidden = name !== overlay.ramp;
      ramp.draw();
    }
    [left.textContent, right.textContent] = overlay.ends;
  };
  effect(show);
  return element;
}

const MIN_WIDTH = 1.2; // CSS pixels
const MAX_WIDTH = 4;

/**
 * Draw the arcs over the tiles, replacing the previous ones.
 * @param {HTMLElement} grid
 * @param {Card[]} cards the shown ones
 * @param {Arc[]} arcs
 */
export function paintArcs(grid, cards, arcs) {
  grid.querySelector(".hs-arcs")?.remove();
  if (!arcs.length) return;
  const drawing = svg("svg", { class: "hs-arcs", "aria-hidden": "true" });
  const buttonOf = (/** @type {PictureId} */ picture) =>
    cards.find((card) => isSamePicture(card.picture, picture))?.button;
  for (const { from, to, part } of arcs) {
    const [start, end] = [buttonOf(from), buttonOf(to)];
    if (!start || !end) continue;
    const width = MIN_WIDTH + part * (MAX_WIDTH - MIN_WIDTH);
    drawing.append(svg("path", { d: curve(start, end), "stroke-width": width, "data-from": from.join() }));
  }
  grid.prepend(drawing); // the last child of the grid is the mean of all heads
}

/**
 * From the lower edge of one tile to the upper edge of another, so that their numbers stay visible; between their
 * middles if the heads are sorted and the second is not below the first.
 * @param {HTMLElement} start
 * @param {HTMLElement} end
 */
function curve(start, end) {
  const isBelow = end.offsetTop >= start.offsetTop + start.offsetHeight;
  const [x1, x2] = [start, end].map(({ offsetLeft, offsetWidth }) => offsetLeft + offsetWidth / 2);
  const y1 = start.offsetTop + start.offsetHeight * (isBelow ? 0.95 : 0.5);
  const y2 = end.offsetTop + end.offsetHeight * (isBelow ? 0.05 : 0.5);
  const bow = 0.18 * Math.hypot(x2 - x1, y2 - y1); // arcs within one column do not overlap
  return `M ${x1} ${y1} Q ${(x1 + x2) / 2 + bow} ${(y1 + y2) / 2} ${x2} ${y2}`;
}
