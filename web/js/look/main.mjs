// The way in from Gradio: follow the component's value.

import { Branches } from "./branches.mjs";
import { restoreView } from "./link.mjs";
import { View } from "./view.mjs";

/** Gradio calls this once, with the element to fill, the component's value in `props.value`, and its events. */
export function mount(root, props, watch, actions) {
  const branches = new Branches(new View(), actions);
  root.replaceChildren(branches.element);
  let linked = null; // the run that a link led to, once it is shown
  const follow = () => {
    branches.follow(props.value);
    const { store } = branches.first;
    const { state, run } = store.pointer;
    if (state === "linked" && run !== linked) {
      linked = run;
      restoreView(store);
    }
    root.dataset.state = state;
  };
  watch("value", follow);
  follow();
}
