// One text, or two side by side: a text and another continuation of it. Both share the view.

import { make } from "./dom.mjs";
import { visible } from "./words.mjs";
import { Workspace } from "./workspace.mjs";

export class Branches {
  /** `actions.branch(data)` asks the server for another continuation, `actions.halt(data)` to end one. */
  constructor(view, actions) {
    Object.assign(this, { view, actions });
    this.closed = new Set(); // runs that are shown no more, and may still report their end
    this.sides = [this.make()];
    this.element = make("div", { class: "hs-sides" }, this.first.element);
  }

  get first() {
    return this.sides[0];
  }

  make() {
    const workspace = new Workspace(this.view, {
      branch: (data) => this.actions.branch(data),
      close: () => this.keep(this.first),
      keep: () => this.keep(workspace),
    });
    return workspace;
  }

  /** Hand the server's pointer to the side it is about. */
  follow(pointer) {
    if (!pointer || this.closed.has(pointer.run)) return;
    const { first } = this;
    const known = this.sides.find((side) => pointer.run && side.store.pointer.run === pointer.run);
    if (known) known.store.follow(pointer);
    else if (pointer.branch && first.store.pointer.run) this.split(pointer);
    else {
      first.store.follow(pointer);
      // Another text was written or opened: the branch belonged to the one before.
      if (pointer.run && first.store.pointer.run === pointer.run) this.keep(first);
    }
  }

  /** The text that was left stays or goes to the left, the new one comes to the right. */
  split(pointer) {
    const parent = this.sides.find((side) => side.store.pointer.run === pointer.branch.of) ?? this.first;
    const other = this.sides.find((side) => side !== parent) ?? this.spare ?? this.make();
    this.close(other);
    this.spare = null;
    this.sides = [parent, other];
    this.element.append(other.element); // behind the parent, wherever it was
    other.store.begin(parent.store.pointer);
    other.store.follow(pointer);
    this.show();
    const stacked = other.element.offsetTop > parent.element.offsetTop;
    if (stacked) other.element.scrollIntoView({ block: "start" });
  }

  /** Let one side be the only one. */
  keep(side) {
    const other = this.sides.find((candidate) => candidate !== side);
    if (other) {
      this.close(other);
      other.store.begin();
      other.element.remove();
      this.spare = other;
    }
    this.sides = [side];
    this.show();
  }

  close(side) {
    const { run, state } = side.store.pointer;
    if (!run) return;
    this.closed.add(run);
    if (["waiting", "writing"].includes(state)) this.actions.halt({ run });
  }

  show() {
    const two = this.sides.length > 1;
    this.element.classList.toggle("hs-two", two);
    this.sides.forEach((side, i) => side.name(two ? title(side.store.pointer) : "", i > 0));
  }
}

function title({ branch }) {
  if (!branch) return "First text";
  const instead = branch.instead ? ` instead of “${visible(branch.instead)}”` : "";
  return `Branch at token ${branch.at}: “${visible(branch.token)}”${instead}`;
}
