// What the heads of a model do, as the server measured it: where they look on random tokens, and whether they copy
// what they look at (model/lens/head_roles.py).

import { idle } from "../../lib/latest.mjs";
import { CLEAR_ROLE } from "../../lib/metrics.mjs";
import { share } from "../../lib/numbers.mjs";
import { isBusy } from "../state/pointer.mjs";
import { PREPARED, preparedRoles } from "../state/prepared.mjs";
import { askServer } from "../state/ask_server.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { HeadRole } from "../../lens.js" */
/** @import { PictureId, RoleName, Roles } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** @type {Record<RoleName, { name: string, tag: string, word: string, does: string }>} */
export const ROLES = {
  previous_token: { name: "previous token", tag: "prev", word: "previous", does: "looks at the token before" },
  first_token: { name: "first token", tag: "first", word: "first", does: "rests on the first token" },
  self: { name: "self", tag: "self", word: "itself", does: "looks at the token itself" },
  duplicate_token: {
    name: "duplicate token",
    tag: "same",
    word: "same",
    does: "looks at the same token earlier in the text",
  },
  induction: {
    name: "induction",
    tag: "ind",
    word: "induction",
    does: "looks at what followed the same token earlier",
  },
};
export const ROLE_NAMES = /** @type {RoleName[]} */ (Object.keys(ROLES));
/** What a head does with the token that it looks at, wherever that is. */
export const COPYING = { name: "copying", tag: "copy", word: "copies", does: "tends to copy what it looks at" };
export const CLEAR_COPYING = 0.9; // as in model/lens/head_roles.py
export const CLEAR = CLEAR_ROLE;
const MIN_CONTEXT = 4; // tokens: two, and their repetition

/** @type {Map<string, Roles>} by the hash of the weights */
const known = new Map();

/**
 * Give a store the roles of its model once they are known; they are requested while the page is idle.
 * @param {ShownText} store
 */
export function loadRoles(store) {
  let wanted = ""; // the hash of the model whose roles were requested
  // By the time the page is idle, the store may show another text, or none.
  /** @param {string} model @param {string} sha256 */
  const load = async (model, sha256) => {
    try {
      const { heads } = await askServer({ route: "roles", query: { model } });
      known.set(sha256, heads);
      if (sha256 === store.pointer.sha256) store.setRoles(known.get(sha256) ?? null);
    } catch {
      if (wanted === sha256) wanted = ""; // no labels now; the next text requests them again
    }
  };
  const follow = () => {
    const { run, state, model, sha256, context_length } = store.pointer;
    store.setRoles(known.get(sha256) ?? preparedRoles(sha256));
    if (
      !run ||
      run === PREPARED ||
      isBusy(state) ||
      known.has(sha256) ||
      wanted === sha256 ||
      context_length < MIN_CONTEXT
    )
      return;
    wanted = sha256;
    void idle().then(() => load(model, sha256));
  };
  whenever(() => [store.pointer], follow);
}

/** The role with the highest score. @param {HeadRole} role */
export const bestRole = ({ scores }) =>
  ROLE_NAMES.reduce((best, name) => (scores[name] > scores[best] ? name : best), ROLE_NAMES[0]);

/** The role it clearly has, else copying if it copies, else the role with the highest score. @param {HeadRole} role */
export function headlineRole(role) {
  const best = bestRole(role);
  return role.label !== ROLES[best].name && copies(role) ? "copying" : best;
}

/** @param {ShownText} store @param {PictureId} picture */
export const roleOf = (store, [layer, head]) => store.roles?.[layer]?.[head] ?? null;

/** @param {HeadRole | null} role */
export const copies = (role) => role !== null && role.scores.copying >= CLEAR_COPYING;

/**
 * The role of a head if it is clear; null if it is not, or not known.
 * @param {ShownText} store
 * @param {PictureId} picture
 */
export function clearRole(store, picture) {
  const role = roleOf(store, picture);
  if (!role) return null;
  const best = bestRole(role);
  if (role.label === ROLES[best].name) return { ...ROLES[best], score: role.scores[best] };
  return role.label === COPYING.name ? { ...COPYING, score: role.scores.copying } : null;
}

/** What a copying head does to the logit of the token it looks at, in numbers. @param {HeadRole} role */
export const copyingNumbers = ({ scores, baseline }) =>
  `it raises that token’s logit more than those of ${share(scores.copying)} of the others ` +
  `(random weights: ${share(baseline.copying)})`;
