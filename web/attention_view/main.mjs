// The way in from Gradio: follow the component's value.

import { restoreView } from "./link.mjs";
import { View } from "./view.mjs";
import { Workspace } from "./workspace.mjs";

/** Gradio calls this once, with the element to fill and the component's value in `props.value`. */
export function mount(root, props, watch) {
  const workspace = new Workspace(new View());
  root.replaceChildren(workspace.element);
  let linked = null; // the run that a link led to, once it is shown
  const follow = () => {
    const { store } = workspace;
    store.follow(props.value);
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
