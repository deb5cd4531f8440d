// The words of the rungs, and the marks in them.

import assert from "node:assert/strict";
import test from "node:test";

import { openWindow } from "../widgets/small_dom.mjs";
import { RUNGS } from "../../../web/js/learn/main.mjs";
import { marked } from "../../../web/js/learn/widgets/content.mjs";

openWindow("");

/** @param {(string | Node)[]} parts */
const shown = (parts) =>
  parts.map((part) => (typeof part === "string" ? part : `<${part.nodeName.toLowerCase()}>${part.textContent}`));

test("marks become terms, code, definitions, links and parts", () => {
  const part = globalThis.document.createElement("b");
  part.textContent = "4";
  const found = shown(
    marked("A *head* calls `f(x)`, in [nats] or [by logits](logits): [train](#train), {n} times.", { n: part }),
  );
  assert.deepEqual(
    found.join("|"),
    "A |<dfn>head| calls |<code>f(x)|, in |<button>nats| or |<button>by logits|: |<a>train|, |<b>4| times.",
  );
});

test("what only looks like a mark stays text", () => {
  for (const text of ["ends with [EOS]", "a set {a, b}", "2 * 3"]) assert.equal(shown(marked(text)).join(""), text);
});

const MOST_WORDS = 2_000; // on all main paths together: ten minutes of reading

/** All paragraphs, headings and remarks. @param {import("../../../web/js/learn/rung.js").Entry[]} entries */
const textsIn = (entries) =>
  entries.flatMap((entry) => (typeof entry === "string" ? [entry] : "remarks" in entry ? entry.items : []));

test("the main paths are short", () => {
  const texts = RUNGS.flatMap(({ steps, next }) => [next, ...steps.flatMap(({ text }) => textsIn(text))]);
  const words = texts.flatMap((text) => text.split(/\s+/));
  assert.ok(words.length <= MOST_WORDS, `${words.length} words`);
});

test("no rung's words contain a mark that is not one", () => {
  for (const { steps, next, deeper, after = [] } of RUNGS) {
    const entries = [...steps.flatMap(({ text }) => text), next, ...deeper.parts, ...after];
    for (const text of textsIn(entries)) {
      const rest = marked(text).filter((part) => typeof part === "string");
      assert.doesNotMatch(rest.join("").replace(/\{\w+\}/g, ""), /[`*[\]{}]/, text);
    }
  }
});

test("every step shows parts of the figure, and every exercise follows a step or stands at the end", () => {
  for (const { name, steps, figure, exercises } of RUNGS) {
    const parts = figure.flatMap((entry) => {
      if (typeof entry === "string" || "remarks" in entry) return [];
      return "show" in entry ? [entry.show] : "row" in entry ? entry.row : entry.controls;
    });
    for (const { show } of steps) for (const part of show) assert.ok(parts.includes(part), `${name}: ${part}`);
    const titles = [undefined, ...steps.map(({ title }) => title)];
    for (const { ask, after } of exercises) assert.ok(titles.includes(after), `${name}: ${ask}`);
  }
});
