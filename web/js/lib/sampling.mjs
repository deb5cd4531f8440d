// From logits to the probabilities with which the next token is drawn: model/sampling.py in the browser, without
// penalties. Same order, same float64 arithmetic: temperature, top-k, top-p, min-p, renormalise.

/** @typedef {Float32Array | Float64Array} Floats */

/** @typedef {{ temperature?: number, top_k?: number | null, top_p?: number, min_p?: number }} SamplingSettings */

/**
 * The probability of each token of a vocabulary; `top_k` 0 or null means all tokens.
 * @param {ArrayLike<number>} logits
 * @param {SamplingSettings} [settings]
 */
export function probabilities(logits, { temperature = 1, top_k = 0, top_p = 1, min_p = 0 } = {}) {
  let values = Float64Array.from(logits);
  if (temperature === 0) {
    const certain = new Float64Array(values.length);
    certain[argmax(values)] = 1;
    return certain;
  }
  if (temperature !== 1) {
    const largest = values[argmax(values)]; // subtracted first, so that a tiny temperature cannot overflow
    values = values.map((value) => (value - largest) / temperature);
  }
  if (top_k && top_k < values.length) keepTopK(values, top_k);
  if (top_p < 1) keepTopP(values, top_p);
  if (min_p > 0) keepMinP(values, min_p);
  return softmax(values);
}

/**
 * How the settings turn the model's probabilities into those used for drawing, in a sentence.
 * @param {SamplingSettings} settings
 */
export function drawnHow({ temperature = 1, top_k = 0, top_p = 1, min_p = 0 }) {
  if (temperature === 0) return "“Drawn with”: at temperature 0 the most probable token is always chosen.";
  const steps = [
    temperature === 1 ? "" : `${temperature < 1 ? "sharpened" : "flattened"} by temperature ${temperature}`,
    top_k ? `limited to the ${top_k} most probable tokens (top-k)` : "",
    top_p < 1 ? `limited to the most probable tokens that make up ${top_p} (top-p)` : "",
    min_p > 0 ? `limited to tokens at least ${min_p} times as probable as the best one (min-p)` : "",
  ].filter(Boolean);
  const how = steps.length ? steps.join(", then ") : "unchanged by these settings";
  return `“Drawn with”: the model’s own probability, ${how}.`;
}

/** @param {Floats} values */
export function softmax(values) {
  const largest = values[argmax(values)];
  const result = new Float64Array(values.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += result[i] = Math.exp(values[i] - largest);
  for (let i = 0; i < values.length; i++) result[i] /= sum;
  return result;
}

/**
 * The log-softmax of logits, in nats.
 * @param {Floats} logits
 */
export function logSoftmax(logits) {
  let largest = -Infinity;
  for (const value of logits) if (value > largest) largest = value;
  let sum = 0;
  for (const value of logits) sum += Math.exp(value - largest);
  const norm = largest + Math.log(sum);
  return Float64Array.from(logits, (value) => value - norm);
}

/**
 * The ids of the `n` most probable tokens; ties go to the lower id. Sampling settings never change the order.
 * @param {Floats} logits
 * @param {number} n
 */
export function mostProbable(logits, n) {
  if (!logits.length) return [];
  const least = ascending(logits)[logits.length - Math.min(n, logits.length)];
  const ids = [];
  for (let id = 0; id < logits.length; id++) if (logits[id] >= least) ids.push(id);
  return ids.sort((a, b) => logits[b] - logits[a] || a - b).slice(0, n);
}

/** @param {Floats} values */
function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** @param {Floats} values */
const ascending = (values) => values.slice().sort();

/** The `k` most probable tokens, and all tied with the last. @param {Float64Array} values @param {number} k */
function keepTopK(values, k) {
  const least = ascending(values)[values.length - k];
  for (let i = 0; i < values.length; i++) if (values[i] < least) values[i] = -Infinity;
}

/**
 * Keep the most probable tokens until their probabilities sum to `p`; ties go to the lower id.
 * @param {Float64Array} values
 * @param {number} p
 */
function keepTopP(values, p) {
  const shares = softmax(values);
  const ordered = ascending(shares).reverse();
  let kept = 0;
  for (let sum = 0; kept < ordered.length && sum < p; kept++) sum += ordered[kept];
  const least = ordered[kept - 1];
  let equal = 0; // how many of the tokens tied with the least probable one are kept
  for (let i = kept - 1; i >= 0 && ordered[i] === least; i--) equal++;
  for (let i = 0; i < values.length; i++) {
    if (shares[i] < least || (shares[i] === least && equal-- <= 0)) values[i] = -Infinity;
  }
}

/** Tokens at least `p` times as probable as the most probable one. @param {Float64Array} values @param {number} p */
function keepMinP(values, p) {
  const least = values[argmax(values)] + Math.log(p);
  for (let i = 0; i < values.length; i++) if (values[i] < least) values[i] = -Infinity;
}
