// What the pages of Headscope tell one another, as window events. web/page/tabs.py listens to two of them by name.

/** @typedef {Window & { headscopeModel?: string | null }} ModelWindow */

/** Another model is chosen in the bar: `announceModel` announces it, `chosenModel` reads it. */
export const modelChosen = "headscope-model";
/** The list of models has changed; the detail names the one that writes at once, "" for none. */
export const modelsChanged = "headscope-models";
/** Another page is shown; `document.body.dataset.page` is its name. */
export const pageShown = "headscope-page";
/** A visitor with a training of their own has come back. */
export const trainingResumed = "headscope-training";

/**
 * @param {string} name one of the above
 * @param {string} [detail]
 */
export const announce = (name, detail = "") => void window.dispatchEvent(new CustomEvent(name, { detail }));

/** Tell the other pages which model is chosen. @param {string | null} name */
export function announceModel(name) {
  /** @type {ModelWindow} */ (window).headscopeModel = name;
  announce(modelChosen);
}

/** The model that is chosen at the top of the page, null for none. */
export const chosenModel = () => /** @type {ModelWindow} */ (window).headscopeModel ?? null;

/** @import { LookView } from "../types.js" */

/** @type {() => LookView | null} */
let readLook = () => null;

/** Let the other pages read what *Look* shows. @param {() => LookView | null} read */
export function shareLook(read) {
  readLook = read;
}

/** What *Look* shows; null before it shows anything. */
export const viewOfLook = () => readLook();
