// A column of buttons as one Tab stop: the arrow keys, Home and End move from one to the next.

export class OneStop {
  /** @type {HTMLButtonElement | null} the one that Tab comes to */
  #current = null;

  /** @param {HTMLElement} column whose buttons these are */
  constructor(column) {
    this.column = column;
    column.addEventListener("keydown", (event) => this.#move(event));
    column.addEventListener("focusin", (event) => {
      this.#current = /** @type {HTMLElement} */ (event.target).closest("button");
      this.update();
    });
  }

  /** To be called when the buttons may be others than before. */
  update() {
    const buttons = this.#buttons;
    if (!this.#current || !buttons.includes(this.#current)) this.#current = buttons[0] ?? null;
    for (const button of buttons) button.tabIndex = button === this.#current ? 0 : -1;
  }

  get #buttons() {
    return [...this.column.querySelectorAll("button")].filter((button) => !button.disabled);
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const buttons = this.#buttons;
    const at = buttons.findIndex((button) => button === document.activeElement);
    const targets = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: buttons.length - 1 };
    const target = buttons[targets[/** @type {keyof typeof targets} */ (event.key)]];
    if (!target) return;
    target.focus();
    event.preventDefault();
  }
}
