// Heads that the browser trains: the forward pass, its gradient written out, and two tasks for rungs 6 and 8.

import { normal, uniform } from "../lib/random.mjs";

/**
 * An example: one token looks at others and answers a question per job.
 * @typedef {{ query: number, keys: number[], answers: number[] }} Example token ids, and the right answer of each job
 * @typedef {{ query: Float64Array, key: Float64Array, value: Float64Array }} Matrices of a head: (size, head_dim) twice
 *   and (size, jobs · answers), row by row
 * @typedef {object} Task
 * @property {number[][]} tokens the vector of each token, all of one size
 * @property {Example[]} examples
 * @property {number} jobs
 * @property {number} answers to choose from in each job
 */

/** Softmax of a list of numbers. @param {number[]} scores */
function softmax(scores) {
  const most = Math.max(...scores);
  const shares = scores.map((score) => Math.exp(score - most));
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.map((share) => share / sum);
}

/**
 * The standard deviation of the first numbers of the matrices. Keys start small: what a word is found by is then
 * decided by the gradient, not by the start, from which some words would never find back.
 */
const SPREAD = { query: 1, key: 0.25, value: 0.1 };
const RATE = 10; // of gradient descent, large because the gradients are small
/** Pulls values towards 0 in each step. Without it, large values would make up for weights that are spread out. */
const DECAY = 0.003;

export class Heads {
  /**
   * @param {Task} task
   * @param {{ n_head?: number, head_dim: number, isScaled?: boolean, rate?: number, seed: number }} settings
   */
  constructor(task, { n_head = 1, head_dim, isScaled = true, rate = RATE, seed }) {
    this.task = task;
    this.rate = rate;
    this.scale = isScaled ? 1 / Math.sqrt(head_dim) : 1;
    const size = task.tokens[0].length;
    const next = normal(seed);
    /** @param {number} columns @param {number} spread */
    const matrix = (columns, spread) => Float64Array.from({ length: size * columns }, () => next() * spread);
    /** @type {Matrices[]} */
    this.heads = Array.from({ length: n_head }, () => ({
      query: matrix(head_dim, SPREAD.query),
      key: matrix(head_dim, SPREAD.key),
      value: matrix(task.jobs * task.answers, SPREAD.value),
    }));
  }

  /** Queries, keys and values of every token, head by head. */
  projections() {
    const { tokens } = this.task;
    /** @param {Float64Array} matrix */
    const project = (matrix) => tokens.map((token) => timesMatrix(token, matrix));
    return this.heads.map(({ query, key, value }) => ({
      query: project(query),
      key: project(key),
      value: project(value),
    }));
  }

  /** The attention weights of an example, head by head. @param {Example} example */
  weights({ query, keys }, projected = this.projections()) {
    return projected.map((head) => softmax(keys.map((token) => this.scale * dot(head.query[query], head.key[token]))));
  }

  /**
   * The loss of each job, and the gradient of their mean by every matrix.
   *
   * The logits are the sum of the heads' context vectors, so the gradient by each context vector is that by the
   * logits: probability − 1 for the right answer, the probability for the others.
   */
  gradient() {
    const { tokens, examples, jobs, answers } = this.task;
    const width = jobs * answers;
    const projected = this.projections();
    const scores = projected.map(({ query, key }) => query.map((q) => key.map((k) => this.scale * dot(q, k))));
    const byScores = scores.map((rows) => rows.map((row) => new Float64Array(row.length)));
    const byValues = projected.map(({ value }) => value.map(() => new Float64Array(width)));
    const share = 1 / (examples.length * jobs);
    const losses = Array(jobs).fill(0);
    for (const { query, keys, answers: right } of examples) {
      const weights = scores.map((rows) => softmax(keys.map((token) => rows[query][token])));
      const logits = new Float64Array(width);
      projected.forEach(({ value }, h) => keys.forEach((token, k) => addTo(logits, value[token], weights[h][k])));
      const byContext = new Float64Array(width);
      for (let job = 0; job < jobs; job += 1) {
        const first = job * answers;
        const probabilities = softmax([...logits.subarray(first, first + answers)]);
        losses[job] -= Math.log(probabilities[right[job]]) / examples.length;
        probabilities.forEach((p, i) => (byContext[first + i] = share * (p - Number(i === right[job]))));
      }
      projected.forEach(({ value }, h) => {
        const byWeights = keys.map((token) => dot(byContext, value[token]));
        const mean = byWeights.reduce((sum, by, k) => sum + weights[h][k] * by, 0);
        keys.forEach((token, k) => {
          addTo(byValues[h][token], byContext, weights[h][k]);
          byScores[h][query][token] += weights[h][k] * (byWeights[k] - mean); // back through the softmax
        });
      });
    }
    const heads = projected.map(({ query, key }, h) => {
      const [byQueries, byKeys] = [query, key].map((all) => all.map((one) => new Float64Array(one.length)));
      byScores[h].forEach((row, q) =>
        row.forEach((by, k) => {
          if (!by) return;
          addTo(byQueries[q], key[k], this.scale * by);
          addTo(byKeys[k], query[q], this.scale * by);
        }),
      );
      return {
        query: byMatrix(tokens, byQueries),
        key: byMatrix(tokens, byKeys),
        value: byMatrix(tokens, byValues[h]),
      };
    });
    return { losses, heads };
  }

