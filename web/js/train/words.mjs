// How the Train tab writes numbers.

/** @import { Size } from "./types.js" */

/** @param {number} n */
export const thousands = (n) => n.toLocaleString("en");

/** @param {number} bytes */
export const megabytes = (bytes) => (bytes < 1e5 ? `${thousands(bytes)} bytes` : `${(bytes / 1e6).toFixed(1)} MB`);

/** @param {number} n */
export const weights = (n) => `${(n / 1e6).toFixed(2)} M weights`;

/** A duration in everyday words. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 55) return `${Math.max(1, Math.round(seconds))} seconds`;
  const minutes = Math.round(seconds / 60);
  if (minutes === 60) return "an hour";
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}

/** What a size costs. @param {Pick<Size, "n_parameters" | "seconds">} size */
export const cost = ({ n_parameters, seconds }) => `${weights(n_parameters)}, about ${duration(seconds)}`;

/** A probability as a percentage with two significant digits: "23%", "0.23%". @param {number} probability */
export function percent(probability) {
  const value = 100 * probability;
  if (value < 0.01) return "less than 0.01%";
  return `${Number(value.toPrecision(value < 99 ? 2 : 3))}%`;
}

/** Seconds as minutes and seconds: "1:05". @param {number} seconds */
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
