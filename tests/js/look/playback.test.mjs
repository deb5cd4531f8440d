// How much of a text is shown in each frame.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Playback } from "../../../web/js/look/state/playback.mjs";

let now = 0;
let frames = [];

beforeEach(() => {
  now = 1000;
  frames = [];
  globalThis.document = { hidden: false };
  globalThis.performance = { now: () => now };
  globalThis.requestAnimationFrame = (callback) => frames.push(callback);
  globalThis.cancelAnimationFrame = (id) => (frames[id - 1] = undefined);
});

/** Advance the clock, and run the pending frame. */
function frame(milliseconds) {
  now += milliseconds;
  const [callback] = frames.filter(Boolean);
  frames = [];
  callback?.(now);
}

/** Of a text of which two tokens are shown, at 20 tokens a second. */
function playback() {
  const calls = [];
  const made = new Playback(() => calls.push(made.shown));
  made.reset(2);
  made.setSpeed(20);
  return { made, calls };
}

test("a token appears each period, however many are known", () => {
  const { made } = playback();
  made.extend(100, false);
  const shown = [];
  for (let i = 0; i < 100; i++) {
    frame(10);
    shown.push(made.shown);
  }
  assert.equal(shown[0], 3); // the first at once
  for (let i = 1; i < shown.length; i++) assert.ok(shown[i] - shown[i - 1] <= 1);
  assert.equal(shown.at(-1), 2 + 1 + 20);
});

test("it never shows what is not known, and ends with all of it", () => {
  const { made } = playback();
  made.extend(4, false);
  frame(10_000);
  assert.equal(made.shown, 4);
  assert.equal(made.isBehind, false);
  assert.equal(frames.length, 0);
});

test("it waits while it is paused, whatever arrives, and continues at its pace", () => {
  const { made } = playback();
  made.extend(10, false);
  frame(10);
  made.pause(true);
  frame(1000);
  made.extend(50, false);
  made.setSpeed(60);
  made.setSpeed(0);
  assert.equal(made.shown, 3);
  assert.ok(made.isPaused && made.isBehind);
  made.setSpeed(20);
  made.pause(false);
  frame(10);
  assert.equal(made.shown, 4);
  frame(50);
  assert.equal(made.shown, 5);
});

test("skipped text is not paused", () => {
  const { made } = playback();
  made.extend(10, false);
  made.pause(true);
  made.skip();
  made.extend(20, false);
  assert.equal(made.shown, 20);
  assert.equal(made.isPaused, false);
});

test("rows are fetched a second and a half ahead, and again when less than half a second is left", () => {
  const { made } = playback();
  assert.equal(made.rowsToFetch(100), 100); // of a text that is not behind
  made.extend(100, false);
  assert.equal(made.rowsToFetch(100), 2 + 30);
  assert.equal(made.rowsToFetch(8), 8);
  assert.ok(made.needsRows(11, 100) && !made.needsRows(12, 100));
  assert.ok(!made.needsRows(6, 6));
});

test("after a pause the pace starts over", () => {
  const { made } = playback();
  made.extend(3, false);
  frame(16);
  now += 60_000; // the model was slow
  made.extend(50, false);
  frame(16);
  assert.equal(made.shown, 4);
});

test("a late frame catches up, and no more", () => {
  const { made } = playback();
  made.extend(100, false);
  frame(0);
  frame(500);
  assert.equal(made.shown, 2 + 1 + 10);
});

test("skipping shows all, and all that is still to come", () => {
  const { made, calls } = playback();
  made.extend(50, false);
  made.skip();
  assert.equal(made.shown, 50);
  made.extend(70, false);
  assert.deepEqual([made.shown, calls.at(-1)], [70, 70]);
  made.reset(0); // another text starts at its own pace
  made.extend(10, false);
  assert.equal(made.shown, 0);
});

test("without a pace, and in a hidden tab, everything is shown at once", () => {
  const { made } = playback();
  made.setSpeed(0);
  made.extend(30, false);
  assert.equal(made.shown, 30);
  made.setSpeed(20);
  globalThis.document.hidden = true;
  made.extend(60, false);
  assert.equal(made.shown, 60);
});

test("another speed continues from the same place", () => {
  const { made } = playback();
  made.extend(200, false);
  frame(0);
  frame(1000);
  const before = made.shown;
  made.setSpeed(60);
  frame(500);
  assert.equal(made.shown - before, 31);
});

test("a token waits for the pictures of its step, but not long", () => {
  const arrived = { tokens: 3 };
  const made = new Playback(
    () => {},
    (n) => n <= arrived.tokens,
  );
  made.reset(2);
  made.setSpeed(20);
  made.extend(100, false);
  frame(16);
  assert.equal(made.shown, 3);
  frame(50);
  frame(60);
  assert.equal(made.shown, 3); // the next one was due, but its pictures are missing
  frame(30);
  assert.equal(made.shown, 4);
  frame(55);
  assert.equal(made.shown, 5); // at its pace, without waiting again
  arrived.tokens = 6;
  frame(50);
  assert.equal(made.shown, 6);
  frame(50);
  assert.equal(made.shown, 6); // waits again, since the pictures had caught up
  arrived.tokens = 100;
  frame(16);
  assert.equal(made.shown, 7);
});

test("slow drawings are made less often", () => {
  const made = new Playback(() => (now += 40));
  made.reset(2);
  made.setSpeed(20);
  made.extend(100, false);
  frame(16);
  const after = made.shown;
  frame(30);
  assert.equal(made.shown, after);
  frame(50);
  assert.ok(made.shown > after);
});

test("a word of several tokens appears whole, once all of it has arrived, and keeps the pace", () => {
  const arrived = { tokens: 100 };
  const made = new Playback(
    () => {},
    (n) => n <= arrived.tokens,
    (n) => n === 3 || n === 4 || n >= 20,
  );
  made.reset(2);
  made.setSpeed(20);
  made.extend(40, false);
  frame(16);
  assert.equal(made.shown, 5); // 2 is a word of three tokens, 2 to 4
  frame(50);
  frame(40);
  assert.equal(made.shown, 5); // which take the time of three
  frame(50);
  assert.equal(made.shown, 6);
  arrived.tokens = 20;
  frame(2000);
  assert.equal(made.shown, 19); // the rest of the next word has not arrived
  frame(0);
  frame(90);
  assert.equal(made.shown, 27); // which is not waited for long
});

test("what nothing separates appears a part at a time", () => {
  const made = new Playback(
    () => {},
    () => true,
    () => true,
  );
  made.reset(0);
  made.setSpeed(20);
  made.extend(100, false);
  frame(16);
  assert.equal(made.shown, 8);
});
