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

test("no rung's words contain a mark that is not one", () => {
  for (const { opening, path, deeper, after = [] } of RUNGS) {
    for (const entry of [...opening, ...path, ...deeper.parts, ...after].flatMap((each) =>
      typeof each === "string" ? [each] : "remarks" in each ? each.items : [],
    )) {
      const rest = marked(entry)
        .filter((part) => typeof part === "string")
        .join("");
      assert.doesNotMatch(rest.replace(/\{\w+\}/g, ""), /[`*[\]{}]/, entry);
    }
  }
});
