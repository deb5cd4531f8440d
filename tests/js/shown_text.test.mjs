// A shown text, with a server whose runs have one picture's worth of everything.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { onChange, until } from "../../web/js/lib/reactive.mjs";
import { ShownText } from "../../web/js/look/state/shown_text.mjs";
import { View } from "../../web/js/look/state/view.mjs";
import { frame, pointer, weights } from "./recorded_run.mjs";

let asked = [];
let written = { first: 6, second: 9, again: 6 };

beforeEach(() => {
  asked = [];
  written = { first: 6, second: 9, again: 6 };
  globalThis.document = { baseURI: "http://page/" };
  globalThis.cancelAnimationFrame = () => {};
  globalThis.fetch = async (url, { body }) => {
    const { pathname, searchParams } = new URL(url);
    const [, , run, what] = pathname.split("/");
    asked.push(body ? [run, what, JSON.parse(body)] : [run, what]);
    if (run === "lost") return Response.json({ detail: "gone" }, { status: 404 });
    const start = Number(searchParams.get("start"));
    return new Response(what === "rows" ? await frame(written[run], start) : weights(written[run], start));
  };
});

/** A shown text that has followed pointers, and fetched what they lead to. */
async function follow(...pointers) {
  const store = new ShownText(new View());
  store.playback.setSpeed(0);
  for (const one of pointers) {
    store.follow(one);
    await until(() => store.weights.rows >= one.rows);
  }
  return store;
}

test("a run is fetched, and the row that led to its newest token is in focus", async () => {
  const store = await follow(pointer("first", "done", 6));
  assert.equal(store.count, 6);
  assert.equal(store.tokens[5].text, "t5");
  assert.deepEqual(store.selection.focus, { query: 4, key: 0 });
  assert.equal(store.problem, "");
});

test("a run that is no longer kept is recomputed from what is known of it", async () => {
  const store = await follow(pointer("lost", "done", 6));
  assert.deepEqual(asked[1], ["again", "rows", { sha256: "a", ids: [], n_prompt: 2, head_mask: null }]);
  assert.deepEqual(asked[2][2].ids, [0, 1, 2, 3, 4, 5]); // and the lost one is not requested again
  assert.equal(store.count, 6);
});

test("rows arrive while the open head's weights take long", async () => {
  const { fetch } = globalThis;
  let answerHead = () => {};
  const answered = new Promise((resolve) => (answerHead = resolve));
  globalThis.fetch = async (url, options) => {
    if (String(url).includes("/heads/")) await answered;
    return fetch(url, options);
  };
  const store = new ShownText(new View());
  store.playback.setSpeed(0);
  store.follow(pointer("first", "waiting", 2));
  await until(() => store.data.rows >= 6);
  assert.equal(store.weights.rows, 0);
  written.first = 9;
  store.follow(pointer("first", "done", 9));
  await until(() => store.data.rows >= 9);
  assert.equal(store.weights.rows, 0);
  answerHead();
  await until(() => store.weights.rows >= 9);
});

test("another run replaces everything, and an abandoned one does not come back", async () => {
  const store = await follow(pointer("first", "done", 6));
  const { selection } = store;
  selection.lock({ query: 3 });
  selection.goto(4);
  store.follow(pointer("second", "done", 9));
  assert.deepEqual([selection.locked, selection.step, store.tokens], [[], null, []]);
  store.follow(pointer("first", "stopped", 6));
  assert.equal(store.pointer.run, "second");
});

test("an opening that comes late does not replace a text that is written", async () => {
  const store = new ShownText(new View());
  store.follow(pointer("first", "writing", 6));
  store.follow(pointer("second", "opening", 9));
  assert.equal(store.pointer.run, "first");
  store.follow(pointer("second", "opening", 9, { model: "other" }));
  assert.equal(store.pointer.run, "second");
});

test("a pointer without a run leaves the text, and brings its notices", async () => {
  const store = await follow(pointer("first", "done", 6));
  store.follow({ state: "none", notices: ["broken"] });
  assert.deepEqual([store.pointer.run, store.pointer.notices], ["first", ["broken"]]);
});

