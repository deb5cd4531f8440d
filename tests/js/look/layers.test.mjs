// Look's folders have an order: a module imports, values and types alike, from its own folder and those before it.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const LOOK = path.resolve(import.meta.dirname, "../../../web/js/look");
const FOLDERS = ["state", "roles", "panels", "export", "compare", "stage", "ask"];
const LAST = FOLDERS.length; // Look's own files, and those that begin a saved file

/** The place of a file of Look in that order; -1 for what lies outside. @param {string} file */
function placeOf(file) {
  const within = path.relative(LOOK, file);
  if (within.startsWith("..")) return -1;
  const at = FOLDERS.indexOf(within.split(path.sep)[0]);
  return at < 0 ? LAST : at;
}

/** What a file imports, be it a value or a type. @param {string} file */
const importsOf = (file) =>
  [...readFileSync(file, "utf8").matchAll(/\b(?:from|import\() ?"(\.[^"]+)"/g)].map(([, to]) =>
    path.resolve(path.dirname(file), to),
  );

test("Look's folders import from those before them", () => {
  const files = readdirSync(LOOK, { recursive: true }).filter((file) => /\.(mjs|d\.ts)$/.test(file));
  const imports = files.flatMap((file) => importsOf(path.join(LOOK, file)).map((to) => [file, to]));
  const upward = imports.filter(([file, to]) => placeOf(to) > placeOf(path.join(LOOK, file)));
  assert.ok(imports.length > 500);
  assert.deepEqual(upward, []);
});
