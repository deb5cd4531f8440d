// The tables of a worksheet: the numbers of a rung for the student's own sentence, with cells left blank.

import { visible } from "../../lib/words.mjs";
import { whatFollowed } from "../rungs/11_induction.mjs";

/** @import { SheetTable } from "../rung.js" */
/** @typedef {{ titles: string[], rows: string[][], isBlank: (row: number, column: number) => boolean }} Sheet */
/** @typedef {{ text: string, id: number | null }[]} Tokens */

const MAX_ROWS = 16; // so that tables and exercises fit on one page
const SPREAD = 6; // tokens of the repetition, so that no rule replaces looking

/** Two decimals, and as many places as a student can check by hand. @param {number | null} value */
const decimal = (value) => (value === null ? "−∞" : value.toFixed(2).replace("-", "−").replace("−0.00", "0.00"));

/** @type {Record<string, (data: any, sentence: string) => Sheet>} tables that are no matrix of the rung's numbers */
const MADE = {
  characters: ({ characters }) => ({
    titles: ["character", "id"],
    rows: characters.tokens
      .slice(0, MAX_ROWS)
      .map((/** @type {Tokens[0]} */ { text, id }) => [visible(text), id ?? "unknown"].map(String)),
    isBlank: (row, column) =>
      column === 1 &&
      characters.tokens.findIndex((/** @type {any} */ each) => each.text === characters.tokens[row].text) < row,
  }),
  windows: ({ windows = [] }) => ({
    titles: ["window", "inputs", "targets"],
    rows: windows
      .slice(0, MAX_ROWS)
      .map((/** @type {Record<string, Tokens>} */ { inputs, targets }, /** @type {number} */ i) => {
        const texts = [inputs, targets].map((/** @type {Tokens} */ all) =>
          all.map(({ text }) => visible(text)).join(" "),
        );
        return [String(i + 1), ...texts];
      }),
    isBlank: (_, column) => column === 2,
  }),
  pairs: (_, sentence) => ({
    titles: ["after", "how often", "most often comes", "its chance"],
    rows: pairsIn(sentence),
    isBlank: (row, column) => column > 0 && row > 0,
  }),
  next: ({ end }) => ({
    titles: ["next token", "score (logit)", "chance"],
    rows: end.next
      .slice(0, 5)
      .map((/** @type {any} */ { text, logit, p }) => [visible(text), decimal(logit), percent(p)]),
    isBlank: (row, column) => column === 2 && row > 0,
  }),
  stream: ({ vectors: { x, attended, resid_mid, mlp_output, after }, tokens, query, layer }) => {
    const rows = Object.entries({
      "the stream": x,
      "attention adds": attended,
      "their sum": resid_mid,
      "the MLP adds": mlp_output,
      "their sum, after the layer": after,
    });
    return {
      titles: [`layer ${layer}, ${query} ${visible(tokens[query])}`, "0", "1", "2", "3"],
      rows: rows.map(([name, vector]) => [name, ...vector.slice(0, 4).map(decimal)]),
      isBlank: (row, column) => column > 0 && (row === 2 || row === 4),
    };
  },
  phrase: ({ tokens, n }) => ({
    titles: ["token", "first at", "again at"],
    rows: tokens
      .slice(0, n)
      .map((/** @type {string} */ token, /** @type {number} */ i) => [visible(token), String(i), String(n + i)]),
    isBlank: () => false,
  }),
  lookBack: ({ ids, tokens, n, read: { losses } }) => ({
    titles: ["reads", "looks for what came after", "finds it at", "copies", "first surprise", "second", "it falls by"],
    rows: spread(n - 1).map((i) => {
      const found = whatFollowed(ids, n + i);
      // Tokens of the same text may differ.
      const copied = found.filter((at, j) => found.findIndex((other) => ids[other] === ids[at]) === j);
      const token = visible(tokens[i]);
      return [
        `${n + i} ${token}`,
        token,
        found.join(" or "),
        copied.map((at) => visible(tokens[at])).join(" or "),
        ...[losses[i], losses[n + i], losses[i] - losses[n + i]].map(decimal),
      ];
    }),
    isBlank: (_, column) => [1, 2, 3, 6].includes(column),
  }),
};

/** At most ``SPREAD`` of the numbers from 0 to n − 1, evenly spread. @param {number} n */
const spread = (n) =>
  n <= SPREAD
    ? [...Array(n).keys()]
    : Array.from({ length: SPREAD }, (_, i) => Math.round((i * (n - 1)) / (SPREAD - 1)));

/** @param {number} p */
const percent = (p) => `${(100 * p).toFixed(1)}%`;

/** What follows the most frequent characters of a sentence. @param {string} sentence */
function pairsIn(sentence) {
  /** @type {Map<string, string[]>} */
  const followers = new Map();
  const characters = [...sentence];
  characters.slice(0, -1).forEach((each, i) => {
    followers.set(each, [...(followers.get(each) ?? []), characters[i + 1]]);
  });
  const sorted = [...followers].sort(([, one], [, other]) => other.length - one.length);
  return sorted.slice(0, 6).map(([each, all]) => {
    const count = (/** @type {string} */ one) => all.filter((follower) => follower === one).length;
    const most = Math.max(...all.map(count));
    const likeliest = [...new Set(all)].filter((one) => count(one) === most);
    return [visible(each), String(all.length), likeliest.map(visible).join(" or "), `${most}/${all.length}`];
  });
}

/**
 * A table of a worksheet.
 * @param {SheetTable} table as the rung's content describes it
 * @param {any} data the rung's numbers
 * @param {string} sentence
 * @returns {Sheet}
 */
export function sheetOf({ table, blank = [], alone: isAlone, rows: named }, data, sentence) {
  if (table in MADE) return MADE[table](data, sentence);
  const found = table.split(".").reduce((within, name) => within?.[name], data);
  /** @type {(number | null)[][]} */
  const matrix = Array.isArray(found?.[0]) ? found : [found]; // a vector is a row
  if (!Array.isArray(matrix[0])) throw new Error(`the rung has no table “${table}”`);
  /** @type {string[]} */
  const words = data.words;
  // A mask has no decimals.
  const isMask = matrix.every((row) => row.every((value) => value === 0 || value === 1));
  const say = isMask ? String : decimal;
  const titles = matrix[0].length === words.length ? words : matrix[0].map((_, i) => String(i));
  const blanks = blank === "unlike" ? [leastLike(data.x)] : blank;
  const said = matrix.map((row) => row.map(say));
  const isSymmetric = said.every((row, i) => row.every((text, j) => said[j]?.[i] === text));
  const shown = isAlone ? blanks : said.map((_, i) => i);
  return {
    titles: ["", ...titles.map(visible)],
    rows: shown.map((i) => [named === "numbers" ? String(i) : visible(words[i]), ...said[i]]),
    // Where rows and columns are the same, a blank row must not be copied from its column.
    isBlank: (row, column) =>
      column > 0 && (blanks.includes(shown[row]) || (isSymmetric && blanks.includes(column - 1))),
  };
}

/** The row that is furthest from the row nearest to it. @param {number[][]} rows */
function leastLike(rows) {
  const alone = rows.map((one, i) => Math.min(...rows.filter((_, j) => j !== i).map((other) => distance(one, other))));
  return alone.indexOf(Math.max(...alone));
}

/** @param {number[]} one @param {number[]} other */
const distance = (one, other) => Math.hypot(...one.map((value, i) => value - other[i]));
