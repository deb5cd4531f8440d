// Means position by position, over the rows of one template: of each layer, the head that is furthest from zero.

import { make } from "../../../lib/dom.mjs";
import { spokenHead } from "../../../lib/heads.mjs";
import { palette } from "../../../lib/drawing/palette.mjs";
import { asWritten, spoken } from "../../../lib/words.mjs";
import { TokenGrid } from "../token_grid.mjs";

/** @import { TokenPicture } from "../token_grid.mjs" */

const LEAST_NUMBER = 0.05; // cells with a smaller share of the largest mean have colour but no number

/**
 * Means and their standard errors, `[layer][head][position]`.
 * @typedef {object} PositionMeans
 * @property {{ text: string }[]} tokens of the first row
 * @property {number[][][]} means
 * @property {number[][][]} errors
 * @property {(mean: number, error: number) => string} words both with their unit
 * @property {(mean: number) => string} short a mean without its unit
 */

/** The numbers at one position. @param {number[][][]} numbers @param {number} position */
export const atPosition = (numbers, position) => numbers.map((layer) => layer.map((head) => head[position]));

/** The index of the number that is furthest from zero. @param {number[]} values */
const furthest = (values) =>
  values.reduce((best, value, at) => (Math.abs(value) > Math.abs(values[best]) ? at : best), 0);

/** The mean that is furthest from zero. @param {number[][][]} means */
export const largestMean = (means) => Math.max(...means.flat(2).map(Math.abs), 1e-6);

/**
 * The position that a link names, or else the one with the mean that is furthest from zero.
 * @param {string} named
 * @param {number[][][]} means
 */
export function chosenPosition(named, means) {
  const heads = means.flat();
  if (/^\d+$/.test(named) && Number(named) < heads[0].length) return Number(named);
  return furthest(heads[0].map((_, position) => Math.max(...heads.map((head) => Math.abs(head[position])))));
}

/** A position in a sentence. @param {{ text: string }[]} tokens @param {number} position */
export const positionName = (tokens, position) => `${spoken(tokens[position].text)} (token ${position})`;

/**
 * @param {PositionMeans} found
 * @returns {TokenPicture}
 */
function mapOf({ tokens, means, errors, words, short }) {
  const most = largestMean(means);
  return {
    first: 0,
    end: tokens.length,
    corner: "layer",
    title: (position) => ({ content: asWritten(tokens[position].text), label: positionName(tokens, position) }),
    rows: means.map((_, layer) => `L${layer}`),
    cell: (position, layer) => {
      const head = furthest(means[layer].map((each) => each[position]));
      const mean = means[layer][head][position];
      const name = spokenHead([layer, head]);
      return {
        text: Math.abs(mean) < LEAST_NUMBER * most ? "" : short(mean),
        label: `${positionName(tokens, position)}, ${name}: ${words(mean, errors[layer][head][position])}`,
        ramp: palette().change,
        shade: Math.round(127.5 + (127.5 * mean) / most),
      };
    },
  };
}

/** @param {(position: number) => void} choose */
export function positionMap(choose) {
  const grid = new TokenGrid(
    "The mean at each position, of the head furthest from zero in each layer",
    "positions",
    choose,
  );
  const caption = make(
    "p",
    { class: "hs-hint" },
    "Above, the tokens of the first prompt; the others have their own at the same positions. A cell is the mean of " +
      "the head that is furthest from zero in its layer. Choose a cell to see every head at its position.",
  );
  const element = make("div", { class: "hs-answer-part hs-residual-map" }, grid.element, caption);
  /** @type {unknown} */
  let shown = null;
  /** @type {ReturnType<typeof palette> | null} */
  let ramps = null;

  /** @param {PositionMeans} found @param {number} position */
  function show(found, position) {
    // The same means are not drawn again, so that a cell that was chosen with the keyboard keeps its focus.
    const layers = atPosition(found.means, position).map((heads) => Math.max(...heads.map(Math.abs)));
    if (found.means !== shown) grid.show(mapOf(found), position, furthest(layers));
    else if (grid.cell[0] !== position) grid.select(position);
    else if (ramps !== palette()) grid.repaint();
    shown = found.means;
    ramps = palette();
  }
  return { element, show };
}
