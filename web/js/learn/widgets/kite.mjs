// The example of the page's opening: what stories-bpe expects after it, with all heads and without those that copy.

import { share } from "../../lib/numbers.mjs";
import { make } from "../../lib/dom.mjs";
import { bars } from "./chart.mjs";

const STORY =
  "Once upon a time, there was a girl named Lily and a boy named Ben. Ben had a new kite. The wind took the kite up. " +
  "“Look at my";
const NEXT = { kite: 0.943, new: 0.048, string: 0.002 };
const WITHOUT = { kite: 0.006, new: 0.891 }; // the seven heads that look back at “kite”

/** @param {string} title @param {Record<string, number>} chances */
const chart = (title, chances) =>
  bars(
    title,
    Object.entries(chances).map(([label, value]) => ({ label, value })),
    1,
    { format: share },
  );

/** The story up to the gap, and what the model expects there. */
export const story = () =>
  make(
    "div",
    {},
    make("p", { class: "hl-story" }, `${STORY} `, make("b", {}, "?")),
    chart("What it expects next", NEXT),
  );

/** What it expects with all heads, and without seven of them. */
export const storyWithoutHeads = () =>
  make("div", {}, story(), chart("Without the seven heads that look back at “kite”", WITHOUT));
