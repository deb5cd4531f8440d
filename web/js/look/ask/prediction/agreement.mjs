// Whether four measures of one head agree about the keys, in one sentence.

import { exact, probabilityChange } from "../../../lib/numbers.mjs";
import { visible } from "../../../lib/words.mjs";
import { signed } from "./signed_bar.mjs";

/** @import { HeadLenses, KeyMeasures } from "./answers.js" */

const SMALL = 0.01; // nats: a change of the loss below it is called next to nothing
const AGREE = 0.7; // a rank correlation from which two measures are said to agree

/** @param {KeyMeasures} key */
const named = ({ text, position }) => `“${visible(text)}” (position ${position})`;

/**
 * The key with the largest value.
 * @param {KeyMeasures[]} keys
 * @param {(key: KeyMeasures) => number} value
 */
const strongest = (keys, value) => keys.reduce((best, key) => (value(key) > value(best) ? key : best));

/**
 * The rank correlation of two measures.
 * @param {Pick<HeadLenses, "correlations">} answer
 * @param {string} one
 * @param {string} other
 */
export function correlation({ correlations }, one, other) {
  const found = correlations.find(({ measures }) => measures.includes(one) && measures.includes(other));
  return found?.spearman ?? null;
}

/** What the measures come down to, in plain words. @param {HeadLenses} answer */
export function agreementPlain({ keys, layer, head, token }) {
  const name = `L${layer} H${head}`;
  const looked = strongest(keys, (key) => key.weight);
  const matters = strongest(keys, (key) => Math.abs(key.loss_change));
  if (keys.length === 1) return `${name} has only one token to look at here.`;
  if (Math.abs(matters.loss_change) < SMALL) {
    return `Where ${name} looks hardly matters here: no single token that it looks at makes a difference.`;
  }
  const without = `without it “${visible(token.text)}” would be ${probabilityChange(matters.loss_change)}`;
  return looked === matters
    ? `${name} looks most at ${named(looked)}, and that matters: ${without}.`
    : `${name} looks most at ${named(looked)}, but ${named(matters)} matters more: ${without}.`;
}

/** @param {Pick<HeadLenses, "keys" | "correlations">} answer */
export function agreement(answer) {
  const { keys } = answer;
  const looked = strongest(keys, (key) => key.weight);
  const matters = strongest(keys, (key) => Math.abs(key.loss_change));
  if (keys.length === 1) return "There is only one token to look at, so all of the head’s attention is there.";
  if (Math.abs(matters.loss_change) < SMALL) {
    const most = `at most ${exact(Math.abs(matters.loss_change))} nats`;
    return `Cutting any one edge changes the loss by ${most}: where this head looks hardly matters for this token.`;
  }
  const change = `cutting that edge changes the loss by ${signed(matters.loss_change, 3)} nats`;
  if (looked !== matters) {
    const weights = `weight ${exact(looked.weight)} against ${exact(matters.weight)}`;
    const both = `it looks most at ${named(looked)}, but ${named(matters)} matters most (${weights})`;
    return `The measures disagree: ${both}; ${change}.`;
  }
  const rho = correlation(answer, "weight", "loss_change");
  const both = `It looks most at ${named(looked)}, which also matters most: ${change}.`;
  if (rho === null || rho >= AGREE) return both;
  return `${both} Over all keys they disagree: the rank correlation of weight and loss change is ${signed(rho)}.`;
}
