// The binary frame in which the server sends what a page lacks of a text. Its layout is specified in web/runs/frame.py.

import { N_METRICS } from "./metrics.mjs";

/** @import { Frame, FrameHeader } from "../types.js" */

const LENGTH_BYTES = 4;
const FLOAT_BYTES = 4;

/**
 * Throws `RangeError` if the bytes end too early.
 * @param {ArrayBuffer} buffer
 * @returns {Frame}
 */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  /** @type {FrameHeader} */
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, LENGTH_BYTES, length)));
  const start = LENGTH_BYTES + length;
  const end = start + FLOAT_BYTES * header.pictures * N_METRICS;
  if (end > buffer.byteLength) throw new RangeError(`a frame of ${buffer.byteLength} bytes lacks its metrics`);
  return {
    header,
    metrics: new Float32Array(buffer.slice(start, end)), // a copy, because floats must be aligned to 4 bytes
    thumbnails: new Uint8Array(buffer, end),
  };
}
