// A text in an HTML file (model/drawing/html.py): the same workspace, without a server.

import { make } from "../../lib/dom.mjs";
import { limitDigits } from "../../lib/numbers.mjs";
import { showRectangles } from "../../lib/triangle.mjs";
import { detailsSwitch, wantsDetails } from "../panels/details.mjs";
import { Slider } from "../settings.mjs";
import { PREPARED, usePrepared } from "../state/prepared.mjs";
import { View } from "../state/view.mjs";
import { Workspace } from "../workspace.mjs";
import { openSaved } from "./saved_text.mjs";

/** @import { Control, SavedText, SavedView } from "../../types.js" */

/** Called by the file's own script. */
export async function start() {
  const root = /** @type {HTMLElement} */ (document.querySelector(".headscope"));
  /** @type {SavedText} */
  const saved = read("hs-saved");
  /** @type {SavedView | null} */
  const shown = read("hs-saved-view");
  followTheme();
  if (!saved.exact) limitDigits();
  if (saved.n_keys) showRectangles(saved.n_keys, saved.pointer.tokens);
  root.classList.toggle("hs-rectangles", saved.n_keys > 0);
  root.classList.toggle("hs-without-model", !saved.vocab_size);
  const { attribution, isOnStage } = shown ?? {};
  usePrepared({ ...(await openSaved(saved, shown?.answered ?? null)), attribution, isOnStage });
  const view = new View();
  // A file that no page has saved shows everything; the stage is about the next word, which attention alone lacks.
  view.set({ details: wantsDetails() || !shown || saved.n_keys > 0 || !saved.vocab_size, ...shown?.options });
  const controls = saved.controls ?? [];
  const sliders = new FewSettings(controls, saved.pointer.settings ?? {});
  const workspace = new Workspace(view, sliders, null);
  const { store, element, panels } = workspace;
  await workspace.addInstrument();
  await workspace.addAsk();
  if (sliders.element) panels.querySelector(".hs-next")?.append(sliders.element);
  const { model, run } = { run: PREPARED, ...saved.pointer };
  const precision = saved.exact ? "float32 weights" : "weights stored in half precision, shown to three digits";
  const alone = saved.vocab_size ? "" : " · attention weights only, without a model";
  const about = make("p", { class: "hs-hint" }, make("b", {}, model ?? ""), `${alone} · ${precision}`);
  const details = detailsSwitch(view);
  details.classList.add("hs-small");
  const top = make("header", { class: "hs-saved" }, about, details);
  root.replaceChildren(top, element);
  store.follow({ ...saved.pointer, run, head: shown?.open ?? saved.pointer.head });
  store.setRoles(shown?.roles ?? null);
  if (shown) store.selection.restore(shown.locked, shown.step);
}

/** The JSON in an element of the file. @param {string} id */
const read = (id) => JSON.parse(/** @type {HTMLElement} */ (document.getElementById(id)).textContent);

/** Light or dark, like whatever displays the file. */
function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.body.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", follow);
  follow();
}

/** The sliders that the next-token bars follow, if the file has all logits. */
class FewSettings {
  /** @type {(() => void)[]} */
  #listeners = [];

  /** @param {Control[]} controls @param {Record<string, unknown>} settings with which the text was written */
  constructor(controls, settings) {
    const changed = () => this.#listeners.forEach((listener) => listener());
    this.sliders = controls.map((control) => new Slider(/** @type {any} */ (control), changed));
    for (const slider of this.sliders) {
      const value = settings[slider.control.name] ?? NEUTRAL[slider.control.name];
      if (typeof value === "number") slider.show(value);
    }
    const rows = this.sliders.map(({ element }) => element);
    this.element = rows.length ? make("div", {}, ...rows) : null;
  }

  /** @param {() => void} callback whenever a slider moves */
  on(callback) {
    this.#listeners.push(callback);
  }

  get values() {
    return Object.fromEntries(this.sliders.map((slider) => [slider.control.name, slider.value]));
  }
}

/** @type {Record<string, number>} */
const NEUTRAL = { temperature: 1, top_k: 0, top_p: 1, min_p: 0 };
