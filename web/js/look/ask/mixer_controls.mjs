// The mixing desk outside its panel: controls in the header of the open head, badges on the tiles, taps that mute, and
// the key M.

import { make, setFlag, setHidden } from "../../lib/dom.mjs";
import { capitalised } from "../../lib/words.mjs";
import { isHead } from "../../lib/heads.mjs";
import { MAX_SCALE, scaleOf } from "../../lib/head_masks.mjs";
import { openHead } from "./subject.mjs";
import { rangeInput, setRange, smallButton } from "../../widgets/controls.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { Mixer } from "../state/mixer.mjs" */

/** The controls in the header of the open head, shown while the question is open. @param {Mixer} mixer */
export function headScale(mixer) {
  const { store } = mixer;
  const mute = smallButton("Mute", () => mixer.toggle(store.open));
  const solo = smallButton("Solo", () => mixer.solo(store.open));
  solo.title = "Mute all other heads of the model; every MLP is kept";
  const range = rangeInput({
    min: 0,
    max: MAX_SCALE,
    step: 0.05,
    "aria-label": "Scale of this head",
  });
  range.title = "Factor for the head’s context vectors: 0 removes the head, 1 leaves it unchanged";
  const number = make("output", {});
  range.addEventListener("input", () => mixer.scale(store.open, Number(range.value)));
  const label = make("label", {}, "scale ", range, " ", number);
  const element = make("div", { class: "hs-controls hs-head-scale", role: "group" }, mute, solo, label);
  const show = () => {
    setHidden(element, !mixer.isOn || !openHead(store));
    if (element.hidden) return;
    element.setAttribute("aria-label", `${capitalised(store.openName)} at the mixing desk`);
    const scale = scaleOf(mixer.mask, store.open);
    setFlag(mute, "aria-pressed", scale === 0);
    mute.textContent = scale === 1 || scale === 0 ? "Mute" : "Back to 1";
    setFlag(solo, "aria-pressed", mixer.isSolo(store.open));
    setRange(range, scale);
    number.textContent = `× ${scale.toFixed(2)}`;
  };
  whenever(() => [store.pointer, store.view.options, store.open, mixer.changed], show);
  return element;
}

const TILES = ":is(.hs-grid button[data-picture], .hs-head-tile)";

/** A scale, short enough for a badge: "×" for a head that is removed. @param {number} scale */
const badgeText = (scale) => (scale === 0 ? "×" : `${Number(scale.toFixed(2))}×`);

/** What a scale does to a head, in words. @param {number} scale */
export const scaleWords = (scale) =>
  scale === 1 ? "" : scale === 0 ? "muted" : `scaled to ${Number(scale.toFixed(2))}`;

/**
 * @param {Mixer} mixer
 * @param {HTMLElement} panel that holds the grid or the field
 */
export function mixTiles(mixer, panel) {
  const { store } = mixer;
  let drawn = "";
  const draw = () => {
    const { mask, tapsMute } = mixer; // outside the desk, `mask` is the one the text was written with
    const tiles = /** @type {NodeListOf<HTMLElement>} */ (panel.querySelectorAll(TILES));
    const now = JSON.stringify([mask, tapsMute, tiles.length, store.pointer.sha256]);
    if (now === drawn) return;
    drawn = now;
    panel.classList.toggle("hs-mixing", tapsMute);
    for (const tile of tiles) {
      const picture = pictureOf(tile);
      const scale = scaleOf(mask, picture);
      const isChanged = scale !== 1 && isHead(picture, store.pointer);
      tile.classList.toggle("hs-scaled", isChanged);
      tile.classList.toggle("hs-muted", isChanged && scale === 0);
      tile.querySelector(".hs-scale-badge")?.remove();
      if (isChanged) tile.append(make("span", { class: "hs-scale-badge", "aria-hidden": "true" }, badgeText(scale)));
      const tap =
        tapsMute && isHead(picture, store.pointer) ? (scale === 1 ? "click to mute" : "click to restore") : "";
      const words = [isChanged ? scaleWords(scale) : "", tap].filter(Boolean).join(", ");
      if (words) tile.setAttribute("aria-description", words);
      else tile.removeAttribute("aria-description");
    }
  };
  whenever(() => [...store.progress, store.view.options, mixer.changed], draw);

  /** The head at an element; null for none. @param {EventTarget | null} target */
  const headAt = (target) => {
    const tile = target instanceof Element ? target.closest(TILES) : null;
    const picture = tile && pictureOf(/** @type {HTMLElement} */ (tile));
    return picture && isHead(picture, store.pointer) ? picture : null;
  };
  // In the capture phase, before the grid would open the head.
  const capture = { capture: true };
  panel.addEventListener(
    "click",
    (event) => {
      const picture = mixer.tapsMute ? headAt(event.target) : null;
      if (!picture) return;
      event.stopPropagation();
      mixer.toggle(picture);
    },
    capture,
  );
  panel.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || event.altKey) return;
    const picture = headAt(event.target);
    if (!picture) return;
    event.preventDefault();
    mixer.toggle(picture);
  });
}

/** @param {HTMLElement} tile @returns {PictureId} */
function pictureOf(tile) {
  const [layer, column] = String(tile.dataset.picture ?? tile.dataset.head)
    .split(",")
    .map(Number);
  return [layer, column];
}
