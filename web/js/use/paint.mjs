// Code with its strings, comments and keywords told apart.

import { make } from "../lib/dom.mjs";

const QUIET = String.raw`"(?:[^"\\\n]|\\.)*"|(?<=^|\s)#[^\n]*`;
const KEYWORDS = "curl|import|from|for|in|print|const|await|new";
const PIECES = new RegExp(`(${QUIET})|\\b(${KEYWORDS})\\b`, "g");

/** @param {string} code */
export function painted(code) {
  /** @type {(string | Node)[]} */
  const parts = [];
  let end = 0;
  for (const found of code.matchAll(PIECES)) {
    parts.push(code.slice(end, found.index), make("span", { class: found[1] ? "hu-string" : "hu-word" }, found[0]));
    end = found.index + found[0].length;
  }
  return [...parts, code.slice(end)];
}
