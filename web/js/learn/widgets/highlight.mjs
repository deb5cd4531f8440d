// Python with a little colour: strings and comments are quieter, keywords stand out.

import { make } from "../../lib/dom.mjs";

const QUIET = String.raw`"""[\s\S]*?"""|"[^"\n]*"|#[^\n]*`;
const KEYWORDS =
  "def class return yield for in if else elif while not and or raise import from is None True False self with as pass";
const PIECES = new RegExp(`(${QUIET})|\\b(${KEYWORDS.replaceAll(" ", "|")})\\b`, "g");

/** @param {string} code */
export function highlight(code) {
  /** @type {(string | Node)[]} */
  const parts = [];
  let end = 0;
  for (const found of code.matchAll(PIECES)) {
    parts.push(code.slice(end, found.index), make("span", { class: found[1] ? "hl-quiet" : "hl-key" }, found[0]));
    end = found.index + found[0].length;
  }
  return [...parts, code.slice(end)];
}
