// How much another reading changes the log-probability of the tokens that both texts have.

import { fixed, probabilityChange, signed } from "../../lib/numbers.mjs";

/** @import { Pointer, Token } from "../../types.js" */
/** @import { Alignment } from "./alignment.mjs" */

/** @typedef {{ a: number, b: number, change: number }} TokenChange log-probabilities in nats */

/**
 * Whether two texts were read differently, so that equal tokens may differ in probability.
 * @param {Pick<Pointer, "sha256" | "head_mask">} a
 * @param {Pick<Pointer, "sha256" | "head_mask">} b
 */
export const areReadDifferently = (a, b) =>
  a.sha256 !== b.sha256 || JSON.stringify(a.head_mask) !== JSON.stringify(b.head_mask);

/**
 * The change at each token of B up to where the texts part: after that its past is another one. Null for a token that
 * nobody predicted.
 * @param {Alignment} alignment token by token
 * @param {Pick<Token, "logprob">[]} a
 * @param {Pick<Token, "logprob">[]} b
 * @returns {(TokenChange | null)[]}
 */
export function tokenChanges({ pieces, parting, isTokenByToken }, a, b) {
  if (!isTokenByToken) return [];
  return pieces.slice(0, parting ?? pieces.length).map(({ a0, b0 }) => {
    const [left, right] = [a[a0]?.logprob, b[b0]?.logprob];
    return left == null || right == null ? null : { a: left, b: right, change: right - left };
  });
}

/** @param {number} value in nats */
export const nats = (value) => signed(value, (size) => fixed(size, 3));

/**
 * The changes of a text in a sentence; "" where there are none.
 * @param {(TokenChange | null)[]} changes
 * @param {number | null} parts the token at which the texts part
 */
export function changeSentence(changes, parts) {
  const known = changes.filter((each) => each !== null);
  if (!known.length) return "";
  const sum = known.reduce((total, { change }) => total + change, 0);
  const shared = parts === null ? "" : `The texts part at token ${parts}. `;
  const before = parts === null ? "" : " before that";
  const mean = sum / known.length;
  const of =
    known.length === 1
      ? `The token that both predict${before} is`
      : `The ${known.length} tokens that both predict${before} are on average`;
  return `${shared}${of} ${probabilityChange(-mean)} in B: ${nats(sum)} nats in all, ${nats(mean)} a token.`;
}