  /**
   * One step of gradient descent. Returns the loss of each job before it, and the length of the gradient by the
   * matrices of queries and keys.
   */
  step() {
    const { losses, heads } = this.gradient();
    let squares = 0;
    heads.forEach((by, h) => {
      const head = this.heads[h];
      addTo(head.query, by.query, -this.rate);
      addTo(head.key, by.key, -this.rate);
      addTo(head.value, head.value, -this.rate * DECAY);
      addTo(head.value, by.value, -this.rate);
      squares += dot(by.query, by.query) + dot(by.key, by.key);
    });
    return { losses, gradient: Math.sqrt(squares) };
  }
}

/** @param {number[]} vector @param {Float64Array} matrix row by row */
function timesMatrix(vector, matrix) {
  const columns = matrix.length / vector.length;
  const product = new Float64Array(columns);
  vector.forEach((x, i) => x && addTo(product, matrix.subarray(i * columns, (i + 1) * columns), x));
  return product;
}

/**
 * The gradient by a matrix, from that by the projection of each token.
 * @param {number[][]} tokens
 * @param {Float64Array[]} by
 */
function byMatrix(tokens, by) {
  const columns = by[0].length;
  const gradient = new Float64Array(tokens[0].length * columns);
  tokens.forEach((token, t) =>
    token.forEach((x, i) => x && addTo(gradient.subarray(i * columns, (i + 1) * columns), by[t], x)),
  );
  return gradient;
}

/** @param {Float64Array} a @param {Float64Array} b */
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

/** @param {Float64Array} sum @param {Float64Array} values @param {number} factor */
function addTo(sum, values, factor) {
  for (let i = 0; i < sum.length; i += 1) sum[i] += factor * values[i];
}

// The two tasks.

const SINGULAR = { nouns: ["cat", "dog", "fox", "bird"], verbs: ["sleeps", "runs"] };
const PLURAL = { nouns: ["cats", "dogs", "foxes", "birds"], verbs: ["sleep", "run"] };
const NOUNS = [...SINGULAR.nouns, ...PLURAL.nouns];
/** The words of rung 6, by token id. The nouns come first, so that the id of a noun is also its number as an answer. */
export const WORDS = [...NOUNS, ...SINGULAR.verbs, ...PLURAL.verbs, "the", "near"];

/**
 * The last word of a sentence looks at those before it, and has to name its subject.
 * @param {string[]} words
 * @param {string} subject
 * @returns {Example}
 */
export function subjectExample(words, subject) {
  const ids = words.map((word) => WORDS.indexOf(word));
  return { query: ids[ids.length - 1], keys: ids.slice(0, -1), answers: [WORDS.indexOf(subject)] };
}

/**
 * All sentences like “the cat near the dogs sleeps” and “the dogs near the cat sleep”. The subject comes first; the
 * other noun differs in number, so that the verb tells which of the two it belongs to. The vectors of the words are
 * orthogonal, so that a step for one word does not change the query or key of another.
 * @returns {Task}
 */
export function subjectTask() {
  const tokens = WORDS.map((_, id) => WORDS.map((__, i) => Number(i === id)));
  const numbers = [SINGULAR, PLURAL];
  const examples = numbers.flatMap(({ nouns, verbs }, i) =>
    nouns.flatMap((subject) =>
      numbers[1 - i].nouns.flatMap((other) =>
        verbs.map((verb) => subjectExample(["the", subject, "near", "the", other, verb], subject)),
      ),
    ),
  );
  return { tokens, examples, jobs: 1, answers: NOUNS.length };
}

/** The mean weight that the first head gives to the subject. @param {Heads} heads */
export function weightOnSubject(heads) {
  const { examples } = heads.task;
  const projected = heads.projections();
  const found = examples.map(
    (example) => heads.weights(example, projected)[0][example.keys.indexOf(example.answers[0])],
  );
  return found.reduce((sum, weight) => sum + weight, 0) / examples.length;
}

/**
 * How much of its weight the first head gives to one word, at most: the mean over all sentences.
 * @param {Heads} heads
 */
export function weightOnOneWord(heads) {
  const { examples } = heads.task;
  const projected = heads.projections();
  const most = examples.map((example) => {
    const [weights] = heads.weights(example, projected);
    const byWord = example.keys.map((word) =>
      weights.reduce((sum, w, i) => sum + (example.keys[i] === word ? w : 0), 0),
    );
    return Math.max(...byWord);
  });
  return most.reduce((sum, weight) => sum + weight, 0) / examples.length;
}

export const TEXT_LENGTH = 6; // words in a text of the task below
const N_TEXTS = 48;

/**
 * In texts of random words, each word from the third on has to name the word before it, and the first word. A token is
 * a word in a place: the id ``place · n_words + word``.
 * @param {number} n_words
 * @param {number} seed
 * @returns {Task}
 */
export function twoJobsTask(n_words, seed) {
  const next = uniform(seed);
  const tokens = Array.from({ length: TEXT_LENGTH * n_words }, (_row, id) => {
    const [place, word] = [Math.floor(id / n_words), id % n_words];
    return Array.from({ length: TEXT_LENGTH + n_words }, (_, i) => Number(i === place || i === TEXT_LENGTH + word));
  });
  const texts = Array.from({ length: N_TEXTS }, () =>
    Array.from({ length: TEXT_LENGTH }, (_, place) => place * n_words + Math.floor(next() * n_words)),
  );
  const examples = texts.flatMap((text) =>
    text.slice(2).map((query, i) => ({
      query,
      keys: text.slice(0, i + 3),
      answers: [text[i + 1] % n_words, text[0] % n_words],
    })),
  );
  return { tokens, examples, jobs: 2, answers: n_words };
}
