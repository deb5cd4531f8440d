// Heads: their names, their order, and tables of numbers with one entry for each head.

/** @import { PictureId } from "../types.js" */

/** @typedef {{ n_layer: number, n_head: number }} Shape of a model */

/** As on a tile: "0·1" is head 1 of layer 0. @param {readonly number[]} picture layer and head */
export const headName = ([layer, head]) => `${layer}·${head}`;

/** In a sentence. @param {readonly number[]} picture layer and head */
export const spokenHead = ([layer, head]) => `head ${head} of layer ${layer}`;

/** A node of a circuit: a head, or without one the MLP of the layer. @param {readonly [number, number | null]} node */
export const nodeName = ([layer, head]) => (head === null ? `MLP ${layer}` : headName([layer, head]));

/** Whether a picture is that of a head, not a mean or a rollout. @param {PictureId} picture @param {Shape} shape */
export const isHead = ([layer, column], { n_layer, n_head }) => layer < n_layer && column < n_head;

/**
 * The head with a number, counted through all layers.
 * @param {number} index
 * @param {Shape} shape
 * @returns {PictureId}
 */
export const headAt = (index, { n_head }) => [Math.floor(index / n_head), index % n_head];

/**
 * The number of a head, counted through all layers.
 * @param {readonly number[]} picture
 * @param {{ n_head: number }} shape
 */
export const headIndex = ([layer, head], { n_head }) => layer * n_head + head;

/** All heads in the order of the model. @param {Shape} shape */
export const allHeads = (shape) => Array.from({ length: shape.n_layer * shape.n_head }, (_, i) => headAt(i, shape));

/**
 * All pictures in the order of the server: each layer's heads, mean and rollout, then the mean of all heads.
 * @param {Shape} shape
 */
export const allPictures = ({ n_layer, n_head }) => [
  ...allHeads({ n_layer, n_head: n_head + 2 }),
  /** @type {PictureId} */ ([n_layer, n_head]),
];

/**
 * The first and the last of the heads that share a head's keys and values; null if it has its own.
 * @param {readonly number[]} picture
 * @param {{ n_head: number, n_kv_head?: number }} shape
 */
export function groupOf([, head], { n_head, n_kv_head = n_head }) {
  const size = n_head / n_kv_head;
  const first = head - (head % size);
  return size > 1 && head < n_head ? [first, first + size - 1] : null;
}

/**
 * Says which heads share a head's keys and values; "" if it has its own.
 * @param {readonly number[]} picture
 * @param {{ n_head: number, n_kv_head?: number }} shape
 */
export function groupSentence(picture, shape) {
  const group = groupOf(picture, shape);
  return group ? `Heads ${group[0]} to ${group[1]} of this layer share their keys and values.` : "";
}

/** Whether two pictures are the same one. @param {PictureId} one @param {PictureId} other */
export const isSamePicture = (one, other) => one[0] === other[0] && one[1] === other[1];

/**
 * The heads of a table in the order of the model, each with its value.
 * @template T
 * @param {readonly T[][]} values `[layer][head]`
 * @returns {{ picture: PictureId, value: T }[]}
 */
export const headEntries = (values) =>
  values.flatMap((row, layer) =>
    row.map((value, head) => ({ picture: /** @type {PictureId} */ ([layer, head]), value })),
  );

/** The head with the largest of these values, the first of equal ones. @param {readonly number[][]} values */
export const strongestHead = (values) =>
  headEntries(values).reduce((best, one) => (one.value > best.value ? one : best));
