// "Compare": with what the text that is shown can be compared.

import { make } from "../../lib/dom.mjs";
import { isBusy } from "../state/pointer.mjs";
import { menu } from "../../widgets/menu.mjs";
import { baseName } from "./models.mjs";
import { ownText } from "./own_text.mjs";

/** @import { TextActions } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

/** @typedef {"readAgain" | "readText" | "startMuting" | "models"} Needed */
/** @typedef {Pick<TextActions, Needed> & { another: () => void }} CompareActions */

/**
 * @param {Store} store
 * @param {CompareActions} actions
 */
export function compareMenu(store, actions) {
  const holder = make("span", { class: "hs-compare-menu" });
  const own = ownText(store, actions.readText, () => opener()?.focus());
  /** @returns {HTMLButtonElement | null} */
  const opener = () => holder.querySelector("button[aria-haspopup]");
  let listed = "";

  const draw = () => {
    const { model, settings, state, run } = store.pointer;
    const models = actions.models();
    const steps = models.find(({ name }) => name === baseName(model))?.steps ?? [];
    const list = JSON.stringify([model, models.map(({ name }) => name), steps, Boolean(settings.prompt)]);
    const isReady = run !== "" && !isBusy(state) && store.length > 0;
    if (list !== listed) {
      listed = list;
      /** @type {[string, () => void][]} */
      const items = [];
      items.push(["with another text", () => own.open()]);
      if (settings.prompt) items.push(["with a new seed", actions.another]);
      items.push(["with heads muted", () => mute()]);
      for (const { name } of models) {
        if (name !== baseName(model))
          items.push([`with ${name}`, () => actions.readAgain({ model: name, head_mask: null })]);
      }
      if (steps.length) items.push(["with another training step", () => actions.readAgain(otherStep(model, steps))]);
      const { element, button } = menu("Compare", "Compare this text", items);
      holder.replaceChildren(element, own.element);
      button.title = "Put this text beside another one, or beside another reading of it";
    }
    for (const button of holder.querySelectorAll("button[aria-haspopup]")) {
      /** @type {HTMLButtonElement} */ (button).disabled = !isReady;
    }
  };

  /** The open head is muted first, so that there is something to see. */
  const mute = () => {
    const { n_layer, n_head, model } = store.pointer;
    const [layer, head] = store.open;
    const mask = Array.from({ length: n_layer }, () => Array.from({ length: n_head }, () => 1));
    if (layer < n_layer && head < n_head) mask[layer][head] = 0;
    actions.readAgain({ model, head_mask: mask });
    actions.startMuting();
  };

  store.on("state tokens", draw);
  draw();
  return holder;
}

/**
 * For the model itself the step in the middle, for a snapshot the model.
 * @param {string} model
 * @param {number[]} steps
 */
function otherStep(model, steps) {
  const base = baseName(model);
  return { model: model === base ? `${base}@${steps[Math.floor((steps.length - 1) / 2)]}` : base, head_mask: null };
}
