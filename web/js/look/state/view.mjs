// The visitor's choices: the open picture and the options. They are kept from text to text, and shared by two texts
// that are compared.

import { isSamePicture } from "../../lib/heads.mjs";
import { DEFAULTS } from "../../lib/options.mjs";

/** @import { Options, PictureId, Pointer } from "../../types.js" */

/** @typedef {keyof Options | "open" | "lifted"} Change */

export class View {
  /** @type {Options} */
  #options = { ...DEFAULTS };
  /** @type {PictureId} */
  #open = [0, 0];
  /** @type {((changed: Change[]) => void)[]} */
  #listeners = [];
  #isLifted = false;

  /** @param {boolean} [isLookOnly] whether there is no model, as in a file */
  constructor(isLookOnly = false) {
    this.isLookOnly = isLookOnly;
  }

  /** @returns {Readonly<Options>} */
  get options() {
    return this.#options;
  }

  /** The open picture. */
  get open() {
    return this.#open;
  }

  /** @param {(changed: Change[]) => void} callback gets the names of what changed */
  on(callback) {
    this.#listeners.push(callback);
  }

  /** @param {Partial<Options>} chosen */
  set(chosen) {
    const changes = chosen.ask ? { ...chosen, details: true } : chosen; // the questions belong to the details
    const names = /** @type {(keyof Options)[]} */ (Object.keys(changes));
    const changed = names.filter((name) => this.#options[name] !== changes[name]);
    if (!changed.length) return;
    this.#options = { ...this.#options, ...changes };
    this.#notify(changed);
  }

  /** Whether the open picture is a sheet over the text, as on a phone when a head is tapped. */
  get isLifted() {
    return this.#isLifted;
  }

  /** @param {boolean} isLifted */
  lift(isLifted) {
    if (isLifted === this.#isLifted) return;
    this.#isLifted = isLifted;
    this.#notify(["lifted"]);
  }

  /** Open a picture. @param {PictureId} picture */
  choose(picture) {
    if (isSamePicture(picture, this.#open)) return;
    this.#open = picture;
    this.#notify(["open"]);
  }

  /**
   * Open a picture without notifying anyone: the store of another model announces everything at once.
   * @param {PictureId} picture
   */
  openQuietly(picture) {
    this.#open = picture;
  }

  /**
   * For another model: open the picture that its opening names, or the one closest to the previous one. Like
   * `openQuietly`, this notifies no listener.
   * @param {Readonly<Pointer>} pointer
   * @param {Readonly<Pointer>} before
   */
  openAgain({ n_layer, n_head, head, sha256 }, before) {
    const [layer, column] = this.open;
    const sameShape = n_layer === before.n_layer && n_head === before.n_head;
    if (head && !(sameShape && before.sha256 === sha256)) this.openQuietly(head);
    else if (!sameShape) this.openQuietly([Math.min(layer, n_layer - 1), Math.min(column, n_head - 1)]);
  }

  /** @param {Change[]} changed */
  #notify(changed) {
    for (const listener of this.#listeners) listener(changed);
  }
}
