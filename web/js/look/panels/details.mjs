// "Details" shows everything for researchers: exact numbers, legends, menus, and marks for spaces. Without them the
// page shows what somebody needs who has never heard of attention. The style sheets hide `.hs-detail` then, and
// `.hs-simple` with details.

import { make, setFlag } from "../../lib/dom.mjs";
import { readStored, writeStored } from "../../widgets/storage.mjs";
import { effect } from "../../lib/reactive.mjs";

/** @import { View } from "../state/view.mjs" */

const STORED = "headscope-details";

/** Whether the visitor chose to see the details. */
export const wantsDetails = () => readStored(STORED) === "on";

/** Show them or not, from now on. @param {View} view @param {boolean} details */
export function chooseDetails(view, details) {
  writeStored(STORED, details ? "on" : "off");
  view.set({ details });
}

/** Show the stage again, from now on. @param {View} view */
export function leaveDetails(view) {
  if (wantsDetails()) chooseDetails(view, false);
  else view.set({ details: false });
}

/** The switch, which the browser remembers. @param {View} view */
export function detailsSwitch(view) {
  const button = make(
    "button",
    { type: "button", class: "hs-button hs-plain-button hs-details", role: "switch" },
    "Details",
  );
  button.title = "Every number, legend and tool, for those who want them all";
  button.addEventListener("click", () => chooseDetails(view, !view.options.details));
  effect(() => {
    const { details } = view.options;
    setFlag(button, "aria-checked", details);
    document.body.dataset.details = details ? "on" : "off";
  });
  return button;
}
