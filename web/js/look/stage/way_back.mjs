// Above the instrument: the way back to the stage, and the sentence that everything below it is about.

import { make, setText } from "../../lib/dom.mjs";
import { effect } from "../../lib/reactive.mjs";
import { plainly, textOf } from "../../lib/words.mjs";
import { leaveDetails } from "../panels/details.mjs";

/** @import { ShownText } from "../state/shown_text.mjs" */

const SHOWN = 40; // tokens: no screen is wide enough for more in one line

/** @param {ShownText} store */
export function wayBack(store) {
  const { view } = store;
  const back = () => {
    leaveDetails(view);
    scrollTo({ top: 0 });
  };
  const button = make("button", { type: "button", onclick: back }, "← Back to the sentence");
  const [before, last, next] = [make("span"), make("b"), make("b", { class: "hs-next-of-line" })];
  const line = make("p", { "aria-hidden": "true" }, make("span", {}, before, last, next));
  const element = make("div", { class: "hs-way-back hs-detail" }, button, line);
  effect(() => {
    const { tokens, pointer, isGrowing } = store;
    element.hidden = !pointer.run;
    if (!view.options.details || isGrowing) return;
    const at = Math.min(store.selection.predictor, tokens.length - 1);
    setText(before, textOf(tokens.slice(Math.max(0, at - SHOWN), Math.max(at, 0))));
    setText(last, at < 0 ? "" : textOf([tokens[at]]));
    setText(next, tokens[at + 1] ? ` ${plainly(tokens[at + 1].text)}` : "");
  });
  return element;
}
