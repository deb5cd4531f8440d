// The visitor's choices for a question, as stored in links.

import { fromBase64Url, toBase64Url } from "../../lib/bytes.mjs";
import { characters } from "../../lib/words.mjs";

const PART = /^[\w-]+$/;

/**
 * The choices stored in a link, with defaults for the rest; unknown names and values are ignored.
 * @param {string} text
 * @param {Record<string, string>} defaults
 */
export function readChoices(text, defaults) {
  const choices = { ...defaults };
  for (const part of text ? text.split("~") : []) {
    const [name, value, ...rest] = part.split(".");
    if (Object.hasOwn(defaults, name) && value && PART.test(value) && !rest.length) choices[name] = value;
  }
  return choices;
}

/**
 * @param {Record<string, string>} choices
 * @param {Record<string, string>} defaults
 */
export function writeChoices(choices, defaults) {
  const changed = Object.entries(choices).filter(([name, value]) => value !== defaults[name]);
  return changed.map(([name, value]) => `${name}.${value}`).join("~");
}

/** @typedef {{ at: number, removed: number, text: string }} Edit */

/**
 * The smallest change of whole characters that turns one text into another; null if they are the same. `at` and
 * `removed` count UTF-16 units.
 * @param {string} from
 * @param {string} to
 * @returns {Edit | null}
 */
export function findEdit(from, to) {
  if (from === to) return null;
  const [before, after] = [from, to].map(characters);
  const shortest = Math.min(before.length, after.length);
  let start = 0;
  while (start < shortest && before[start] === after[start]) start++;
  let end = 0;
  while (end < shortest - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const [at, removed, text] = [
    before.slice(0, start),
    before.slice(start, before.length - end),
    after.slice(start, after.length - end),
  ].map((part) => part.join(""));
  return { at: at.length, removed: removed.length, text };
}

/** An edit that does not fit changes nothing. @param {string} text @param {Edit | null} edit */
export function applyEdit(text, edit) {
  if (!edit || edit.at + edit.removed > text.length) return text;
  const changed = text.slice(0, edit.at) + edit.text + text.slice(edit.at + edit.removed);
  return changed.isWellFormed() ? changed : text;
}

/** Encode a text with letters, digits, - and _ only. @param {string} text */
export const encodeText = (text) => toBase64Url(new TextEncoder().encode(text));

/** @param {string} code @returns {string | null} null if `encodeText` did not write it */
export function decodeText(code) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(fromBase64Url(code));
  } catch {
    return null;
  }
}

/** @param {Edit | null} edit */
export const writeEdit = (edit) => (edit ? `${edit.at}-${edit.removed}-${encodeText(edit.text)}` : "none");

/** @param {string} code @returns {Edit | null} */
export function readEdit(code) {
  const match = /^(\d{1,6})-(\d{1,6})-([\w-]*)$/.exec(code);
  const text = match && decodeText(match[3]);
  return match && text !== null ? { at: Number(match[1]), removed: Number(match[2]), text } : null;
}
