// The page's text up to the selected token, which is the answer, and a changed text that leads to another one.

import { make } from "../../../lib/dom.mjs";
import { applyEdit, decodeText, encodeText, findEdit, readEdit, writeEdit } from "../../state/choices.mjs";
import { mostProbable } from "../../../lib/sampling.mjs";
import { isFile } from "../../state/prepared.mjs";
import { vocabulary } from "../../state/run_fetcher.mjs";
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

const N_OTHERS = 40; // likely next tokens among which another word is looked for
const WORD = /^ ?\p{L}{2,}$/u;

/**
 * The text with another word wherever it has the answer, so that there is something to see before anything is typed:
 * the likeliest next word that the text does not have yet. Null where the answer is no word of the text.
 * @param {readonly { id: number, text: string }[]} tokens before the answer
 * @param {{ id: number, text: string }} answer
 * @param {readonly { id: number, text: string }[]} likely the next tokens, the likeliest first
 */
export function otherText(tokens, answer, likely) {
  if (!WORD.test(answer.text) || !tokens.some(({ id }) => id === answer.id)) return null;
  const has = new Set([answer.id, ...tokens.map(({ id }) => id)]);
  const isSpaced = answer.text.startsWith(" ");
  const other = likely.find(({ id, text }) => !has.has(id) && WORD.test(text) && text.startsWith(" ") === isSpaced);
  return other ? tokens.map((token) => (token.id === answer.id ? { ...token, text: other.text } : token)) : null;
}

/** @param {Pick<AskContext, "store" | "choices" | "choose">} context */
export function changedText({ store, choices, choose }) {
  const changed = make("textarea", { rows: 3, spellcheck: "false" });
  const wrongInput = make("input", { type: "text", placeholder: "its most probable token" });
  const about = make("p", { class: "hs-hint" });

  const field = (/** @type {string} */ label, /** @type {HTMLElement} */ input) =>
    make("label", { class: "hs-field" }, make("span", {}, label), input);
  const fields = [about, field("changed text", changed), field("wrong answer", wrongInput)];
  const form = make("details", { class: "hs-change" }, make("summary", {}, "Change the text"), ...fields);

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

  let suggested = ""; // the text and position for which another text was looked for

  async function suggest() {
    const { position } = clean();
    const { tokens, fetcher, pointer } = store;
    const key = `${pointer.run} ${position}`;
    if (suggested === key || isFile()) return;
    suggested = key;
    const [logits, names] = await Promise.all([fetcher.logits(position - 1), vocabulary(pointer.sha256)]);
    const likely = mostProbable(logits, N_OTHERS).map((id) => ({ id, text: names[id] ?? "" }));
    const other = otherText(tokens.slice(0, position), tokens[position], likely);
    const isSame = fetcher === store.fetcher && position === clean().position && choices.change === UNCHANGED.change;
    if (!other) form.open = true;
    if (other && isSame) choose({ change: writeEdit(findEdit(clean().text, promptText({ tokens: other, pointer }))) });
  }

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
    if (value === text) suggest().catch((error) => store.report(`Could not find another word: ${error.message}`));
    if (value === text) return "Change a word in this text that the answer depends on.";
    return { tokens: ids, corrupted: value, answer: store.ids[position], ...(isLikely ? {} : { wrong: token }) };
  }
  return { form, apply, pair };
}
