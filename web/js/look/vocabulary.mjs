// The texts of a model's tokens, fetched once.

import { address } from "./fetch.mjs";

const asked = new Map();

/** All of them in the order of their ids, for the model with these weights. */
export function vocabulary(sha256) {
  if (!asked.has(sha256)) {
    const texts = fetch(address(`look/vocabulary/${sha256}.json`)).then((response) => {
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      return response.json();
    });
    texts.catch(() => asked.delete(sha256));
    asked.set(sha256, texts);
  }
  return asked.get(sha256);
}
