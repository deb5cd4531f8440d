// Head masks: a factor for each head's context vectors. 0 removes a head, 1 keeps it as it is.

import { allHeads, headName } from "./heads.mjs";
import { spokenHeads } from "./words.mjs";

/** @import { PictureId } from "../types.js" */
/** @import { Shape } from "./heads.mjs" */

/** @typedef {number[][] | null} Mask `[layer][head]`; null where every head is kept as it is */

export const MAX_SCALE = 2; // the largest that the controls offer
const ALL_HEADS = "all"; // in a link: no head is muted

/**
 * A mask with the same factor for every head.
 * @param {Shape} shape
 * @param {number} scale
 */
const filled = ({ n_layer, n_head }, scale) =>
  Array.from({ length: n_layer }, () => Array.from({ length: n_head }, () => scale));

/** A mask that changes no head becomes null. @param {number[][]} rows @returns {Mask} */
const simplified = (rows) => (rows.every((row) => row.every((scale) => scale === 1)) ? null : rows);

/** @param {Mask} mask @param {PictureId} picture */
export const scaleOf = (mask, [layer, head]) => mask?.[layer]?.[head] ?? 1;

/**
 * A copy of the mask with another scale for some heads.
 * @param {Mask} mask
 * @param {Shape} shape
 * @param {PictureId[]} pictures
 * @param {number} scale
 */
export function withScale(mask, shape, pictures, scale) {
  const rows = mask ? mask.map((row) => [...row]) : filled(shape, 1);
  for (const [layer, head] of pictures) rows[layer][head] = scale;
  return simplified(rows);
}

/** Heads as the option `off` of a view names them: "7.6_7.2". @param {PictureId[]} heads */
export const namesOf = (heads) => heads.map((head) => head.join(".")).join("_");

/** The heads of a model that such names name. @param {string} names @param {Shape} shape */
export function headsNamed(names, shape) {
  const known = names.split("_");
  return allHeads(shape).filter((head) => known.includes(namesOf([head])));
}

/** A mask that keeps only these heads. @param {Shape} shape @param {PictureId[]} pictures @returns {Mask} */
export function only(shape, pictures) {
  const rows = filled(shape, 0);
  for (const [layer, head] of pictures) rows[layer][head] = 1;
  return simplified(rows);
}

/** The heads that are removed or scaled, in the order of the model. @param {Mask} mask @returns {PictureId[]} */
export function changedHeads(mask) {
  return (mask ?? []).flatMap((row, layer) =>
    row.flatMap((scale, head) => (scale === 1 ? [] : [/** @type {PictureId} */ ([layer, head])])),
  );
}

/** @param {Mask} one @param {Mask} other */
export const isSameMask = (one, other) => encodeMask(one) === encodeMask(other);

/**
 * Encode a mask for a link (which web/page/link.py reads, too) with letters, digits, - and _ only: "2-5" is L2 H5
 * removed, "2-5x150" scaled to 150%, "3" all of layer 3.
 * @param {Mask} mask
 */
export function encodeMask(mask) {
  if (!mask) return ALL_HEADS;
  /** @param {number} scale */
  const suffix = (scale) => (scale ? `x${Math.round(100 * scale)}` : "");
  const parts = mask.flatMap((row, layer) => {
    if (row.every((scale) => scale === row[0])) return row[0] === 1 ? [] : [`${layer}${suffix(row[0])}`];
    return row.flatMap((scale, head) => (scale === 1 ? [] : [`${layer}-${head}${suffix(scale)}`]));
  });
  return parts.join("_") || ALL_HEADS;
}

/**
 * Decode a mask from a link; undefined if it is not a mask for a model of this shape.
 * @param {string} text
 * @param {Shape} shape
 * @returns {Mask | undefined}
 */
export function decodeMask(text, shape) {
  if (text === ALL_HEADS) return null;
  const rows = filled(shape, 1);
  for (const part of text.split("_")) {
    const match = /^(\d{1,4})(?:-(\d{1,4}))?(?:x(\d{1,3}))?$/.exec(part);
    if (!match) return undefined;
    const [layer, scale] = [Number(match[1]), Number(match[3] ?? 0) / 100];
    const head = match[2] === undefined ? null : Number(match[2]);
    if (layer >= shape.n_layer || (head ?? 0) >= shape.n_head || scale > MAX_SCALE) return undefined;
    if (head === null) rows[layer].fill(scale);
    else rows[layer][head] = scale;
  }
  return simplified(rows);
}

/**
 * Heads that are removed or scaled, in words; "" for none.
 * @param {Mask} mask
 */
export function maskWords(mask) {
  /** @type {PictureId[]} */
  const removed = [];
  /** @type {string[]} */
  const scaled = [];
  (mask ?? []).forEach((row, layer) =>
    row.forEach((scale, head) => {
      if (scale === 0) removed.push([layer, head]);
      else if (scale !== 1) scaled.push(`${headName([layer, head])} × ${scale}`);
    }),
  );
  const parts = [...(removed.length ? [`without ${list(removed)}`] : []), ...scaled];
  return parts.join(", ");
}

/** @param {PictureId[]} heads */
const list = (heads) => (heads.length > 4 ? `${heads.length} heads` : spokenHeads(heads));
