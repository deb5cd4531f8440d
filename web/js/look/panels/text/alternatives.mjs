// What else could have been written at the selected token, to branch from there.

import { make } from "../../../lib/dom.mjs";
import { brief } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";

/** @import { NextToken } from "../next_token.mjs" */
/** @import { Store } from "../../state/store.mjs" */

const SHOWN = 4;

/**
 * @param {Store} store
 * @param {NextToken} next
 */
export function alternatives(store, next) {
  const element = make("div", { class: "hs-alternatives", role: "group", "aria-label": "Alternatives" });
  let shown = ""; // so that a button keeps the focus while nothing changes

  const draw = () => {
    const at = store.chosen;
    const found = next.alternatives(SHOWN);
    const tokens = found && found.at === at && !store.isGrowing ? found.tokens : [];
    const drawn = tokens.length ? `${store.pointer.run} ${at} ${tokens.map(({ id }) => id).join(" ")}` : "";
    if (drawn === shown) return;
    shown = drawn;
    if (!tokens.length || at === null) {
      element.replaceChildren();
      return;
    }
    element.setAttribute("aria-label", `Alternatives to “${visible(store.tokens[at].text)}”`);
    const buttons = tokens.map(({ id, text, probability }) => {
      const label = `Branch here with “${text}”, probability ${brief(probability)}`;
      const parts = [make("span", {}, text), make("small", {}, brief(probability))];
      const button = make("button", { type: "button", class: "hs-small", "aria-label": label, title: label }, ...parts);
      button.addEventListener("click", () => next.branch(id, at));
      return button;
    });
    element.replaceChildren(make("span", {}, "instead"), ...buttons);
  };
  next.onShown(draw);
  store.on("state step", draw);
  return element;
}
