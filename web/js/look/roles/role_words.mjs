// What a head does, in words: on its tile, in one line, and in sentences.

import { spokenHead } from "../../lib/heads.mjs";
import { share } from "../../lib/numbers.mjs";
import { capitalised } from "../../lib/words.mjs";
import { scaleOf } from "../../lib/head_masks.mjs";
import { bestRole, clearRole, copies, COPYING, copyingNumbers, roleOf, ROLES } from "./head_roles.mjs";
import { fixedDistance, patternDoes, patternName, shareInText } from "./text_patterns.mjs";

/** @import { PictureId, Pointer } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const NEAR_RATIO = 3; // times the score of uniform attention: below it a head is not close to any role

/**
 * A head's role in a sentence or two; "" if it is not known.
 * @param {ShownText} store
 * @param {PictureId} picture
 */
export function roleSentence(store, picture) {
  const role = roleOf(store, picture);
  if (!role) return "";
  const name = spokenHead(picture);
  const best = bestRole(role);
  const { scores, baseline } = role;
  const uniform = baseline[best].toFixed(2);
  const score = `${scores[best].toFixed(2)} ± ${role.errors[best].toFixed(2)}`;
  const numbers = `${score} on random tokens, where uniform attention scores ${uniform}`;
  const copying = copies(role) ? ` It copies: when it looks at a token, ${copyingNumbers(role)}.` : "";
  if (role.label === ROLES[best].name) return `Role of ${name}: ${ROLES[best].name} (${numbers}).${copying}`;
  const distance = fixedDistance(store, picture);
  if (distance) {
    const does = `In this text, ${name} ${patternDoes(distance)}: ${distance.mean.toFixed(2)} on average.`;
    return `${does} Of the roles below, its highest score is for ${ROLES[best].name} (${numbers}).${copying}`;
  }
  const highest = `its highest score is for ${ROLES[best].name} (${numbers})`;
  return `${capitalised(name)} has no clear role in where it looks: ${highest}.${copying}`;
}

/**
 * What a head does, in plain words; "" if it is not known.
 * @param {ShownText} store
 * @param {PictureId} picture
 */
export function rolePlain(store, picture) {
  const role = roleOf(store, picture);
  if (!role) return "";
  const name = spokenHead(picture);
  const best = bestRole(role);
  const [score, even] = [share(role.scores[best]), share(role.baseline[best])];
  if (role.label === ROLES[best].name) {
    const also = copies(role) ? " It also copies what it finds there." : "";
    const own = shareInText(store, picture, best);
    const here = own === null ? "" : `, and in this text with ${share(own)}`;
    const chance = `(uniform attention: ${even})`;
    return `On random tokens, ${name} ${ROLES[best].does}, with ${score} of its attention ${chance}${here}.${also}`;
  }
  const distance = fixedDistance(store, picture);
  if (distance) {
    const also = copies(role) ? ` It also ${COPYING.does}.` : "";
    return `In this text, ${name} ${patternDoes(distance)}, with ${share(distance.mean)} of its attention.${also}`;
  }
  if (copies(role)) return `${capitalised(name)} ${COPYING.does}: ${copyingNumbers(role)}.`;
  const none = `On random tokens, ${name} fits none of the known patterns`;
  if (role.scores[best] < NEAR_RATIO * role.baseline[best]) {
    const highest = `the highest is ${score}, for ${ROLES[best].name}; uniform attention would score ${even}`;
    return `${none}: no score is clearly above that of uniform attention (${highest}).`;
  }
  return `${none}. The closest: it ${ROLES[best].does}, with ${score} of its attention.`;
}

/**
 * A head's role in one line; "" if it is not known.
 * @param {ShownText} store
 * @param {PictureId} picture
 */
export function shortRole(store, picture) {
  const role = roleOf(store, picture);
  if (!role) return "";
  const best = bestRole(role);
  const score = role.scores[best].toFixed(2);
  const chance = `by chance ${role.baseline[best].toFixed(2)}`;
  const copying = `copies ${role.scores.copying.toFixed(2)}`;
  if (role.label === ROLES[best].name) {
    return `On random tokens: ${role.label} ${score}, ${chance}${copies(role) ? `; ${copying}` : ""}`;
  }
  if (copies(role)) return `By its weights: ${copying}, by chance ${role.baseline.copying.toFixed(2)}`;
  if (fixedDistance(store, picture)) return "On random tokens: none of the known roles";
  return `On random tokens: no clear role (${ROLES[best].name} ${score}, ${chance})`;
}

/**
 * A role on a tile: a `word`, or a `tag` if there is no room for it; its score as text, and where that was measured.
 * @typedef {{ tag: string, word: string, text: string, where: string }} Label
 */

/** @type {Label} */
export const NO_LABEL = { tag: "", word: "", text: "", where: "" };

/**
 * Where a head looks on random tokens; else at which distance it looks in this text; else whether it copies.
 * @param {ShownText} store
 * @param {PictureId} head
 * @returns {Label}
 */
export function labelOf(store, head) {
  const role = clearRole(store, head);
  const isCopying = role?.name === COPYING.name;
  const distance = role && !isCopying ? null : fixedDistance(store, head);
  if (distance) {
    const text = `${patternName(distance)} ${distance.mean.toFixed(2)}`;
    const tag = `${distance.back} back`;
    return { tag, word: tag, text, where: "in this text" };
  }
  if (!role) return NO_LABEL;
  const where = isCopying ? "by its weights" : "on random tokens";
  return { tag: role.tag, word: role.word, text: `${role.name} ${role.score.toFixed(2)}`, where };
}

/**
 * A note on the scale of a head for its picture; "" if it is not scaled.
 * @param {Pick<Pointer, "head_mask">} pointer
 * @param {PictureId} picture
 */
export function scaledWords({ head_mask }, picture) {
  const scale = scaleOf(head_mask, picture);
  if (scale === 0) return "Removed: this head still attends, but none of its output is added.";
  return scale === 1 ? "" : `Scaled: the output of this head is multiplied by ${scale}.`;
}
