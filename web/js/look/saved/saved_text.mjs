// The data of an HTML file as the answers that the page expects from its server: web/runs/exact.py in the browser.

import { allPictures, headIndex, isHead } from "../../lib/heads.mjs";
import { cells, firstQuery, keysOf } from "../../lib/triangle.mjs";

/** @import { Answered, SavedText } from "../../types.js" */
/** @import { Prepared } from "../state/prepared.mjs" */

/** Set by the file's own script: undoes base64 and compression. */
const unpack = /** @type {(text: string) => Promise<ArrayBuffer>} */ (
  (text) => /** @type {any} */ (globalThis).unpack(text)
);

const HALF_SCALE = 2 ** 15; // as in model/drawing/drawing.py

/** @param {SavedText} saved @param {Answered | null} answered @returns {Promise<Prepared>} */
export async function openSaved(saved, answered) {
  const { pointer, vocab_size } = saved;
  const shape = /** @type {{ n_layer: number, n_head: number, tokens: number }} */ (pointer);
  const frame = await unpack(saved.frame);
  const weights = saved.exact ? await floats(saved.weights) : await halves(saved.weights);
  const pictures = new Pictures(shape, weights);
  const logitsAt = saved.logits
    ? wholeLogits(await floats(saved.logits), vocab_size)
    : !vocab_size
      ? () => new Float32Array(0)
      : likeliestLogits(await integers(saved.likeliest), await floats(saved.logprobs), shape.tokens, vocab_size);
  /** @type {string[]} */
  const vocabulary = Array(vocab_size);
  for (const [id, text] of Object.entries(saved.vocabulary)) vocabulary[Number(id)] = text;
  return {
    sha256: pointer.sha256 ?? "",
    vocabulary,
    answer(path) {
      const [kind, ...numbers] = path.split(/[/?=]/);
      const [first, second] = numbers.map(Number);
      if (kind === "rows") return frame;
      if (kind === "heads") return pictures.picture(first, second).slice(cells(Number(numbers[3]))).buffer;
      if (kind === "queries") return pictures.query(first).buffer;
      return logitsAt(first).buffer;
    },
    asked: answered?.asked,
    answerTo: (asked) => (JSON.stringify(asked) === JSON.stringify(answered?.asked) ? answered?.answer : undefined),
  };
}

/**
 * The bytes of numbers, of which the file holds all first bytes, then all second bytes, and so on.
 * @param {string} text
 * @param {number} size of a number
 */
async function bytes(text, size) {
  const planes = new Uint8Array(await unpack(text));
  const n = planes.length / size;
  const result = new Uint8Array(planes.length);
  for (let byte = 0; byte < size; byte++) {
    for (let i = 0; i < n; i++) result[i * size + byte] = planes[byte * n + i];
  }
  return result.buffer;
}

/** @param {string | undefined} text */
const floats = async (text) => new Float32Array(await bytes(text ?? "", 4));

/** @param {string | undefined} text */
const integers = async (text) => new Int32Array(await bytes(text ?? "", 4));

/** Scaled weights in half precision. @param {string} text */
async function halves(text) {
  const table = new Float32Array(2 ** 15); // of all that are not negative
  for (let i = 0; i < table.length; i++) {
    const [exponent, mantissa] = [i >> 10, (i & 1023) / 1024];
    table[i] = (exponent ? (1 + mantissa) * 2 ** (exponent - 15) : mantissa * 2 ** -14) / HALF_SCALE;
  }
  return Float32Array.from(new Uint16Array(await bytes(text, 2)), (half) => table[half]);
}

/** All logits after a token. @param {Float32Array} logits @param {number} size of the vocabulary */
const wholeLogits = (logits, size) => (/** @type {number} */ position) =>
  logits.slice(position * size, (position + 1) * size);

/**
 * Log-probabilities after a token: exact for the likeliest tokens; the remaining probability is divided equally among
 * all others.
 * @param {Int32Array} ids
 * @param {Float32Array} logprobs
 * @param {number} n_tokens
 * @param {number} size of the vocabulary
 */
function likeliestLogits(ids, logprobs, n_tokens, size) {
  const n = ids.length / n_tokens;
  return (/** @type {number} */ position) => {
    /** @type {Map<number, number>} */
    const known = new Map();
    for (let i = position * n; i < (position + 1) * n; i++) known.set(ids[i], logprobs[i]);
    const sum = [...known.values()].reduce((total, logprob) => total + Math.exp(logprob), 0);
    const row = new Float32Array(size).fill(Math.log(Math.max(1 - sum, 0) / Math.max(size - known.size, 1)));
    for (const [id, logprob] of known) row[id] = logprob;
    return row;
  };
}

/** The weights of all pictures (model/drawing/pictures.py), computed from the heads' when they are first needed. */
class Pictures {
  /** @type {Map<string, Float32Array>} */
  #known = new Map();

  /** @param {{ n_layer: number, n_head: number, tokens: number }} shape @param {Float32Array} weights of all heads */
  constructor({ n_layer, n_head, tokens }, weights) {
    this.n_layer = n_layer;
    this.n_head = n_head;
    this.size = cells(tokens);
    this.rows = tokens;
    this.weights = weights;
  }

  /** The rows of one picture. @param {number} layer @param {number} column */
  picture(layer, column) {
    const { size } = this;
    if (isHead([layer, column], this)) {
      const index = headIndex([layer, column], this);
      return this.weights.subarray(index * size, (index + 1) * size);
    }
    const key = `${layer} ${column}`;
    const picture = this.#known.get(key) ?? this.#compute(layer, column);
    this.#known.set(key, picture);
    return picture;
  }

  /** @param {number} layer @param {number} column @returns {Float32Array} */
  #compute(layer, column) {
    const { n_layer, n_head } = this;
    if (layer === n_layer) return mean(Array.from({ length: n_layer }, (_, i) => this.picture(i, n_head)));
    if (column === n_head) return mean(Array.from({ length: n_head }, (_, i) => this.picture(layer, i)));
    return this.#rollout(this.picture(layer, n_head), layer ? this.picture(layer - 1, n_head + 1) : null);
  }

  /**
   * Attention rollout (Abnar & Zuidema 2020).
   * @param {Float32Array} layer its mean
   * @param {Float32Array | null} below the rollout of the layer before
   */
  #rollout(layer, below) {
    // Of cross-attention, half of a query's residual stream comes from the keys and half from itself.
    if (firstQuery()) return layer.map((weight, i) => (weight + (below?.[i] ?? 0)) / 2);
    const result = new Float32Array(this.size);
    for (let query = 0; query < this.rows; query++) {
      const row = cells(query);
      const middles = keysOf(query);
      for (let middle = 0; middle < middles; middle++) {
        const weight = (layer[row + middle] + (middle === query ? 1 : 0)) / 2;
        if (!below) result[row + middle] = weight;
        else
          for (let key = 0, end = keysOf(middle); key < end; key++)
            result[row + key] += weight * below[cells(middle) + key];
      }
    }
    return result;
  }

  /** One query's row of every picture, in the order of the server. @param {number} query */
  query(query) {
    const pictures = allPictures(this);
    const result = new Float32Array(pictures.length * keysOf(query));
    pictures.forEach(([layer, column], i) => {
      const row = this.picture(layer, column).subarray(cells(query), cells(query + 1));
      result.set(row, i * keysOf(query));
    });
    return result;
  }
}

/** @param {Float32Array[]} pictures */
function mean(pictures) {
  const result = new Float32Array(pictures[0].length);
  for (const picture of pictures) for (let i = 0; i < result.length; i++) result[i] += picture[i] / pictures.length;
  return result;
}
