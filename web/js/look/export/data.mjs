// What the page shows as numbers: the exact float32 weights of the open picture with the tokens, the model and the
// settings, and those of all heads at one step; and the whole view as an HTML file, which the server makes
// (model/drawing/html.py).

import { request } from "../../lib/http.mjs";
import { firstQuery, keysOf, sizeOf } from "../../lib/triangle.mjs";

/** @import { StepRows } from "../panels/step_rows.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const ALIGNMENT = 8; // bytes: the alignment of the numbers in a safetensors file

/**
 * The metadata of a file, with the settings of the text, if known.
 * @param {ShownText} store
 */
function metadata(store) {
  const { pointer } = store;
  const [layer, column] = store.open;
  const isMeanOfAll = layer === pointer.n_layer;
  const isMean = isMeanOfAll || column === pointer.n_head;
  return {
    model: pointer.model,
    sha256: pointer.sha256,
    layer: isMeanOfAll ? "all" : layer,
    head: column < pointer.n_head ? column : isMean ? "mean" : "rollout",
    n_prompt: pointer.n_prompt,
    ...pointer.settings,
  };
}

/** A float32 in few digits, but enough to be read back exactly. @param {number} weight */
const rounded = (weight) => Number(weight.toPrecision(9));

/** @param {ShownText} store */
export function toJson(store) {
  const { count: n } = store;
  const tokens = store.tokens.slice(0, n).map(({ id, text }) => ({ id, text }));
  const start = JSON.stringify({ ...metadata(store), tokens });
  const { rows: n_rows, columns } = sizeOf(n);
  const rows = Array.from({ length: n_rows }, (_, i) => {
    const row = Array.from(store.weights.row(firstQuery() + i), rounded);
    return `[${row.concat(Array(columns - row.length).fill(0)).join(",")}]`;
  });
  // In pieces, because a long text has too many numbers for one string.
  const pieces = rows.flatMap((row, i) => [i ? ",\n" : "\n", row]);
  return new Blob([start.slice(0, -1), ',"attention":[', ...pieces, "]}\n"], { type: "application/json" });
}

/**
 * The row of every head at one step: `attention[head]` holds the weights of all keys, heads counted through all layers.
 * @param {ShownText} store
 * @param {StepRows} rows
 */
export function stepJson(store, rows) {
  const query = rows.query ?? 0;
  const { model, sha256, n_layer, n_head } = store.pointer;
  const tokens = store.tokens.slice(0, keysOf(query)).map(({ id, text }) => ({ id, text }));
  const heads = Array.from({ length: n_layer * n_head }, (_, head) => head);
  const attention = heads.map((head) => Array.from(rows.row(head), rounded));
  const content = { model, sha256, n_layer, n_head, query, tokens, attention };
  return new Blob([`${JSON.stringify(content)}\n`], { type: "application/json" });
}

/**
 * The safetensors format: the length of the header, the header as JSON, the numbers; all little-endian.
 * @param {ShownText} store
 */
export function toSafetensors(store) {
  const { count: n, tokens } = store;
  const { rows, columns } = sizeOf(n);
  const [idBytes, bytes] = [8 * n, 4 * rows * columns];
  const entries = Object.entries(metadata(store)).map(([name, value]) => [name, asText(value)]);
  const header = {
    __metadata__: {
      ...Object.fromEntries(entries),
      tokens: JSON.stringify(tokens.slice(0, n).map(({ text }) => text)),
    },
    token_ids: { dtype: "I64", shape: [n], data_offsets: [0, idBytes] },
    attention: { dtype: "F32", shape: [rows, columns], data_offsets: [idBytes, idBytes + bytes] },
  };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padding = new Uint8Array((ALIGNMENT - (text.length % ALIGNMENT)) % ALIGNMENT).fill(0x20);
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(text.length + padding.length), true);
  const ids = new DataView(new ArrayBuffer(idBytes));
  for (let i = 0; i < n; i++) ids.setBigInt64(8 * i, BigInt(tokens[i].id), true);
  const weights = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) weights.set(store.weights.row(firstQuery() + row), row * columns);
  return new Blob([length, text, padding, ids, weights], { type: "application/octet-stream" });
}

/** A value for a header in which all values are strings. @param {unknown} value */
const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

const NO_VIEW = '<script type="application/json" id="hs-saved-view">null</script>'; // as in model/drawing/html.py

/** A file that shows what the page shows, without a server. @param {ShownText} store */
export async function toHtml(store) {
  const { sha256, n_prompt, head_mask, settings } = store.pointer;
  const response = await request("look/file", { body: { sha256, ids: store.ids, n_prompt, head_mask, settings } });
  const { options, open, locked, step } = store.linkState;
  const { roles, answer, attribution } = store;
  const answered = answer.onStage ?? answer.answered;
  const isOnStage = answer.onStage !== null;
  const ask = answered ? options.ask : ""; // a question without its answer would stay open for good
  /** @type {import("../../types.js").SavedView} */
  const view = { options: { ...options, ask }, open, locked, step, roles, attribution, answered, isOnStage };
  const json = JSON.stringify(view).replaceAll("<", "\\u003c");
  const file = await response.text();
  return new Blob([file.replace(NO_VIEW, () => NO_VIEW.replace("null", () => json))], { type: "text/html" });
}
