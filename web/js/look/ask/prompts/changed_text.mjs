// The page's text up to the selected token, which is the answer, and a changed text that leads to another one.

import { make } from "../../../lib/dom.mjs";
import { applyEdit, decodeText, encodeText, findEdit, readEdit, writeEdit } from "../../state/choices.mjs";
import { selectedToken, textProblem, tokenName } from "../subject.mjs";
import { promptText } from "../../../lib/words.mjs";

/** @import { AskContext } from "../question.js" */

/** The defaults of the choices `change` and `wrong`. */
export const UNCHANGED = { change: "none", wrong: "likely" };

/**
 * Token ids of the text, the changed text, the answer's id, and the token that the changed text leads to unless it is
 * the most probable one.
 * @typedef {{ tokens: number[], corrupted: string, answer: number, wrong?: string }} ChangedPair
 */

/** @param {Pick<AskContext, "store" | "choices" | "choose">} context */
export function changedText({ store, choices, choose }) {
  const changed = make("textarea", { rows: 3, spellcheck: "false" });
  const wrongInput = make("input", { type: "text", placeholder: "its most probable token" });
  const about = make("p", { class: "hs-hint" });

  const clean = () => {
    const position = Math.max(selectedToken(store), 0);
    return { position, ids: store.ids.slice(0, position), text: promptText(store, position) };
  };
  const apply = () => choose({ change: writeEdit(findEdit(clean().text, changed.value)) });
  changed.addEventListener("change", apply);
  changed.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    apply();
  });
  wrongInput.addEventListener("change", () =>
    choose({ wrong: wrongInput.value ? encodeText(wrongInput.value) : UNCHANGED.wrong }),
  );

  /** Show the choices. Returns the pair, or why there is none. @returns {ChangedPair | string} */
  function pair() {
    const problem = textProblem(store, 2);
    if (problem) return problem;
    const { position, ids, text } = clean();
    if (position < 1) return "Select a later token: it is the answer, and the text before it is the prompt.";
    const value = applyEdit(text, readEdit(choices.change));
    if (document.activeElement !== changed) changed.value = value;
    const token = decodeText(choices.wrong);
    const isLikely = choices.wrong === UNCHANGED.wrong || token === null;
    if (document.activeElement !== wrongInput) wrongInput.value = isLikely ? "" : token;
    about.textContent = `The answer is ${tokenName(store, position)}; select another token to ask about it instead.`;
    if (value === text) return "Change a word in this text that the answer depends on.";
    return { tokens: ids, corrupted: value, answer: store.ids[position], ...(isLikely ? {} : { wrong: token }) };
  }

  const field = (/** @type {string} */ label, /** @type {HTMLElement} */ input) =>
    make("label", { class: "hs-field" }, make("span", {}, label), input);
  return { controls: [about, field("changed text", changed), field("wrong answer", wrongInput)], apply, pair };
}
