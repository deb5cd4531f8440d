// The line that asks: its subject is what the visitor chose last.

import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, pointer, weights } from "../recorded_run.mjs";
import { openWindow, press, texts } from "../widgets/small_dom.mjs";

openWindow("");
globalThis.fetch = async (url) => {
  const { pathname, searchParams } = new URL(url, "http://page.test");
  const start = Number(searchParams.get("start"));
  if (pathname.endsWith("rows")) return new Response(await frame(6, start));
  return pathname.includes("/heads/") ? new Response(weights(6, start)) : new Response("{}", { status: 404 });
};
const { QuestionList } = await import("../../../web/js/look/ask/all_questions.mjs");
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

test("heads that a question switches off are those that are off on the stage", async () => {
  const { store } = await opened();
  const { view } = store;
  const mixer = new Mixer(store);
  mixer.toggle([0, 0]);
  assert.deepEqual([mixer.isChanged, mixer.mask, view.options.off], [true, [[0]], "0.0"]);
  view.closeAsk();
  assert.deepEqual([mixer.isChanged, view.options.off], [false, "0.0"], "the stage still says that it is off");
  mixer.set(null);
  assert.deepEqual([mixer.isChanged, view.options.off], [false, ""]);
  view.set({ off: "0.0" });
  assert.deepEqual([mixer.isChanged, mixer.mask], [true, [[0]]]);
  mixer.scale([0, 0], 1.5);
  assert.deepEqual([mixer.mask, view.options.off], [[[1.5]], ""]);
});

test("Enter opens the question whose title has what was typed, before one that only tells of it", async () => {
  const { store } = await opened();
  const list = new QuestionList(store);
  list.show(true);
  const marked = (typed) => {
    list.field.value = typed;
    list.field.dispatchEvent(new Event("input"));
    return texts(list.element, "[data-first] b");
  };
  assert.deepEqual(marked(""), []);
  assert.deepEqual(marked("what if"), ["What if heads are off?"]);
  assert.deepEqual(marked("circuit"), ["Find the circuit"]);
  press(list.field, "Enter");
  assert.equal(store.view.options.ask, "circuit");
});
