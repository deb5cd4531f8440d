import assert from "node:assert/strict";
import { test } from "node:test";
import { showOpening } from "../../../web/js/look/compare/address.mjs";
import { View } from "../../../web/js/look/state/view.mjs";

const POINTER = { head: [1, 3], n_layer: 2, n_head: 4, n_prompt: 3, tokens: 10 };

/** What an opening is shown as. @param {string} search the query of the page's address */
function shownAt(search) {
  const restored = [];
  const store = {
    pointer: POINTER,
    view: new View(),
    selection: { restore: (...words) => restored.push(words) },
    notify: (problem) => assert.fail(problem),
  };
  showOpening(store, search);
  assert.equal(restored.length, 1);
  return store.view;
}

test("a link that names a question and no text opens the question on the opening", () => {
  for (const search of ["?ask=patch", "?model=tiny&ask=patch"]) {
    const view = shownAt(search);
    assert.equal(view.options.ask, "patch");
    assert.deepEqual(view.open, [1, 3]);
  }
});

test("without a question an opening is shown at its own head", () => {
  const view = shownAt("?model=tiny");
  assert.equal(view.options.ask, "");
  assert.deepEqual(view.open, [1, 3]);
});
