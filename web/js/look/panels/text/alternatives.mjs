// What else could have been written at the selected token, beside it, to branch from there.

import { make } from "../../../lib/dom.mjs";
import { visible } from "../../../lib/words.mjs";

/** @import { NextToken } from "../next_token.mjs" */
/** @import { Store } from "../../state/store.mjs" */

const SHOWN = 4;

export class Alternatives {
  #wanted = false;

  /**
   * @param {Store} store
   * @param {NextToken} next
   * @param {(position: number) => HTMLElement | undefined} spanOf the element of a token
   */
  constructor(store, next, spanOf) {
    this.store = store;
    this.next = next;
    this.spanOf = spanOf;
    this.element = make("div", { class: "hs-alternatives", role: "group", hidden: true });
    next.onShown(() => this.draw());
    store.on("state step", () => this.draw());
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  /** A token was clicked: show its alternatives as soon as they are there. */
  open() {
    this.#wanted = true;
    this.draw();
  }

  close() {
    this.#wanted = false;
    this.element.hidden = true;
  }

  draw() {
    const { store, next, element } = this;
    const at = store.chosen;
    const found = next.alternatives(SHOWN);
    const span = at === null ? undefined : this.spanOf(at);
    element.hidden = !this.#wanted || !found || found.at !== at || !span;
    if (element.hidden || !found || !span || at === null) return;
    const written = visible(store.tokens[at].text);
    element.setAttribute("aria-label", `Alternatives to “${written}”`);
    const buttons = found.tokens.map(({ id, text, probability }) => {
      const label = `Branch here with “${text}”, probability ${probability.toFixed(3)}`;
      const name = make("span", {}, text);
      const number = make("small", {}, probability.toFixed(3));
      const button = make("button", { type: "button", class: "hs-small", "aria-label": label }, name, number);
      button.addEventListener("click", () => {
        this.close();
        next.branch(id, at);
      });
      return button;
    });
    const close = make(
      "button",
      { type: "button", class: "hs-small", "aria-label": "Close", onclick: () => this.close() },
      "×",
    );
    element.replaceChildren(make("span", {}, "instead:"), ...buttons, close);
    const [box, room] = [
      span.getBoundingClientRect(),
      /** @type {HTMLElement} */ (element.parentElement).getBoundingClientRect(),
    ];
    element.style.top = `${box.bottom - room.top + 4}px`;
    element.style.left = `${Math.max(8, Math.min(box.left - room.left, room.width - element.offsetWidth - 8))}px`;
  }
}
