// What a server sends of runs that have one picture's worth of everything.

import { N_METRICS } from "../../web/js/lib/metrics.mjs";
import { cells } from "../../web/js/lib/triangle.mjs";

const SHAPE = { n_layer: 1, n_head: 1, sha256: "a", model: "tiny", context_length: 64 };
export const pointer = (run, state, tokens, more = {}) => ({
  ...SHAPE,
  run,
  state,
  tokens,
  rows: tokens,
  n_prompt: 2,
  ...more,
});

/** The frame of a run of `tokens` tokens from `start` on. */
export function frame(tokens, start) {
  const ids = Array.from({ length: tokens - start }, (_, i) => start + i);
  const texts = ids.map((id) => `t${id}`);
  const logprobs = ids.map(() => -1);
  const header = { rows: tokens, factor: 1, first: start, start, pictures: 4, tokens: texts, ids, logprobs };
  const json = new TextEncoder().encode(JSON.stringify(header));
  const length = new Uint8Array(new Uint32Array([json.length]).buffer);
  const rest = new Uint8Array(4 * 4 * N_METRICS + 4 * (cells(tokens) - cells(start)));
  return new Blob([length, json, rest]).arrayBuffer();
}

/** Equal weights from row `start` on. */
export function weights(tokens, start) {
  const floats = [];
  for (let query = start; query < tokens; query++) for (let key = 0; key <= query; key++) floats.push(1 / (query + 1));
  return Float32Array.from(floats).buffer;
}
