// What first-time visitors are told: what the text is, and what the tiles are.

import { make } from "../../lib/dom.mjs";
import { counted } from "../../lib/numbers.mjs";
import { unitOf } from "../../lib/words.mjs";
import { effect } from "../../vendor/signals.mjs";

/** @import { Store } from "../state/store.mjs" */

/** @param {Store} store */
export const textExplanation = (store) =>
  explanation(store, () => {
    const unit = unitOf(store);
    return [
      `A GPT reads this text and writes the next ${unit}.`,
      ` To do so, each of its heads looks back at earlier ${unit}s.`,
    ];
  });

/** @param {Store} store */
export const tilesExplanation = (store) =>
  explanation(store, () => {
    const { shownOverlay } = store.answer;
    const heads = counted(store.pointer.n_layer * store.pointer.n_head, "head");
    if (shownOverlay) return [`${heads}, coloured by: ${shownOverlay.title}.`, ""];
    return [
      `${heads}: each tile shows where one of them looks.`,
      ` A line of tiles is a layer; a row in a tile is a ${unitOf(store)} of the text.`,
    ];
  });

/**
 * @param {Store} store
 * @param {() => [always: string, withRoom: string]} words
 */
function explanation(store, words) {
  const more = make("span", { class: "hs-wide" });
  const element = make("p", { class: "hs-explanation hs-simple" }, "", more);
  const say = () => {
    const [always, withRoom] = words();
    if (element.textContent === always + withRoom) return;
    element.replaceChildren(always, more);
    more.textContent = withRoom;
  };
  store.on("state tokens", say);
  effect(say);
  return element;
}
