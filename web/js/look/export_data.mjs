// The open picture as numbers: the exact float32 weights with the tokens and all that made them.

import { cells } from "./triangle.mjs";

const ALIGNED = 8; // bytes: where the numbers of a safetensors file begin

/** What a file says of itself; `settings` are those the text was written with, where they are known. */
function facts(store) {
  const { pointer } = store;
  const [layer, column] = store.open;
  const whole = layer === pointer.n_layer;
  return {
    model: pointer.model,
    sha256: pointer.sha256,
    layer: whole ? "all" : layer,
    head: column < pointer.n_head ? column : whole || column === pointer.n_head ? "mean" : "rollout",
    n_prompt: pointer.n_prompt,
    ...pointer.settings,
  };
}

/** A float32 in the fewest digits that lead back to it. */
const digits = (weight) => String(Number(weight.toPrecision(9)));

export function toJson(store) {
  const { count: n } = store;
  const tokens = store.tokens.slice(0, n).map(({ id, text }) => ({ id, text }));
  const head = JSON.stringify({ ...facts(store), tokens });
  const rows = Array.from({ length: n }, (_, query) => {
    const row = Array.from(store.row(query), digits);
    return `[${row.concat(Array(n - query - 1).fill("0")).join(",")}]`;
  });
  // In pieces: the numbers of a long text are too many for one string.
  const pieces = rows.flatMap((row, i) => [i ? ",\n" : "\n", row]);
  return new Blob([head.slice(0, -1), ',"attention":[', ...pieces, "]}\n"], { type: "application/json" });
}

/** The safetensors format: the length of the header, the header as JSON, the numbers; all little-endian. */
export function toSafetensors(store) {
  const { count: n, tokens } = store;
  const [idBytes, bytes] = [8 * n, 4 * n * n];
  const said = Object.entries(facts(store)).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  const header = {
    __metadata__: { ...Object.fromEntries(said), tokens: JSON.stringify(tokens.slice(0, n).map(({ text }) => text)) },
    token_ids: { dtype: "I64", shape: [n], data_offsets: [0, idBytes] },
    attention: { dtype: "F32", shape: [n, n], data_offsets: [idBytes, idBytes + bytes] },
  };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padding = new Uint8Array((ALIGNED - (text.length % ALIGNED)) % ALIGNED).fill(0x20);
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(text.length + padding.length), true);
  const ids = new DataView(new ArrayBuffer(idBytes));
  for (let i = 0; i < n; i++) ids.setBigInt64(8 * i, BigInt(tokens[i].id), true);
  const weights = new Float32Array(n * n);
  for (let query = 0; query < n; query++) weights.set(store.weights.values.subarray(cells(query), cells(query + 1)), query * n);
  return new Blob([length, text, padding, ids, weights], { type: "application/octet-stream" });
}
