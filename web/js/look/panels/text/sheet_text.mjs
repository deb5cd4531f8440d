// A few lines of the text, for where the open head lies over it: they follow the selected token.

import { make } from "../../../lib/dom.mjs";
import { TextView } from "./text_view.mjs";

/** @import { Store } from "../../state/store.mjs" */

export class SheetText {
  /** @type {TextView | null} made when it is first needed */
  #view = null;

  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.element = make("div", { class: "hs-sheet-text", hidden: true });
    store.on("focus step tokens", () => this.follow());
  }

  /** @param {boolean} isShown */
  show(isShown) {
    this.element.hidden = !isShown;
    if (!isShown) return;
    if (!this.#view) {
      this.#view = new TextView(this.store, { label: "Text around the selected token" });
      this.element.append(this.#view.element, this.#view.announcement);
    }
    this.#view.fit();
    this.#view.fill();
    this.#view.colour();
    this.follow();
  }

  /** Bring the selected token to the middle; what is pointed at is already in view. */
  follow() {
    const { focus, hover } = this.store;
    if (this.element.hidden || !this.#view || !focus || hover) return;
    const { element } = this.#view;
    const span = this.#view.span(focus.query);
    if (!span) return;
    const [box, room] = [span.getBoundingClientRect(), element.getBoundingClientRect()];
    element.scrollTop += box.top + box.height / 2 - room.top - room.height / 2;
  }
}
