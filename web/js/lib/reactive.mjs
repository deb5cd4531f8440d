// What follows from signals: effects that say what they read.

import { effect, untracked } from "../vendor/signals.mjs";

/** @param {unknown[]} now @param {unknown[]} before */
const areSame = (now, before) => now.length === before.length && now.every((value, i) => Object.is(value, before[i]));

/**
 * Act at once, and again whenever one of the values is another one. What `act` itself reads is not followed.
 * @param {() => unknown[]} read
 * @param {() => void} act
 */
export function whenever(read, act) {
  /** @type {unknown[] | null} */
  let before = null;
  return effect(() => {
    const now = read();
    if (before && areSame(now, before)) return;
    before = now;
    untracked(act);
  });
}

/**
 * The same, but not at first.
 * @param {() => unknown[]} read
 * @param {() => void} act
 */
export function onChange(read, act) {
  let isFirst = true;
  return whenever(read, () => {
    if (!isFirst) act();
    isFirst = false;
  });
}

/** Resolves once something is so. @param {() => unknown} isSo @returns {Promise<void>} */
export async function until(isSo) {
  /** @type {(() => void) | undefined} */
  let end;
  await new Promise((resolve) => (end = effect(() => void (isSo() && resolve(null)))));
  end?.();
}
