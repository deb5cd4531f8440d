// The page's tables. A row begins with its name.

import { make } from "../lib/dom.mjs";
import { visible } from "../lib/words.mjs";

/** @import { Token } from "../types.js" */
/** @import { Attributes, Content } from "./controls.mjs" */

/** @typedef {Content | Content[]} Cell what it contains; a ready cell stays as it is */
/** @typedef {HTMLTableRowElement | Cell[]} Row its name, then its cells */

/**
 * @typedef {object} Contents
 * @property {string | HTMLElement} [caption]
 * @property {string} [name] a caption that only assistive technology reads
 * @property {Cell[]} [titles] of the columns
 * @property {Row[]} [rows]
 */

/** A cell that needs more than its content. @param {Cell} content @param {Attributes} [attributes] */
export const makeCell = (content, attributes = {}) => make("td", attributes, ...[content].flat());

/** The title of a column, or of a row with another scope. @param {Cell} content @param {Attributes} [attributes] */
export const makeTitle = (content, attributes = {}) => make("th", { scope: "col", ...attributes }, ...[content].flat());

/** @param {Cell} content @param {(content: Cell) => HTMLElement} wrap */
const asCell = (content, wrap) => (content instanceof HTMLTableCellElement ? content : wrap(content));

/** @param {Cell[]} titles */
const titleRow = (titles) => make("tr", {}, ...titles.map((content) => asCell(content, makeTitle)));

/** @param {Cell[]} cells @param {Attributes} [attributes] */
export const makeRow = ([name, ...cells], attributes = {}) =>
  make(
    "tr",
    attributes,
    asCell(name, (content) => makeTitle(content, { scope: "row" })),
    ...cells.map((content) => asCell(content, makeCell)),
  );

/** @param {Row} given */
const asRow = (given) => (given instanceof HTMLTableRowElement ? given : makeRow(given));

/** Replace all that a table contains. @param {HTMLTableElement} table @param {Contents} contents */
export function fillTable(table, { caption, name, titles, rows = [] }) {
  const captions = [
    ...(name ? [make("caption", { class: "hs-hidden" }, name)] : []),
    ...(typeof caption === "string" ? [make("caption", {}, caption)] : caption ? [caption] : []),
  ];
  const head = titles ? [make("thead", {}, titleRow(titles))] : [];
  table.replaceChildren(...captions, ...head, make("tbody", {}, ...rows.map(asRow)));
}

/** Replace the rows of a table, below its titles. @param {HTMLTableElement} table @param {Row[]} rows */
export const fillRows = (table, rows) => table.tBodies[0].replaceChildren(...rows.map(asRow));

/** @param {Contents} contents @param {Attributes} [attributes] */
export function makeTable(contents, attributes = {}) {
  const table = make("table", attributes);
  fillTable(table, contents);
  return table;
}

/** What a row or column of a token is called. @param {Token[]} tokens @param {number} position */
export const tokenTitle = (tokens, position) => `“${visible(tokens[position].text)}” ${position}`;
