// One text, or two side by side: a text and another continuation of it. Both share the view.

import { make } from "../lib/dom.mjs";
import { isBusy } from "../lib/states.mjs";
import { visible } from "../lib/words.mjs";
import { Workspace } from "./workspace.mjs";

/** @import { Control, Pointer, SentPointer, TextActions } from "../types.js" */
/** @import { Settings } from "./bar/settings.mjs" */
/** @import { View } from "./state/view.mjs" */

export class Branches {
  /** @type {Set<string>} runs that were closed, and may still report their end */
  #closed = new Set();
  /** @type {Workspace | null} the right side while it is not needed */
  #spare = null;

  /**
   * @param {View} view
   * @param {TextActions} actions
   * @param {Control[]} controls
   * @param {Settings} settings
   */
  constructor(view, actions, controls, settings) {
    this.view = view;
    this.actions = actions;
    this.controls = controls;
    this.settings = settings;
    this.sides = [this.#makeSide()];
    this.element = make("div", { class: "hs-sides" }, this.first.element);
  }

  get first() {
    return this.sides[0];
  }

  /** @returns {Workspace} */
  #makeSide() {
    const workspace = new Workspace(this.view, this.controls, this.settings, {
      branch: (data) => this.actions.branch(data),
      another: () => this.actions.another(workspace.store.pointer.run),
      close: () => this.#keep(this.first),
      keep: () => this.#keep(workspace),
    });
    return workspace;
  }

  /** Pass the server's pointer to the side it concerns. @param {SentPointer | null} pointer */
  follow(pointer) {
    if (!pointer || (pointer.run && this.#closed.has(pointer.run))) return;
    const { first } = this;
    const known = this.sides.find((side) => pointer.run && side.store.pointer.run === pointer.run);
    if (known) known.store.follow(pointer);
    else if (pointer.branch && first.store.pointer.run) this.#split(pointer, pointer.branch.of);
    else if (pointer.beside && first.store.pointer.run) this.#split(pointer, pointer.beside);
    else {
      first.store.follow(pointer);
      // Another text was written or opened: the branch belonged to the one before.
      if (pointer.run && first.store.pointer.run === pointer.run) this.#keep(first);
    }
  }

  /**
   * The text that was branched stays on the left or moves there, its branch comes to the right.
   * @param {SentPointer} pointer
   * @param {string} of the run of that text
   */
  #split(pointer, of) {
    const parent = this.sides.find((side) => side.store.pointer.run === of) ?? this.first;
    const other = this.sides.find((side) => side !== parent) ?? this.#spare ?? this.#makeSide();
    this.#close(other);
    this.#spare = null;
    this.sides = [parent, other];
    this.element.append(other.element); // behind the parent, wherever it was
    other.store.begin(parent.store.pointer);
    other.store.follow(pointer);
    this.#nameSides();
    const isStacked = other.element.offsetTop > parent.element.offsetTop;
    if (isStacked) other.element.scrollIntoView({ block: "start" });
  }

  /** Show one side alone. @param {Workspace} side */
  #keep(side) {
    const other = this.sides.find((candidate) => candidate !== side);
    if (other) {
      this.#close(other);
      other.store.begin();
      other.element.remove();
      this.#spare = other;
    }
    this.sides = [side];
    this.#nameSides();
  }

  /** @param {Workspace} side */
  #close(side) {
    const { run, state } = side.store.pointer;
    if (!run) return;
    this.#closed.add(run);
    if (isBusy(state)) this.actions.halt(run);
  }

  #nameSides() {
    const areTwo = this.sides.length > 1;
    this.element.classList.toggle("hs-two", areTwo);
    this.sides.forEach((side, i) => side.name(areTwo ? title(side.store.pointer) : "", i > 0));
  }
}

/** @param {Readonly<Pointer>} pointer */
function title({ branch, beside, settings }) {
  if (beside) return `Another text, seed ${settings.seed}`;
  if (!branch) return "First text";
  const instead = branch.instead ? ` instead of “${visible(branch.instead)}”` : "";
  return `Branch at token ${branch.at}: “${visible(branch.token)}”${instead}`;
}
