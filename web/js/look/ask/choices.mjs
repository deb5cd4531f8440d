// The visitor's choices for a question, as stored in links.

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
 * The smallest change that turns one text into another; null if they are the same.
 * @param {string} from
 * @param {string} to
 * @returns {Edit | null}
 */
export function findEdit(from, to) {
  if (from === to) return null;
  let at = 0;
  while (at < Math.min(from.length, to.length) && from[at] === to[at]) at++;
  let end = 0;
  const most = Math.min(from.length, to.length) - at;
  while (end < most && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  return { at, removed: from.length - at - end, text: to.slice(at, to.length - end) };
}

/** @param {string} text @param {Edit | null} edit */
export function applyEdit(text, edit) {
  if (!edit || edit.at + edit.removed > text.length) return text;
  return text.slice(0, edit.at) + edit.text + text.slice(edit.at + edit.removed);
}

/** Encode a text with letters, digits, - and _ only. @param {string} text */
export function encodeText(text) {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte));
  return btoa(bytes.join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} code @returns {string | null} null if `encodeText` did not write it */
export function decodeText(code) {
  try {
    const bytes = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
    const read = Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(read);
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
