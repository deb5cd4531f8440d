// A link that lends a model: its secret is exchanged for a cookie.

import { request } from "../lib/http.mjs";

/** @param {string} hash of an address @returns {string | undefined} the secret with which a model is lent */
export const loanIn = (hash) => /^#lent=(.*)$/.exec(hash)?.[1];

/** Borrow the model that the address lends, and remove its secret from there. Returns what is wrong, "" for nothing. */
export async function borrow() {
  const loan = loanIn(location.hash);
  if (loan === undefined) return "";
  history.replaceState(history.state, "", `${location.pathname}${location.search}`);
  try {
    await request("train/borrow", { body: { loan } });
    return "";
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}
