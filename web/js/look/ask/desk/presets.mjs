// Masks to begin with: heads with a role, or all layers but one.

import { pictureName } from "../../../lib/words.mjs";
import { CLEAR_COPYING } from "../roles/head_roles.mjs";
import { changedHeads, isSameMask, only, withScale } from "./masks.mjs";

/** @import { Place } from "../../../types.js" */
/** @import { Mask, Shape } from "./masks.mjs" */

/** @typedef {{ label: string, scores: { copying: number } }[][]} Roles of each head, `[layer][head]` */

/**
 * A mask with a name; it cannot be chosen where there is a reason why not.
 * @typedef {{ key: string, name: string, mask: Mask, help: string, reason: string }} Preset
 */

const ROLES = { induction: "induction", previous: "previous token", copying: "copying" };
const NAMED = 3; // heads that a preset names

/**
 * @param {object} known
 * @param {Shape} known.shape
 * @param {Roles | null} known.roles null while they are not known
 * @param {number} known.layer the one whose heads may be kept alone
 * @param {Mask} known.mask what is chosen now
 * @returns {Preset[]}
 */
export function presets({ shape, roles, layer, mask }) {
  const isLayer = layer < shape.n_layer;
  const row = Array.from({ length: shape.n_head }, (_, head) => /** @type {Place} */ ([layer, head]));
  const alone = isLayer ? only(shape, row) : null;
  return [
    withoutRole("induction", shape, roles),
    withoutRole("previous", shape, roles),
    withoutRole("copying", shape, roles),
    {
      key: "layer",
      name: isLayer ? `only layer ${layer}’s heads` : "only one layer’s heads",
      mask: alone,
      help: "Mutes the heads of all other layers. Every layer’s MLP is kept.",
      reason: !isLayer
        ? "Open a head of the layer to keep."
        : shape.n_layer === 1
          ? "This model has no other layer."
          : "",
    },
    {
      key: "all",
      name: "all back",
      mask: null,
      help: "Every head as the model has it",
      reason: isSameMask(mask, null) ? "No head is muted or scaled." : "",
    },
  ];
}

/**
 * @param {keyof typeof ROLES} key
 * @param {Shape} shape
 * @param {Roles | null} roles
 * @returns {Preset}
 */
function withoutRole(key, shape, roles) {
  const role = ROLES[key];
  const name = `without ${role.replace(" ", "-")} heads`;
  const places = (roles ?? []).flatMap((row, layer) =>
    row.flatMap(({ label, scores }, head) => {
      const has = key === "copying" ? scores.copying >= CLEAR_COPYING : label === role;
      return has ? [/** @type {Place} */ ([layer, head])] : [];
    }),
  );
  const mask = withScale(null, shape, places, 0);
  const reason = !roles
    ? "What the heads of this checkpoint do is not known yet."
    : places.length
      ? ""
      : `No head of this checkpoint is clearly ${role === "induction" ? "an" : "a"} ${role} head.`;
  const muted = mask ? `${name} (${headNames(mask, shape)})` : name;
  return { key, name: muted, mask, help: `Mutes ${headNames(mask, shape, places.length)}.`, reason };
}

/** The heads that a mask changes, by name. @param {Mask} mask @param {Shape} shape @param {number} [most] */
export function headNames(mask, shape, most = NAMED) {
  const names = changedHeads(mask).map((place) => pictureName(place, shape));
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(", ")} and ${more} more` : names.join(", ");
}
