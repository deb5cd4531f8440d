// The page's text up to the token that it is asked about, the answer, and a changed text that leads to another one.

import { make } from "../../../lib/dom.mjs";
import { applyEdit, decodeText, encodeText, findEdit, readEdit, writeEdit } from "../../state/choices.mjs";
import { mostProbable } from "../../../lib/sampling.mjs";
import { isFile } from "../../state/prepared.mjs";
import { vocabulary } from "../../state/run_fetcher.mjs";
import { askedPrediction, textProblem, tokenName } from "../subject.mjs";
import { promptText } from "../../../lib/words.mjs";

/** @import { AskContext } from "../question.js" */

/** The defaults of the choices `change` and `wrong`. */
export const UNCHANGED = { change: "none", wrong: "likely" };

/**
 * Token ids of the text, the changed text, the answer's id, and the token that the changed text leads to; without an id
 * or a token it is the most probable one.
 * @typedef {{ tokens: number[], corrupted: string, answer?: number, wrong?: string }} ChangedPair
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

/**
 * What was changed, as part of a sentence: one word, wherever it stands, and what stands in its place.
 * @param {string} text
 * @param {string} changed
 */
export function changeWords(text, changed) {
  const [from, to] = [text, changed].map((each) => each.match(/[\p{L}\p{N}’']+/gu) ?? []);
  const pairs = from.flatMap((word, at) => (word === to[at] ? [] : [`with “${to[at]}” in place of “${word}”`]));
  const isOne = from.length === to.length && new Set(pairs).size === 1;
  return isOne ? pairs[0] : "compared with the changed one";
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
    const { position, token } = askedPrediction(store);
    const n = position + 1;
    return { n, token, ids: store.ids.slice(0, n), text: promptText(store, n) };
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
    const { n, token } = clean();
    const { tokens, fetcher, pointer } = store;
    const key = `${pointer.run} ${n}`;
    if (suggested === key || isFile()) return;
    suggested = key;
    const [logits, names] = await Promise.all([fetcher.logits(n - 1), vocabulary(pointer.sha256)]);
    const likely = mostProbable(logits, N_OTHERS).map((id) => ({ id, text: names[id] ?? "" }));
    const answer = token === null ? likely[0] : { id: token, text: names[token] ?? "" };
    const other = otherText(tokens.slice(0, n), answer, likely);
    const isSame = fetcher === store.fetcher && n === clean().n && choices.change === UNCHANGED.change;
    if (!other) form.open = true;
    if (other && isSame) choose({ change: writeEdit(findEdit(clean().text, promptText({ tokens: other, pointer }))) });
  }

  /** Show the choices. Returns the pair, or why there is none. @returns {ChangedPair | string} */
  function pair() {
    const problem = textProblem(store, 2);
    if (problem) return problem;
    const { n, token: answer, ids, text } = clean();
    const value = applyEdit(text, readEdit(choices.change));
    if (document.activeElement !== changed) changed.value = value;
    const token = decodeText(choices.wrong);
    const isLikely = choices.wrong === UNCHANGED.wrong || token === null;
    if (document.activeElement !== wrongInput) wrongInput.value = isLikely ? "" : token;
    const name = answer === null ? "the likeliest next token" : tokenName(store, n);
    about.textContent = `The answer is ${name}; select another token to ask about it instead.`;
    if (value === text) suggest().catch((error) => store.report(`Could not find another word: ${error.message}`));
    if (value === text) return "Change a word in this text that the answer depends on.";
    const named = answer === null ? {} : { answer };
    return { tokens: ids, corrupted: value, ...named, ...(isLikely ? {} : { wrong: token }) };
  }

  const words = () => changeWords(clean().text, applyEdit(clean().text, readEdit(choices.change)));
  return { form, apply, pair, words };
}
