// The line that asks: its subject is what the visitor chose last.

import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, pointer, weights } from "../recorded_run.mjs";
import { openWindow } from "../widgets/small_dom.mjs";

openWindow("");
globalThis.fetch = async (url) => {
  const { pathname, searchParams } = new URL(url, "http://page.test");
  const start = Number(searchParams.get("start"));
  if (pathname.endsWith("rows")) return new Response(await frame(6, start));
  return pathname.includes("/heads/") ? new Response(weights(6, start)) : new Response("{}", { status: 404 });
};
const { AskLine } = await import("../../../web/js/look/ask/ask_line.mjs");
const { Mixer } = await import("../../../web/js/look/state/mixer.mjs");
const { ShownText } = await import("../../../web/js/look/state/shown_text.mjs");
const { until } = await import("../../../web/js/lib/reactive.mjs");
const { View } = await import("../../../web/js/look/state/view.mjs");

async function opened() {
  const store = new ShownText(new View());
  store.follow(pointer("first", "done", 6));
  await until(() => store.length === 6);
  const step = /** @type {any} */ ({ known: null, shown: null, texts: [] });
  const line = new AskLine(store, step, () => {});
  const subject = () => line.subjects.findIndex((one) => one.getAttribute("aria-checked") === "true");
  return { store, line, subject };
}
const [WORD, HEAD, TEXT] = [0, 1, 2];

test("a head that was chosen stays the subject while its questions are answered", async () => {
  const { store, subject } = await opened();
  assert.equal(subject(), WORD);
  store.choosePicture([0, 1]);
  assert.equal(subject(), HEAD);
  store.selection.settle(); // as a question does
  assert.equal(store.selection.step, 5);
  store.selection.point({ query: 4, key: 2 });
  store.selection.lock({ query: 4, key: 2 });
  assert.equal(subject(), HEAD);
  store.confirm(pointer("other name", "done", 6));
  assert.equal(subject(), HEAD);
});

test("a word that is chosen becomes the subject, and so does that of another text", async () => {
  const { store, line, subject } = await opened();
  line.subjects[TEXT].click();
  assert.equal(subject(), TEXT);
  store.selection.look(2);
  assert.equal(subject(), WORD);
  store.choosePicture([0, 1]);
  store.follow(pointer("second", "done", 6));
  assert.equal(subject(), WORD);
});

test("closing the question that switches heads off switches them on again", async () => {
  const { store } = await opened();
  const mixer = new Mixer(store);
  mixer.toggle([0, 0]);
  assert.deepEqual([mixer.isChanged, mixer.mask], [true, [[0]]]);
  store.view.closeAsk();
  assert.deepEqual([mixer.isChanged, mixer.mask ?? null], [false, null]);
});
