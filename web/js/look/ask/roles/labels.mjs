// The role that a tile has in its corner.

import { clearRole, COPYING } from "./head_roles.mjs";
import { fixedDistance, patternName } from "./text_roles.mjs";

/** @import { Place } from "../../../types.js" */
/** @import { Store } from "../../state/store.mjs" */

/** @typedef {{ tag: string, told: string, where: string }} Label in the corner, in words, and where it was measured */

/** @type {Label} */
export const NO_LABEL = { tag: "", told: "", where: "" };

/**
 * Where a head looks on random tokens; else at which distance it looks in this text; else whether it copies.
 * @param {Store} store
 * @param {Place} head
 * @returns {Label}
 */
export function labelOf(store, head) {
  const role = clearRole(store, head);
  const isCopying = role?.name === COPYING.name;
  const distance = role && !isCopying ? null : fixedDistance(store, head);
  if (distance) {
    const told = `${patternName(distance)} ${distance.mean.toFixed(2)}`;
    return { tag: `${distance.back} back`, told, where: "in this text" };
  }
  if (!role) return NO_LABEL;
  const where = isCopying ? "by its weights" : "on random tokens";
  return { tag: role.tag, told: `${role.name} ${role.score.toFixed(2)}`, where };
}