test("notices of the page itself join those of the server", async () => {
  const store = await follow(pointer("first", "done", 6, { notices: ["one"] }));
  store.notify("two");
  assert.deepEqual(store.pointer.notices, ["one", "two"]);
});

test("a hovered cell takes precedence over a locked one, and a locked one over the step", async () => {
  const { selection } = await follow(pointer("first", "done", 6));
  selection.goto(3);
  assert.equal(selection.focus.query, 2); // the row that token 3 was drawn from
  selection.lock({ query: 4, key: 1 });
  assert.deepEqual(selection.focus, { query: 4, key: 1 });
  selection.point({ query: 5, key: 5 });
  assert.deepEqual(selection.focus, { query: 5, key: 5 });
  assert.deepEqual(selection.queries, [5, 4]);
  selection.point(null);
  selection.lock(null);
  assert.equal(selection.focus.query, 2);
});

test("all panels show a locked row until another step is chosen", async () => {
  const { selection } = await follow(pointer("first", "done", 6));
  const cursor = () => {
    const { chosen, currentRow, predictor, focus, step } = selection;
    return [chosen, currentRow, predictor, focus.query, step];
  };
  selection.goto(3);
  selection.lock({ query: 4, key: 1 });
  assert.deepEqual(cursor(), [5, 4, 4, 4, null]); // only the locked row counts, not the step
  selection.goto(3);
  assert.deepEqual(cursor(), [3, 2, 2, 2, 3]);
  assert.deepEqual([selection.locked, selection.queries], [[{ query: 4, key: 1 }], [2, 4]]); // it is still marked
  selection.lock({ query: 0 });
  assert.deepEqual(cursor(), [1, 0, 0, 0, null]); // a token of the prompt is predicted too
  selection.lock({ query: 5 });
  assert.deepEqual(cursor(), [null, 5, 5, 5, null]); // nothing was written after the last
  selection.lock(null);
  assert.deepEqual(cursor(), [3, 2, 2, 2, 3]);
});

test("the prediction of any token can be shown, and a link returns to it", async () => {
  const store = await follow(pointer("first", "done", 6));
  const { selection } = store;
  for (const token of [1, 4, 1, 3]) {
    selection.look(token - 1);
    assert.deepEqual([selection.chosen, selection.predictor], [token, token - 1]);
    const { locked, step } = store.linkState;
    selection.restore(locked, step);
    assert.deepEqual([selection.chosen, selection.predictor], [token, token - 1]);
  }
});

test("locking a cell again unlocks it, and shift locks several", async () => {
  const { selection } = await follow(pointer("first", "done", 6));
  selection.lock({ query: 2 });
  selection.lock({ query: 2 });
  assert.deepEqual(selection.locked, []);
  selection.lock({ query: 2 });
  selection.lock({ query: 3, key: 1 }, true);
  selection.lock({ query: 2 }, true);
  assert.deepEqual(selection.locked, [{ query: 3, key: 1 }]);
});

test("a step stays between the second token and the newest", async () => {
  const store = await follow(pointer("first", "done", 6));
  const { selection } = store;
  assert.equal(store.firstReplayed, 1); // only few were written
  selection.goto(0);
  assert.equal(selection.step, 1);
  selection.goto(99);
  assert.equal(selection.step, null);
});

test("what follows a store acts once, however many of the values that it reads change", async () => {
  const store = await follow(pointer("first", "done", 6));
  let calls = 0;
  onChange(
    () => [store.selection.step, store.selection.selected, store.selection.chosen],
    () => (calls += 1),
  );
  store.selection.goto(3);
  assert.equal(calls, 1);
  store.selection.point(null); // nothing changes
  assert.equal(calls, 1);
});

test("the open picture is the nearest one where another model is smaller", async () => {
  const store = await follow(pointer("first", "done", 6, { n_layer: 4, n_head: 8 }));
  store.view.choose([3, 7]);
  store.follow(pointer("second", "done", 9, { sha256: "b", n_layer: 2, n_head: 4 }));
  assert.deepEqual(store.open, [1, 3]);
  store.follow(pointer("third", "opening", 9, { sha256: "c", head: [0, 2] }));
  assert.deepEqual(store.open, [0, 2]);
});
