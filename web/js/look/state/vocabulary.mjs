// The texts of a model's tokens, fetched once.

import { request } from "../../lib/server/http.mjs";

/** @type {Map<string, Promise<string[]>>} */
const requested = new Map();

/** All of them in the order of their ids, for the model with these weights. @param {string} sha256 */
export function vocabulary(sha256) {
  let texts = requested.get(sha256);
  if (!texts) {
    texts = fetchTexts(sha256);
    texts.catch(() => requested.delete(sha256)); // so that the next call tries again
    requested.set(sha256, texts);
  }
  return texts;
}

/**
 * @param {string} sha256
 * @returns {Promise<string[]>}
 */
const fetchTexts = async (sha256) => (await request(`look/vocabulary/${sha256}.json`)).json();
