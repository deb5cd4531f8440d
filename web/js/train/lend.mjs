// Lending the trained model to a class, with a link.

import { make } from "../lib/dom.mjs";
import { request } from "../lib/http.mjs";
import { timeOf } from "../lib/numbers.mjs";
import { smallButton } from "../widgets/controls.mjs";
import { copying } from "../widgets/copy.mjs";

const RIGHTS =
  "Whoever has the link can write with your model and look inside it, even while your page is closed, until you " +
  "withdraw the link or the model is deleted. It opens neither your text, nor the losses, nor the download.";
const WARNING =
  "But a model may repeat passages of its text, word for word: lend none that has learned from a text that the class " +
  "must not read.";

/**
 * The address that opens a lent model. Browsers do not send the fragment, so that no server logs the secret.
 * @param {string} page the address of this page
 * @param {string} name
 * @param {string} loan
 */
export function loanLink(page, name, loan) {
  const link = new URL(page);
  link.search = `?${new URLSearchParams({ model: name })}`;
  link.hash = `lent=${loan}`;
  return link.href;
}

export class Lending {
  #name = "";

  /** @param {(problem: string) => void} report */
  constructor(report) {
    /** @param {() => Promise<void>} act */
    const reporting = (act) => () => act().catch((error) => report(error.message));
    this.lend = smallButton(
      "Lend it",
      reporting(async () => {
        const { loan, until } = await (await request("train/lend", { body: {} })).json();
        this.show(loan, until);
      }),
    );
    this.withdraw = smallButton(
      "Withdraw the link",
      reporting(async () => {
        await request("train/withdraw", { body: {} });
        this.show("");
      }),
    );
    this.link = make("pre", { class: "ht-call", tabindex: 0, "aria-label": "The link that lends the model" });
    this.until = make("p", {});
    this.copy = smallButton("Copy the link", () => copy(this.link.textContent));
    const { said, copy } = copying(this.copy);
    this.element = make(
      "details",
      { class: "ht-program", hidden: true },
      make("summary", {}, "Lend it to a class"),
      make("p", { class: "hs-hint" }, RIGHTS, " ", make("strong", {}, WARNING)),
      this.link,
      this.until,
      make("div", { class: "ht-buttons" }, this.lend, this.copy, this.withdraw, said),
    );
    this.show("");
  }

  /** Show the model that can be lent; "" for none. @param {string} name */
  offer(name) {
    this.#name = name;
    this.element.hidden = !name;
  }

  /**
   * @param {string} loan the secret with which the model is lent, "" if it is not
   * @param {number} [until] when the model is deleted at the latest, in seconds since 1970
   */
  show(loan, until = 0) {
    this.until.textContent = loan && `The link works until ${timeOf(until)} at the latest.`;
    this.link.textContent = loan && loanLink(location.href, this.#name, loan);
    this.lend.hidden = loan !== "";
    this.link.hidden = this.copy.hidden = this.withdraw.hidden = !loan;
  }
}
