// The open head at the mixing desk: mute it, hear it alone, or scale what it writes.

import { make, setFlag } from "../../../lib/dom.mjs";
import { MOST_SCALE, scaleOf } from "./masks.mjs";

/** @import { Mixer } from "./mixer.mjs" */

/** For the header of the open head, while the question is open. @param {Mixer} mixer */
export function headScale(mixer) {
  const { store } = mixer;
  const mute = make("button", { type: "button", class: "hs-small" }, "Mute");
  const solo = make("button", { type: "button", class: "hs-small" }, "Solo");
  solo.title = "Mute all other heads of the model; every MLP is kept";
  const range = make("input", {
    type: "range",
    min: 0,
    max: MOST_SCALE,
    step: 0.05,
    "aria-label": "Scale of this head",
  });
  range.title = "What its context vectors are multiplied by: 0 removes them, 1 is the model’s own";
  const number = make("output", {});
  mute.addEventListener("click", () => mixer.toggle(store.open));
  solo.addEventListener("click", () => mixer.solo(store.open));
  range.addEventListener("input", () => mixer.scale(store.open, Number(range.value)));
  const label = make("label", {}, "scale ", range, " ", number);
  const element = make("div", { class: "hs-controls hs-head-scale", role: "group" }, mute, solo, label);
  const show = () => {
    element.hidden = !mixer.isOn || !mixer.isHead(store.open);
    if (element.hidden) return;
    element.setAttribute("aria-label", `${store.openName} at the mixing desk`);
    const scale = scaleOf(mixer.mask, store.open);
    setFlag(mute, "aria-pressed", scale === 0);
    mute.textContent = scale === 1 || scale === 0 ? "Mute" : "Back to 1";
    setFlag(solo, "aria-pressed", mixer.isSolo(store.open));
    range.value = String(scale);
    range.style.setProperty("--part", String(scale / MOST_SCALE));
    number.textContent = `× ${scale.toFixed(2)}`;
  };
  store.on("state view open", show);
  show();
  return element;
}
