import assert from "node:assert/strict";
import { test } from "node:test";
import { Emitter } from "../../web/js/lib/emitter.mjs";

test("a listener of several topics runs once for a change of them all, and gets them", () => {
  const emitter = new Emitter();
  let [count, other] = [0, 0];
  emitter.on("state tokens", (topics) => {
    count++;
    assert.deepEqual(topics, ["state", "tokens"]);
  });
  emitter.on("looks-back", () => other++);
  emitter.emit("state", "tokens");
  assert.deepEqual([count, other], [1, 0]);
  emitter.emit("looks-back");
  assert.deepEqual([count, other], [1, 1]);
  emitter.emit("unknown");
});

test("a topic without possible listeners cannot be emitted", () => {
  assert.throws(() => new Emitter().emit("looks back"), /one name, found "looks back"/);
});

test("next resolves once", async () => {
  const emitter = new Emitter();
  let count = 0;
  const waiting = emitter.next("roles").then(() => count++);
  emitter.emit("roles");
  emitter.emit("roles");
  await waiting;
  assert.equal(count, 1);
});
