// The parts of a logit as lists: in the order of the model, and the heads with the largest ones.

/** @import { Place } from "../../../types.js" */
/** @import { Attribution } from "./answers.js" */

/** @typedef {{ name: string, value: number, sum: number }} Part with the sum of all parts up to it */
/** @typedef {{ place: Place, value: number }} HeadPart */

/**
 * The embedding, each layer's heads together and its MLP, and the biases.
 * @param {Pick<Attribution, "embedding" | "heads" | "mlps" | "biases">} answer
 * @returns {Part[]}
 */
export function partsInOrder({ embedding, heads, mlps, biases }) {
  const layers = heads.flatMap((row, layer) => [
    { name: `L${layer} heads`, value: row.reduce((sum, value) => sum + value, 0) },
    { name: `L${layer} MLP`, value: mlps[layer] },
  ]);
  let sum = 0;
  return [{ name: "embedding", value: embedding }, ...layers, { name: "biases", value: biases }].map((part) => ({
    ...part,
    sum: (sum += part.value),
  }));
}

/**
 * From a sum to its place, 0 to 1, between the smallest and the largest of all sums; 0 is one of them.
 * @param {Part[]} parts
 */
export function axisOf(parts) {
  const sums = [0, ...parts.map(({ sum }) => sum)];
  const [low, high] = [Math.min(...sums), Math.max(...sums)];
  return (/** @type {number} */ value) => (value - low) / Math.max(high - low, 1e-9);
}

/**
 * All heads, those with the largest parts first, for or against.
 * @param {number[][]} heads [layer][head]
 * @returns {HeadPart[]}
 */
export function headsBySize(heads) {
  const all = heads.flatMap((row, layer) =>
    row.map((value, head) => ({ place: /** @type {Place} */ ([layer, head]), value })),
  );
  return all.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}

/**
 * Every single part with a name, the largest first.
 * @param {Pick<Attribution, "embedding" | "heads" | "mlps" | "biases">} answer
 */
export function partsBySize({ embedding, heads, mlps, biases }) {
  const all = [
    ...headsBySize(heads).map(({ place: [layer, head], value }) => ({ name: `L${layer} H${head}`, value })),
    ...mlps.map((value, layer) => ({ name: `the MLP of layer ${layer}`, value })),
    { name: "the embedding", value: embedding },
    { name: "the biases", value: biases },
  ];
  return all.sort((a, b) => b.value - a.value);
}

/** The largest size among them. @param {number[]} values */
export const largestOf = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
