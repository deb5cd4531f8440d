// Which heads do the same at a token, and where in a text heads look back most clearly.

import { isHead, isSamePicture } from "../../lib/heads.mjs";
import { scaleOf, withScale } from "../../lib/head_masks.mjs";
import { wait } from "../../lib/latest.mjs";
import { plainly } from "../../lib/words.mjs";
import { copies, roleOf } from "./head_roles.mjs";

/** @import { Mask } from "../../lib/head_masks.mjs" */
/** @import { Focus, PictureId } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const MIN_COPIED = 0.1; // of its attention: a copying head that gives a word this much makes it likely
const MIN_LOOK = 0.3; // of its attention: any other head that gives a word this much looks at it
export const MIN_FOCUSED = 0.1; // if the strongest weight is below this, the head is said to look everywhere
const ROLES_TIMEOUT = 10_000; // milliseconds to wait for the heads' roles

/** Whether the open picture is a head that is not switched off. @param {ShownText} store */
export const isOn = ({ open, pointer }) => isHead(open, pointer) && scaleOf(pointer.head_mask, open) !== 0;

/**
 * Whether the open head looks at another token.
 * @param {ShownText} store
 * @param {number} [least] of its attention
 */
export function looksElsewhere(store, least = MIN_FOCUSED) {
  const { query, key } = store.selection.focus ?? {};
  const isElsewhere = query !== undefined && key != null && key !== query;
  return isElsewhere && isOn(store) && store.weights.at(query, key) >= least;
}

/**
 * Heads to switch off together, the mask without them, and the token that looks.
 * @typedef {{ heads: PictureId[], mask: Mask, query: number }} Removal
 */

/**
 * The heads that are selected together; else those that do what the open one does at the token in focus. Null if that
 * is not known.
 * @param {ShownText} store
 * @returns {Promise<Removal | null>}
 */
export async function withoutAlike(store) {
  const { fetcher, pointer } = store;
  const { focus } = store.selection;
  if (!focus || focus.key === null) return null;
  const { query } = focus;
  /** @param {PictureId[]} heads */
  const without = (heads) => ({ heads, mask: withScale(pointer.head_mask, pointer, heads, 0), query });
  const { chosen } = store.selectedHeads;
  if (chosen.length > 1) return without(chosen);
  if (!looksElsewhere(store)) return without([store.open]);
  try {
    const weights = await fetcher.query(focus.query);
    // On a page that has just been opened, what the heads do is not known yet.
    if (!store.roles) await Promise.race([store.rolesKnown(), wait(ROLES_TIMEOUT)]);
    if (fetcher !== store.fetcher) return null;
    return without(headsAlike(store, weights, focus));
  } catch (error) {
    store.report(`Could not fetch the attention weights: ${/** @type {Error} */ (error).message}`);
    return null;
  }
}

/**
 * The heads that do what the open one does at a token: if it copies, all copying heads that look at the same word;
 * otherwise, all that give this word much of their attention.
 * @param {ShownText} store
 * @param {Float32Array} weights of the query in every picture
 * @param {Focus} focus
 */
function headsAlike(store, weights, { query, key }) {
  const { tokens, data, open: like } = store;
  const word = plainly(tokens[key ?? 0].text);
  const keys = tokens.slice(0, query + 1).flatMap(({ text }, i) => (plainly(text) === word ? [i] : []));
  const isCopying = copies(roleOf(store, like));
  /** @param {PictureId} head */
  const isAlike = (head) => {
    const start = data.index(head) * (query + 1);
    const weight = keys.reduce((sum, at) => sum + weights[start + at], 0);
    return isCopying ? weight >= MIN_COPIED && copies(roleOf(store, head)) : weight >= MIN_LOOK;
  };
  return data.heads.filter((head) => isSamePicture(head, like) || isAlike(head));
}
