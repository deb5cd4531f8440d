// The example of the page's opening: what stories-bpe expects after it, with all heads and without those that copy.
// The recorded chances are shown until the server has computed them, and where it does not offer that model.

import { make } from "../../lib/dom.mjs";
import { headName } from "../../lib/heads.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { counted, share } from "../../lib/numbers.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { ask } from "../server.mjs";
import { bars } from "./chart.mjs";

/** @import { Data } from "../data.js" */

const STORY =
  "Once upon a time, there was a girl named Lily and a boy named Ben. Ben had a new kite. The wind took the kite up. " +
  "“Look at my";
const NEXT = { kite: 0.943, new: 0.048, string: 0.002 };
const WITHOUT = { kite: 0.006, new: 0.891 }; // the seven heads that look back at “kite”

// What the model would write after each addition to the stream of “my”, and the chance of “kite”.
const NOTEBOOK = [
  { layer: 3, part: "MLP", word: "my", chance: 0 },
  { layer: 4, part: "attention", word: "my", chance: 0 },
  { layer: 4, part: "MLP", word: "big", chance: 0.001 },
  { layer: 5, part: "attention", word: "kite", chance: 0.373 },
  { layer: 5, part: "MLP", word: "kite", chance: 0.221 },
  { layer: 6, part: "attention", word: "kite", chance: 0.749 },
  { layer: 6, part: "MLP", word: "kite", chance: 0.464 },
  { layer: 7, part: "attention", word: "kite", chance: 0.931 },
  { layer: 7, part: "MLP", word: "kite", chance: 0.943 },
];

/** @param {string} title @param {Record<string, number>} chances */
const chart = (title, chances) =>
  bars(
    title,
    Object.entries(chances).map(([label, value]) => ({ label, value })),
    1,
    { format: share },
  );

/** The story up to the gap. */
const text = () => make("p", { class: "hl-story" }, `${STORY} `, make("b", {}, "?"));

/** The story, and what the model expects at its end. */
export const story = () => make("div", {}, text(), chart("What it expects next", NEXT));

/** What the stream of “my” says after each addition: the word that would be written, and the chance of “kite”. */
export function notebook() {
  const element = make("div", { class: "hl-known-story" }, text(), additions(NOTEBOOK));
  void ask("kite", {}).then(
    ({ notebook: found }) => found && element.lastElementChild?.replaceWith(additions(found)),
    () => {}, // the recorded numbers stay
  );
  return element;
}

/** The additions from the last one at which the first word is still the likeliest. @param {typeof NOTEBOOK} all */
function additions(all) {
  const first = all.findIndex(({ word }) => word !== all[0].word);
  const rows = all.slice(Math.max(0, first - 1)).map(({ layer, part, word, chance }, i) => ({
    label: `${i ? "" : "until "}${part} ${layer}: “${word}”`,
    value: chance,
  }));
  return bars("After the part of each layer: the likeliest word, and the chance of “kite”", rows, 1, { format: share });
}

const RECORDED = "As recorded: this server does not offer stories-bpe, the model of the story.";

/** The story through the steps of the lessons, and the heads in it that look back at “kite”. */
export function storyByTheLessons() {
  const stamp = new Stamp(
    "the story through all layers by the steps of rungs 5 to 9, compared with the model’s code",
    true,
  );
  const element = make("div", { class: "hl-known-story" }, story());
  /** @param {Data["kite"]} data */
  function show(data) {
    if (!data.chances || !data.heads) {
      element.append(make("p", { class: "hl-count" }, RECORDED));
      return;
    }
    const weights = data.heads.map(({ head, weight }) => ({ label: headName(head), value: weight }));
    stamp.show(data.error ?? null, data.largest_error);
    element.replaceChildren(
      text(),
      chart("What your construction expects next", data.chances[0]),
      bars(
        "How much of its attention each of seven heads gives both places of “kite” together, from “my”",
        weights,
        1,
        { format: share },
      ),
      stamp.element,
    );
  }
  void ask("kite", {}).then(show, () => {});
  return element;
}

/** What the model expects with all heads, and without those that the visitor takes away. */
export class StoryWithoutHeads {
  #request = new LatestRequest();

  /** @param {{ taken?: number[][] }} kept the heads that are taken away, all seven at first */
  constructor(kept) {
    this.kept = kept;
    this.buttons = make("div", { class: "hl-follow", role: "group", "aria-label": "Heads that are taken away" });
    this.without = make("div", {}, chart("Without the seven heads that look back at “kite”", WITHOUT));
    this.said = make("p", { class: "hl-count", role: "status" });
    this.element = make("div", { class: "hl-known-story" }, text(), this.buttons, this.without, this.said);
    this.buttons.hidden = true;
    void this.#load();
  }

  async #load() {
    try {
      const { taken } = this.kept;
      /** @type {Data["kite"] | null} */
      const data = await this.#request.send((signal) => ask("kite", taken ? { muted: taken } : {}, signal));
      if (!data) return;
      if (!data.heads) this.said.textContent = RECORDED;
      else if (taken) this.#show(data);
      else this.#take(data.heads.map(({ head }) => head));
    } catch (error) {
      this.said.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {number[][]} heads */
  #take(heads) {
    this.kept.taken = heads;
    void this.#load();
  }

  /** @param {Data["kite"]} data */
  #show({ heads = [], chances = [], best }) {
    const gone = heads.filter(({ isMuted }) => isMuted).map(({ head }) => head);
    const toggles = heads.map(({ head, isMuted }) => {
      const rest = gone.filter((each) => String(each) !== String(head));
      const onclick = () => this.#take(isMuted ? rest : [...gone, head]);
      return make("button", { type: "button", "aria-pressed": String(isMuted), onclick }, headName(head));
    });
    const isAll = gone.length === heads.length;
    const all = smallButton(isAll ? "Give all back" : "Take all away");
    all.addEventListener("click", () => this.#take(isAll ? [] : heads.map(({ head }) => head)));
    this.buttons.hidden = false;
    this.buttons.replaceChildren(...toggles, all);
    const what = gone.length
      ? `Without ${counted(gone.length, "head")}: ${gone.map(headName).join(", ")}`
      : "With all heads";
    this.without.replaceChildren(chart(what, chances[1]));
    this.said.textContent = best ? `It would write “${best.text.trim()}”, with a chance of ${share(best.p)}.` : "";
  }
}
