// The way in from Gradio: follow the component's value.

import { Branches } from "./branches.mjs";
import { View } from "./view.mjs";

/** Gradio calls this once, with the element to fill, the component's value in `props.value`, and its events. */
export function mount(root, props, watch, actions) {
  const branches = new Branches(new View(), actions);
  root.replaceChildren(branches.element);
  const follow = () => {
    branches.follow(props.value);
    root.dataset.state = branches.first.store.pointer.state;
  };
  watch("value", follow);
  follow();
}
