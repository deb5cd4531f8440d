// What each side gives to the next token, for the same tokens, with the difference of their log-probabilities.

/**
 * What a model predicts after one token.
 * @typedef {object} Prediction
 * @property {Float64Array} logprobs of the whole vocabulary
 * @property {number[]} most ids of the most probable tokens
 * @property {string[]} texts of the whole vocabulary
 */

/** @typedef {{ text: string, a: number | null, b: number | null, difference: number | null }} NextRow */

/**
 * The tokens that either side finds most probable, the most probable first; a token that one side lacks has no number.
 * @param {Prediction} a
 * @param {Prediction} b
 * @param {(number | null)[]} written ids of the tokens that were written, which are always among them
 * @param {number} count
 * @returns {NextRow[]}
 */
export function nextRows(a, b, written, count) {
  const sameTokens = a.texts === b.texts;
  const [idsA, idsB] = [a, b].map(({ texts }) => (sameTokens ? null : firstIds(texts)));
  /** @type {Map<string | number, NextRow>} */
  const rows = new Map();
  /** @param {number} id @param {Prediction} from */
  const add = (id, from) => {
    const text = from.texts[id] ?? "";
    const [inA, inB] = sameTokens ? [id, id] : [from === a ? id : idsA?.get(text), from === b ? id : idsB?.get(text)];
    const key = sameTokens ? id : text;
    if (rows.has(key)) return;
    const left = inA === undefined ? null : a.logprobs[inA];
    const right = inB === undefined ? null : b.logprobs[inB];
    rows.set(key, {
      text,
      a: left === null ? null : Math.exp(left),
      b: right === null ? null : Math.exp(right),
      difference: left === null || right === null ? null : right - left,
    });
  };
  for (const [i, from] of [a, b].entries()) {
    const id = written[i];
    if (id !== null) add(id, from);
  }
  const given = [...rows.values()];
  for (let i = 0; rows.size < 4 * count && i < Math.max(a.most.length, b.most.length); i++) {
    if (i < a.most.length) add(a.most[i], a);
    if (i < b.most.length) add(b.most[i], b);
  }
  /** @param {NextRow} row */
  const strength = (row) => Math.max(row.a ?? 0, row.b ?? 0);
  const others = [...rows.values()].filter((row) => !given.includes(row));
  others.sort((one, other) => strength(other) - strength(one));
  const shown = [...given, ...others.slice(0, Math.max(count - given.length, 0))];
  return shown.sort((one, other) => strength(other) - strength(one));
}

/** @param {string[]} texts */
function firstIds(texts) {
  /** @type {Map<string, number>} */
  const ids = new Map();
  texts.forEach((text, id) => ids.has(text) || ids.set(text, id));
  return ids;
}
