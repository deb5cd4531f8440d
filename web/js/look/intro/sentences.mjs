// The introduction's sentences about a head, with the numbers of the current text.

import { make } from "../../lib/dom.mjs";
import { exact } from "../../lib/numbers.mjs";
import { pictureName, visible } from "../../lib/words.mjs";
import { clearRole, copies, COPYING, roleOf } from "../roles/head_roles.mjs";
import { openPattern } from "../roles/text_patterns.mjs";
import { spreadWords } from "../panels/top_heads.mjs";

/** @import { Store } from "../state/store.mjs" */
/** @import { PatternName } from "../roles/text_patterns.mjs" */

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

/** What a head does on random tokens, if that is clear. @param {ReturnType<typeof clearRole>} role */
const onRandom = (role) => (role ? ` On random tokens it ${role.does}: ${role.score.toFixed(2)}.` : "");

/** What to call a token of the text. @param {Store} store */
export const unitOf = ({ tokens }) =>
  tokens.length && tokens.every(({ text }) => text.length === 1) ? "letter" : "token";

/**
 * What the open head does in this text, in a sentence or two, with the same numbers as its panel.
 * @param {Store} store
 * @param {boolean} spellsName for readers who see the name of a head for the first time
 */
export function patternSentence(store, spellsName) {
  const { open, pointer } = store;
  const pattern = openPattern(store);
  const unit = unitOf(store);
  const where = pointer.state === "done" || pointer.state === "stopped" ? "In your text" : "In this text";
  const spelled = spellsName ? ` (layer ${open[0]}, head ${open[1]})` : "";
  const start = `${where}, ${pictureName(open, pointer)}${spelled}`;
  const isCopying = copies(roleOf(store, open));
  if (!pattern) {
    const spread = spreadWords(store, open, unit);
    return isCopying
      ? `${start} copies: it makes the model more likely to write the ${unit} it looks at; ${spread}.`
      : `${start} follows no single pattern: ${spread}.${onRandom(clearRole(store, open))}`;
  }
  const { name, back, mean, even, queries } = pattern;
  const also = isCopying && name !== "first_token" ? ", and copies what it finds there" : "";
  const role = clearRole(store, open);
  const elsewhere = role && ![COPYING.name, name.replace("_", " ")].includes(role.name);
  const numbers = `${mean.toFixed(2)} on average over ${queries} places`;
  const chance = `(uniform attention would give ${even.toFixed(2)})`;
  return `${start} ${LOOKS[name](unit, back)}${also}: ${numbers} ${chance}.${elsewhere ? onRandom(role) : ""}`;
}

/**
 * What the open head does at the selected token.
 * @param {Store} store
 * @param {{ query: number, key: number } | null} strongest where the head shows most clearly what it does
 * @returns {(string | Node)[]}
 */
export function placeSentence(store, strongest) {
  const { focus, tokens, weights } = store;
  if (!focus || focus.key === null) return [];
  const unit = unitOf(store);
  const { query, key } = focus;
  const back = query - key;
  const where = back ? `, ${back} ${unit}${back > 1 ? "s" : ""} back` : ", itself";
  const written = tokens[query + 1];
  const isStrongest = query === strongest?.query && key === strongest.key;
  const start = written ? "before the model wrote " : "to go on";
  return [
    isStrongest ? `Strongest place: ${start}` : `${start[0].toUpperCase()}${start.slice(1)}`,
    ...(written ? [make("b", {}, spoken(written.text))] : []),
    `, it looked from ${spoken(tokens[query].text)} at `,
    make("b", {}, spoken(tokens[key].text)),
    `${where}, with ${exact(weights.at(query, key))} of its attention.`,
  ];
}
