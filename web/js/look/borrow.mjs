// A link that lends a model: its secret is exchanged for a cookie, and the page says what it opens.

import { make } from "../lib/dom.mjs";
import { request } from "../lib/http.mjs";
import { timeOf } from "../lib/numbers.mjs";
import { smallButton } from "../widgets/controls.mjs";

/** @import { ModelInfo } from "../types.js" */

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

/** What whoever opened the link reads first: what the model is, whose, until when, and what can be done with it. */
export class LentNote {
  /** @param {() => void} write */
  constructor(write) {
    this.title = make("h2", {});
    const about =
      "Someone in your class trained this small GPT from nothing. You can let it write and look inside it; its text, " +
      "its training and the download stay with its owner. It may repeat passages of its text, word for word.";
    const words = make("div", {}, this.title, make("p", {}, about));
    const begin = smallButton("Let it write", write, { class: "hs-primary" });
    this.element = make("section", { class: "hs-lent", "aria-label": "A lent model", hidden: true }, words, begin);
  }

  /** @param {Pick<ModelInfo, "name" | "until"> | undefined} model the chosen one */
  show(model) {
    this.element.hidden = !model?.until;
    if (model?.until) this.title.textContent = `${model.name} is lent to you until ${timeOf(model.until)}`;
  }
}
