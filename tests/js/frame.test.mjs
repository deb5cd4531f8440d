// The decoder against the fixture that tests/unit/web/test_frame.py checks the server with.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decode } from "../../web/js/look/state/run_fetcher.mjs";
import { METRIC_ORDER, METRICS, N_METRICS, UNIFORM } from "../../web/js/lib/metrics.mjs";

const fixture = (name) => readFileSync(new URL(`../fixtures/${name}`, import.meta.url));
const golden = JSON.parse(fixture("frame.json").toString());
const bytes = () => Uint8Array.from(fixture("frame.bin"));

test("a frame decodes to what the server encoded", () => {
  const { header, metrics, thumbnails } = decode(bytes().buffer);
  assert.deepEqual(header, golden.header);
  assert.deepEqual(Array.from(metrics), golden.metrics.flat());
  assert.deepEqual(Array.from(thumbnails), golden.thumbnails);
});

test("a header of any length leaves the floats aligned", () => {
  for (let padding = 0; padding < 4; padding++) {
    const header = new TextEncoder().encode(JSON.stringify({ pictures: 1 }) + " ".repeat(padding));
    const buffer = new Uint8Array(4 + header.length + 4 * N_METRICS + 2);
    new DataView(buffer.buffer).setUint32(0, header.length, true);
    buffer.set(header, 4);
    for (let i = 0; i < N_METRICS; i++) new DataView(buffer.buffer).setFloat32(4 + header.length + 4 * i, i / 4, true);
    buffer.set([7, 255], 4 + header.length + 4 * N_METRICS);
    const { metrics, thumbnails } = decode(buffer.buffer);
    assert.deepEqual(
      Array.from(metrics),
      Array.from({ length: N_METRICS }, (_, i) => i / 4),
    );
    assert.deepEqual(Array.from(thumbnails), [7, 255]);
  }
});

test("a frame that was cut off is an error", () => {
  const whole = bytes();
  for (const length of [0, 3, 40, whole.length - golden.thumbnails.length - 1]) {
    assert.throws(() => decode(whole.slice(0, length).buffer), /frame|bounds|length|JSON|Offset/i);
  }
});

test("the metrics have the server's names and order", () => {
  assert.deepEqual(METRIC_ORDER, golden.metric_order);
  for (const [key, { index }] of Object.entries(METRICS)) assert.equal(golden.metric_order[index], key);
  assert.equal(golden.metric_order[UNIFORM], "uniform");
});
