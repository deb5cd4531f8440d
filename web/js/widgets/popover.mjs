// A button that opens a panel. Escape closes it, a click elsewhere, and Tab past its end; the focus then returns to the
// button, unless it has gone elsewhere.

import { setFlag } from "../lib/dom.mjs";
import { onEnd } from "../lib/reactive.mjs";

/** Whether a list or panel of a button is open, which has the keys first. */
export const hasOpenList = () =>
  document.querySelector(".hs-popover-anchor [aria-expanded=true], .hs-menu [aria-expanded=true]") !== null;

export class Popover {
  /**
   * @param {HTMLElement} element holds both
   * @param {HTMLElement} button
   * @param {(isOpen: boolean) => void} show shows or hides the panel
   */
  constructor(element, button, show) {
    this.element = element;
    this.button = button;
    this.show = show;
    setFlag(button, "aria-expanded", false);
    onEnd(() => this.toggle(false));
    button.addEventListener("click", () => this.toggle());
    element.addEventListener("focusout", ({ relatedTarget }) => this.#closeFor(relatedTarget));
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      event.preventDefault();
      event.stopPropagation(); // what it covers stays open
      this.toggle(false);
    });
  }

  #press = (/** @type {PointerEvent} */ { target, pointerType }) => {
    const isTap = pointerType === "touch" && target instanceof Node && !this.element.contains(target);
    if (isTap) swallowClick(); // on a phone, a tap beside a panel is meant to close it, and nothing else
    this.#closeFor(target);
  };

  /** @param {EventTarget | null} target of the focus or of a click; null where the window has lost the focus */
  #closeFor(target) {
    if (target instanceof Node && !this.element.contains(target)) this.toggle(false);
  }

  get isOpen() {
    return this.button.getAttribute("aria-expanded") === "true";
  }

  toggle(isOpen = !this.isOpen) {
    if (isOpen === this.isOpen) return;
    const hadFocus = this.element.contains(document.activeElement);
    setFlag(this.button, "aria-expanded", isOpen);
    this.show(isOpen);
    if (isOpen) document.addEventListener("pointerdown", this.#press);
    else document.removeEventListener("pointerdown", this.#press);
    if (!isOpen && hadFocus) this.button.focus();
  }
}

/** Let the click that ends this touch do nothing; a touch that becomes a scroll has none. */
function swallowClick() {
  const end = new AbortController();
  const options = { capture: true, signal: end.signal };
  const swallow = (/** @type {Event} */ event) => {
    event.stopPropagation();
    event.preventDefault();
    end.abort();
  };
  window.addEventListener("click", swallow, options);
  window.addEventListener("pointerdown", () => end.abort(), options); // the next touch
}
