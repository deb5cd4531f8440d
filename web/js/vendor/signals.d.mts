// The parts of @preact/signals-core that the page uses.

export interface ReadonlySignal<T> {
  readonly value: T;
  /** The value, without following it. */
  peek(): T;
}
export interface Signal<T> extends ReadonlySignal<T> {
  value: T;
}

export function signal<T>(value: T): Signal<T>;
/** A value that follows from the signals that `compute` reads. */
export function computed<T>(compute: () => T): ReadonlySignal<T>;
/** Run something at once, and again whenever a signal that it read changes. Returns what ends this. */
export function effect(run: () => void): () => void;
/** Set several signals; effects run once, at the end. */
export function batch<T>(run: () => T): T;
/** Read signals without following them. */
export function untracked<T>(run: () => T): T;
