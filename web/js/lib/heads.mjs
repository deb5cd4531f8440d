// Heads by name, and tables of numbers with one entry for each head.

/** @import { PictureId } from "../types.js" */

/** "L0 H1". @param {readonly number[]} place layer and head */
export const headName = ([layer, head]) => `L${layer} H${head}`;

/**
 * The heads of a table in the order of the model, each with its value.
 * @template T
 * @param {readonly T[][]} values `[layer][head]`
 * @returns {{ place: PictureId, value: T }[]}
 */
export const headEntries = (values) =>
  values.flatMap((row, layer) =>
    row.map((value, head) => ({ place: /** @type {PictureId} */ ([layer, head]), value })),
  );
