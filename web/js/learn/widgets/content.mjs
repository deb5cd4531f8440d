// The words of a rung, as its file in content/ has them, with the parts that its module draws.

import { make } from "../../lib/dom.mjs";
import { code, controls, defined, fold, heading, isDefined, pageLink, remarks, rowOf, term } from "./elements.mjs";

/** @import { Entry } from "../rung.js" */
/** @typedef {Record<string, Node | Node[]>} Parts what a rung's module draws, by name */

const MARKS = /`([^`]+)`|\*([^*]+)\*|\[([^\]]+)\](?:\(([^)]+)\))?|\{(\w+)\}/g;
const HEADING = "# ";

/**
 * A text with its marks: `code`, *a new term*, [a term with a definition], [words for it](term), [a link](#page) and
 * {a part}. What only looks like a mark is text.
 * @param {string} text
 * @param {Parts} [parts]
 */
export function marked(text, parts = {}) {
  /** @type {(string | Node)[]} */
  const found = [];
  let end = 0;
  for (const match of text.matchAll(MARKS)) {
    const nodes = markedPart(match, parts);
    if (!nodes) continue;
    found.push(text.slice(end, match.index), ...nodes);
    end = match.index + match[0].length;
  }
  return [...found, text.slice(end)];
}

/** @param {RegExpExecArray} match @param {Parts} parts @returns {Node[] | null} */
function markedPart([, written, introduced, words, target = words, name], parts) {
  if (written) return [code(written)];
  if (introduced) return [term(introduced)];
  if (name) return name in parts ? [parts[name]].flat() : null;
  if (target.startsWith("#")) return [pageLink(/** @type {"look"} */ (target.slice(1)), words)];
  return isDefined(target) ? [defined(target, words)] : null;
}

/**
 * @param {Entry[]} entries
 * @param {Parts} parts
 * @returns {Node[]}
 */
export const written = (entries, parts) => entries.flatMap((entry) => oneEntry(entry, parts));

/** @param {Entry} entry @param {Parts} parts @returns {Node[]} */
function oneEntry(entry, parts) {
  if (typeof entry === "string") {
    if (entry.startsWith(HEADING)) return [heading(entry.slice(HEADING.length))];
    return [make("p", {}, ...marked(entry, parts))];
  }
  if ("remarks" in entry) return [remarks(entry.remarks, ...entry.items.map((item) => marked(item, parts)))];
  const named = ("show" in entry ? [entry.show] : "row" in entry ? entry.row : entry.controls).map((name) => {
    if (!(name in parts)) throw new Error(`the rung draws no part “${name}”`);
    return parts[name];
  });
  if ("show" in entry) return named.flat();
  return ["row" in entry ? rowOf(...named.flat()) : controls(...named.flat())];
}

/**
 * What is not on the main path, folded.
 * @param {Record<string, any>} kept whether it is open
 * @param {{ topics: string, parts: Entry[] }} deeper
 * @param {Parts} parts
 */
export const deeperFold = (kept, { topics, parts: entries }, parts) =>
  fold(kept, "deeper", `Deeper: ${topics}`, ...written(entries, parts));
