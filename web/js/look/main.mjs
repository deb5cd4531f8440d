// Where Gradio starts the workspace: it follows the component's value.

import { Branches } from "./branches.mjs";
import { restoreLinkedView } from "./state/linked_view.mjs";
import { View } from "./state/view.mjs";

/** @import { Control, SentPointer, ServerActions } from "../types.js" */

/**
 * Gradio calls this once.
 * @param {HTMLElement} root the element to fill
 * @param {{ value: SentPointer | null }} props the component's properties
 * @param {(name: string, callback: () => void) => void} watch calls back when a property changes
 * @param {ServerActions} actions
 * @param {Control[]} controls the settings that a link holds
 */
export function mount(root, props, watch, actions, controls) {
  const branches = new Branches(new View(), actions, controls);
  root.replaceChildren(branches.element);
  let linked = ""; // the run that a link led to, once it is shown
  const follow = () => {
    branches.follow(props.value);
    const { store } = branches.first;
    const { state, run } = store.pointer;
    if (state === "linked" && run !== linked) {
      linked = run;
      restoreLinkedView(store, location.search);
    }
    root.dataset.state = state;
  };
  watch("value", follow);
  follow();
}
