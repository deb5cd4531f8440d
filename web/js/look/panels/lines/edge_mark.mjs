// At the edge of the lines: which way a token lies that is out of view. A click scrolls to it.

import { make } from "../../../lib/dom.mjs";
import { label } from "../../../lib/drawing/axes.mjs";

const ARROWS = { above: "↑", below: "↓" };

export class EdgeMark {
  #shown = "";

  /**
   * @param {string} name of its class
   * @param {(token: number) => void} goTo
   */
  constructor(name, goTo) {
    this.token = -1;
    this.element = make("button", { type: "button", class: `hs-small hs-edge ${name}`, hidden: true });
    this.element.addEventListener("click", () => goTo(this.token));
  }

  get isShown() {
    return !this.element.hidden;
  }

  /**
   * @param {"above" | "below" | ""} side of the view on which the token is; "" hides the mark
   * @param {number} token
   * @param {string} text of the token
   * @param {string} weight with which it is looked at; "" for a query
   */
  show(side, token, text, weight = "") {
    const { element } = this;
    this.token = token;
    const shown = `${side} ${token} ${weight} ${text}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    if (!side) {
      element.hidden = true;
      return;
    }
    const name = make("b", {}, label(text));
    element.replaceChildren(`${ARROWS[side]} `, name, ` ${token}`, make("span", {}, weight && ` ${weight}`));
    element.title = weight ? `Looked at most: scroll to token ${token}` : `Back to the query, token ${token}`;
    element.setAttribute("aria-label", `${element.title} ${label(text)}${weight && `, weight ${weight}`}, ${side}`);
    element.classList.toggle("hs-below", side === "below");
    element.hidden = false;
  }

  hide() {
    this.show("", this.token, "");
  }

  /** Where a line meets it, in CSS pixels of the view. @param {"left" | "right"} end */
  point(end) {
    const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = this.element;
    return { x: offsetLeft + (end === "right" ? offsetWidth : 0), y: offsetTop + offsetHeight / 2 };
  }
}
