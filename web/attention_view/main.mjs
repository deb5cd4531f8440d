// The way in from Gradio: follow the component's value.

import { View } from "./view.mjs";
import { Workspace } from "./workspace.mjs";

/** Gradio calls this once, with the element to fill and the component's value in `props.value`. */
export function mount(root, props, watch) {
  const workspace = new Workspace(new View());
  root.replaceChildren(workspace.element);
  const follow = () => {
    workspace.store.follow(props.value);
    root.dataset.state = workspace.store.pointer.state;
  };
  watch("value", follow);
  follow();
}
