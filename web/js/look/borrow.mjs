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

const ABOUT =
  "Someone in your class trained this small GPT from nothing. You can let it write and look inside it; its text, " +
  "its training and the download stay with its owner. It may repeat passages of its text, word for word.";
const ENDED =
  "Whoever lent it has ended the loan, or its hour is over. You can ask for a new link, or choose another model.";

/**
 * What whoever opened the link reads first: what the model is, whose, until when, and what can be done with it. Once
 * the server refuses a text because the loan has ended, it says so.
 */
export class LentNote {
  #name = ""; // of the lent model that is shown, "" for none and for one whose loan has ended
  #isAsking = false;

  /** @param {() => void} write */
  constructor(write) {
    this.title = make("h2", {});
    this.about = make("p", {});
    this.begin = smallButton("Let it write", write, { class: "hs-primary" });
    const words = make("div", { role: "status" }, this.title, this.about);
    const attributes = { class: "hs-lent", "aria-label": "A lent model", hidden: true };
    this.element = make("section", attributes, words, this.begin);
  }

  /** @param {Pick<ModelInfo, "name" | "until"> | undefined} model the chosen one */
  show(model) {
    this.#name = model?.until ? model.name : "";
    this.element.hidden = !this.#name;
    if (model?.until) this.#say(`${model.name} is lent to you until ${timeOf(model.until)}`, ABOUT);
  }

  /** A text was refused: is the model still lent? */
  async check() {
    const name = this.#name;
    if (!name || this.#isAsking) return;
    this.#isAsking = true;
    try {
      /** @type {{ models: ModelInfo[] }} */
      const { models } = await (await request("look/landing")).json();
      if (name !== this.#name || models.some((model) => model.name === name)) return;
      this.#name = "";
      this.#say(`${name} is no longer lent to you`, ENDED);
    } catch {
      // Without an answer nothing is known of the loan.
    } finally {
      this.#isAsking = false;
    }
  }

  /** @param {string} title @param {string} about */
  #say(title, about) {
    this.title.textContent = title;
    this.about.textContent = about;
    this.begin.hidden = !this.#name;
  }
}
