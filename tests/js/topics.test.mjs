import assert from "node:assert/strict";
import { test } from "node:test";
import { Topics } from "../../web/js/lib/topics.mjs";

test("a listener of several topics runs once for a change of them all", () => {
  const topics = new Topics();
  let [count, other] = [0, 0];
  topics.on("state tokens", () => count++);
  topics.on("looks-back", () => other++);
  topics.emit("state", "tokens");
  assert.deepEqual([count, other], [1, 0]);
  topics.emit("looks-back");
  assert.deepEqual([count, other], [1, 1]);
  topics.emit("unknown");
});

test("a topic that nobody could hear cannot be emitted", () => {
  assert.throws(() => new Topics().emit("looks back"), /one name, found "looks back"/);
});
