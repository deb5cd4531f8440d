// The visitor's choices: the open picture and the options. They are kept from text to text, and shared by two texts
// that are compared.

import { isSamePicture } from "../../lib/heads.mjs";
import { DEFAULTS } from "../../lib/options.mjs";
import { signal } from "../../vendor/signals.mjs";
import { isFile } from "./prepared.mjs";

/** @import { Options, PictureId, Pointer } from "../../types.js" */

export class View {
  #options = signal(/** @type {Readonly<Options>} */ ({ ...DEFAULTS }));
  #open = signal(/** @type {PictureId} */ ([0, 0]));
  #isLifted = signal(false);

  /** Whether there is no model, as in a file. */
  get isLookOnly() {
    return isFile();
  }

  get options() {
    return this.#options.value;
  }

  /** The open picture. */
  get open() {
    return this.#open.value;
  }

  /** @param {Partial<Options>} chosen */
  set(chosen) {
    const options = this.#options.peek();
    const names = /** @type {(keyof Options)[]} */ (Object.keys(chosen));
    if (names.some((name) => options[name] !== chosen[name])) this.#options.value = { ...options, ...chosen };
  }

  /** Close the open question, or the list of them. */
  closeAsk() {
    this.set({ ask: "", askWith: "" });
  }

  /** Open the list of questions, or close what is open of Ask. */
  toggleAsk() {
    if (this.options.ask) this.closeAsk();
    else this.set({ ask: "list" });
  }

  /** Whether the open picture is a sheet over the text, as on a phone when a head is tapped. */
  get isLifted() {
    return this.#isLifted.value;
  }

  /** @param {boolean} isLifted */
  lift(isLifted) {
    this.#isLifted.value = isLifted;
  }

  /** Open a picture. @param {PictureId} picture */
  choose(picture) {
    if (!isSamePicture(picture, this.#open.peek())) this.#open.value = picture;
  }

  /**
   * For another model: open the picture that its opening names, or the one closest to the previous one.
   * @param {Readonly<Pointer>} pointer
   * @param {Readonly<Pointer>} before
   */
  openAgain({ n_layer, n_head, head, sha256 }, before) {
    const [layer, column] = this.open;
    const sameShape = n_layer === before.n_layer && n_head === before.n_head;
    if (head && !(sameShape && before.sha256 === sha256)) this.choose(head);
    else if (!sameShape) this.choose([Math.min(layer, n_layer - 1), Math.min(column, n_head - 1)]);
  }
}
