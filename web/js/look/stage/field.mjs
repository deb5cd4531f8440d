// All heads as a field of tiles in one place: a row is a layer, the first at the top. Whatever the shape of the model,
// the field is as wide as the place, and no higher.

import { groupOf } from "../../lib/heads.mjs";

/** @import { PictureId } from "../../types.js" */

const MAX_TILE = 128; // CSS pixels: a model with few heads does not get huge tiles
const [WIDE_GAP, GAP] = [8, 4]; // CSS pixels between tiles of at least LARGE and MIDDLE; still less between others
const [LARGE, MIDDLE] = [64, 32];
const [MIN_ROLE, MIN_NAME] = [72, 28]; // CSS pixels of a tile's height from which role and name leave its picture free

/**
 * @typedef {object} Layout
 * @property {number} width of a tile, in CSS pixels
 * @property {number} height of a tile
 * @property {number} gap between tiles; twice as much between groups
 * @property {number} group how many heads of a layer share their keys and values; 1 if each has its own
 * @property {"role" | "name" | "none"} label what is written on a tile
 */

/**
 * @param {{ n_layer: number, n_head: number, n_kv_head?: number }} shape
 * @param {number} side of the place, in CSS pixels
 * @param {number} [most] its height
 * @returns {Layout}
 */
export function fieldLayout({ n_layer, n_head, n_kv_head = n_head }, side, most = side) {
  const group = n_head / n_kv_head;
  const columns = n_head + (group > 1 ? n_kv_head - 1 : 0); // in gaps, a group counts one more
  const tile = (/** @type {number} */ gap) => Math.min(MAX_TILE, (side - (columns - 1) * gap) / n_head);
  const gap = tile(WIDE_GAP) >= LARGE ? WIDE_GAP : tile(GAP) >= MIDDLE ? GAP : 2;
  const width = Math.floor(tile(gap));
  const height = Math.max(4, Math.min(width, Math.floor((most - (n_layer - 1) * gap) / n_layer)));
  const label = height >= MIN_ROLE ? "role" : height >= MIN_NAME ? "name" : "none";
  return { width, height, gap, group, label };
}

/**
 * Whether a tile begins a group, other than the first of its layer.
 * @param {PictureId} head
 * @param {{ n_head: number, n_kv_head?: number }} shape
 */
export const startsGroup = (head, shape) => head[1] > 0 && groupOf(head, shape)?.[0] === head[1];
