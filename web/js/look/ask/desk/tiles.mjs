// The mixing desk in the grid: a badge on every head that is muted or scaled, taps that mute, and the key M.

import { make } from "../../../lib/dom.mjs";
import { scaleOf } from "./masks.mjs";

/** @import { Place } from "../../../types.js" */
/** @import { Mixer } from "./mixer.mjs" */

/** A scale as a badge has room for it: "×" for a head that is removed. @param {number} scale */
const badgeText = (scale) => (scale === 0 ? "×" : `${Number(scale.toFixed(2))}×`);

/** What a scale does to a head, in words. @param {number} scale */
export const scaleWords = (scale) =>
  scale === 1 ? "" : scale === 0 ? "muted" : `scaled to ${Number(scale.toFixed(2))}`;

/**
 * @param {Mixer} mixer
 * @param {HTMLElement} panel that holds the grid
 */
export function mixTiles(mixer, panel) {
  const { store } = mixer;
  let drawn = "";
  const draw = () => {
    const mask = mixer.isOn ? mixer.mask : null;
    const { tapsMute } = mixer;
    const tiles = /** @type {NodeListOf<HTMLElement>} */ (panel.querySelectorAll(".hs-grid button[data-place]"));
    const now = JSON.stringify([mask, tapsMute, tiles.length, store.pointer.sha256]);
    if (now === drawn) return;
    drawn = now;
    panel.classList.toggle("hs-mixing", tapsMute);
    for (const tile of tiles) {
      const place = placeOf(tile);
      const scale = scaleOf(mask, place);
      const isChanged = scale !== 1 && mixer.isHead(place);
      tile.classList.toggle("hs-scaled", isChanged);
      tile.classList.toggle("hs-muted", isChanged && scale === 0);
      tile.querySelector(".hs-scale-badge")?.remove();
      if (isChanged) tile.append(make("span", { class: "hs-scale-badge", "aria-hidden": "true" }, badgeText(scale)));
      const tap = tapsMute && mixer.isHead(place) ? (scale === 1 ? "click to mute" : "click to put back") : "";
      const words = [isChanged ? scaleWords(scale) : "", tap].filter(Boolean).join(", ");
      if (words) tile.setAttribute("aria-description", words);
      else tile.removeAttribute("aria-description");
    }
  };
  store.on("state view thumbnails", draw);

  /** The head at an element; null for none. @param {EventTarget | null} target */
  const headAt = (target) => {
    const tile = target instanceof Element ? target.closest(".hs-grid button[data-place]") : null;
    const place = tile && placeOf(/** @type {HTMLElement} */ (tile));
    return place && mixer.isHead(place) ? place : null;
  };
  // Before the grid hears of it, which would open the head.
  const capture = { capture: true };
  panel.addEventListener(
    "click",
    (event) => {
      const place = mixer.tapsMute ? headAt(event.target) : null;
      if (!place) return;
      event.stopPropagation();
      mixer.toggle(place);
    },
    capture,
  );
  panel.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = headAt(event.target);
    if (!place) return;
    event.preventDefault();
    mixer.toggle(place);
  });
}

/** @param {HTMLElement} tile @returns {Place} */
function placeOf(tile) {
  const [layer, column] = String(tile.dataset.place).split(",").map(Number);
  return [layer, column];
}
