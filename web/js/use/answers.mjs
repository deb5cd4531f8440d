// How the answers of examples look: as text, as bars, or as they are.

import { thousands } from "../lib/numbers.mjs";
import { make } from "../lib/dom.mjs";
import { bar } from "../widgets/controls.mjs";

/** @import { Path } from "../calls/call.mjs" */

const MOST_BARS = 4;
const MOST_CHARACTERS = 1200;
const END_OF_PROMPT = 60; // characters of a prompt that are repeated before what follows it

/** @param {string} prompt @param {string} text what follows it */
export function continued(prompt, text) {
  const end = prompt.length > END_OF_PROMPT ? `… ${prompt.slice(-END_OF_PROMPT).replace(/^\S*\s/, "")}` : prompt;
  return [make("p", { class: "hu-text" }, end, make("b", {}, text))];
}

/**
 * The largest values.
 * @param {string} about
 * @param {{ name: string, value: number }[]} values
 * @param {(value: number) => string} write
 */
export function bars(about, values, write) {
  const largest = values.toSorted((a, b) => b.value - a.value).slice(0, MOST_BARS);
  const rows = largest.flatMap(({ name, value }) => [
    make("span", {}, name),
    bar(Math.max(0, value / largest[0].value)),
    make("span", {}, write(value)),
  ]);
  return [make("p", { class: "hu-soft" }, about), make("div", { class: "hu-bars" }, ...rows)];
}

/**
 * What code prints of an answer: curl all of it, others a part, which every language writes a little differently.
 * @param {string} answer in JSON
 * @param {Path | null} part null for all of it
 */
export function printed(answer, part) {
  const found = part?.reduce(
    (/** @type {any} */ value, at) => (at === -1 ? value.at(at) : value[at]),
    JSON.parse(answer),
  );
  const isText = typeof found === "string";
  const text = part === null ? answer : isText ? found : JSON.stringify(found);
  const isLong = text.length > MOST_CHARACTERS;
  return {
    how: part === null || isText ? "The code prints:" : "The code prints, here as JSON:",
    shown: [
      make("code", {}, isLong ? `${text.slice(0, MOST_CHARACTERS)} … (${thousands(text.length)} characters)` : text),
    ],
  };
}

/** What a safetensors file holds. @param {ArrayBuffer} file */
export function files(file) {
  const length = Number(new DataView(file).getBigUint64(0, true));
  const names = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length)));
  const rows = Object.entries(names).filter(([name]) => name !== "__metadata__");
  return rows.map(([name, { shape, dtype }]) =>
    make("p", {}, make("code", {}, name), ` has ${shape.join(" × ")} numbers (${dtype}).`),
  );
}
