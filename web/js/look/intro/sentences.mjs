// What the introduction says of a head, with the numbers of the text at hand.

import { make } from "../../lib/dom.mjs";
import { exact } from "../../lib/numbers.mjs";
import { pictureName, visible } from "../../lib/words.mjs";
import { copies, roleOf } from "../ask/roles/head_roles.mjs";
import { spreadOf } from "../panels/top_heads.mjs";
import { favouriteWord, isClear, patternsOf, tellingPattern } from "./patterns.mjs";

/** @import { Store } from "../state/store.mjs" */
/** @import { Pattern, PatternName } from "./patterns.mjs" */

/** @type {Record<string, string>} */
const SPOKEN = { " ": "a space", "\n": "a line break" };

/** @param {string} text of a token */
const spoken = (text) => SPOKEN[text] ?? `“${visible(text)}”`;

/** @type {Record<PatternName, (unit: string, back: number) => string>} */
const LOOKS = {
  previous_token: (unit) => `looks at the ${unit} before`,
  first_token: (unit) => `rests on the first ${unit}`,
  self: (unit) => `looks at the current ${unit} itself`,
  duplicate_token: (unit) => `looks at earlier copies of the current ${unit}`,
  induction: (unit) => `looks at the ${unit} after an earlier copy of the current one`,
  back: (unit, back) => `looks ${back} ${unit}s back`,
};

/** What a token of the text is called. @param {Store} store */
export const unitOf = ({ tokens }) =>
  tokens.length && tokens.every(({ text }) => text.length === 1) ? "letter" : "token";

/** Where the open head looks on random tokens, by the name of a pattern. @param {Store} store */
const lookOf = (store) => (roleOf(store, store.open)?.label ?? "").replaceAll(" ", "_");

/**
 * The pattern that the open head follows in this text; null where it follows none.
 * @param {Store} store
 */
export function openPattern(store) {
  const { weights, ids, count } = store;
  return tellingPattern(patternsOf(weights, ids, count), lookOf(store));
}

/**
 * What the open head does in this text, in one sentence.
 * @param {Store} store
 * @param {Pattern | null} pattern
 */
export function patternSentence(store, pattern) {
  const { weights, tokens, count, open, pointer } = store;
  const name = pictureName(open, pointer);
  const unit = unitOf(store);
  const where = pointer.state === "done" || pointer.state === "stopped" ? "In your text" : "In this text";
  const copying = copies(roleOf(store, open));
  if (copying && !isClear(pattern) && pattern?.name !== lookOf(store)) {
    const favourite = favouriteWord(weights, tokens, count);
    const most = favourite
      ? `most of all at “${favourite.word}”, with ${favourite.share.toFixed(2)} of its attention`
      : `its attention spreads over ${spreadOf(store, open, unit)}`;
    return `${where}, ${name} copies the ${favourite ? "word" : unit}s that it looks at: ${most}.`;
  }
  if (!pattern)
    return `${where}, ${name} follows no simple pattern: its attention spreads over ${spreadOf(store, open, unit)}.`;
  const { mean, even, places } = pattern;
  const looks = `${isClear(pattern) ? "" : "partly "}${LOOKS[pattern.name](unit, pattern.back)}`;
  const also = copying ? ", and copies what it finds" : "";
  const over = `${places} such place${places === 1 ? "" : "s"}`;
  return (
    `${where}, ${name} ${looks}${also}: ${mean.toFixed(2)} on average over ${over}, ` +
    `where even attention would give ${even.toFixed(2)}.`
  );
}

/**
 * What it does at the selected token.
 * @param {Store} store
 * @returns {(string | Node)[]}
 */
export function placeSentence(store) {
  const { focus, tokens, weights } = store;
  if (!focus || focus.key === null) return [];
  const unit = unitOf(store);
  const { query, key } = focus;
  const back = query - key;
  const where = back ? `, ${back} ${unit}${back > 1 ? "s" : ""} back` : ", itself";
  const written = tokens[query + 1];
  return [
    written ? "Before the model wrote " : "To go on",
    ...(written ? [make("b", {}, spoken(written.text))] : []),
    `, it looked from ${spoken(tokens[query].text)} at `,
    make("b", {}, spoken(tokens[key].text)),
    `${where}, with ${exact(weights.at(query, key))} of its attention.`,
  ];
}
