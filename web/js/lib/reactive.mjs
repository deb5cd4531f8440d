// What follows from signals: effects that say what they read, and scopes, which end what was begun in them.

import { effect as follow, untracked } from "../vendor/signals.mjs";

/** @type {(() => void)[] | null} what ends with the scope that is being built */
let ends = null;

/**
 * Called when the scope that is being built ends. What is built outside any lasts as long as the page.
 * @param {() => void} end
 */
export const onEnd = (end) => void ends?.push(end);

/**
 * Build something that does not last as long as the page: its effects, observers and listeners end with `end`.
 * @template Built
 * @param {() => Built} build
 * @returns {{ built: Built, end: () => void }}
 */
export function scope(build) {
  const outer = ends;
  /** @type {(() => void)[]} */
  const own = (ends = []);
  const end = () => own.splice(0).forEach((one) => one());
  try {
    const built = build();
    outer?.push(end);
    return { built, end };
  } catch (error) {
    end();
    throw error;
  } finally {
    ends = outer;
  }
}

/** Act at once, and again whenever a signal that was read has another value. @param {() => void} act */
export function effect(act) {
  const end = follow(act);
  onEnd(end);
  return end;
}

/**
 * Follow the events of something that outlasts the scope: the window, the document, its fonts.
 * @param {EventTarget} target
 * @param {string} name
 * @param {(event: any) => void} act
 */
export function listen(target, name, act) {
  target.addEventListener(name, act);
  onEnd(() => target.removeEventListener(name, act));
}

/**
 * Act whenever one of the elements has another size, and once at first.
 * @param {() => void} act
 * @param {...Element} elements
 */
export function onResize(act, ...elements) {
  const observer = new ResizeObserver(act);
  for (const element of elements) observer.observe(element);
  onEnd(() => observer.disconnect());
  return observer;
}

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
  await new Promise((resolve) => (end = follow(() => void (isSo() && resolve(null)))));
  end?.();
}
