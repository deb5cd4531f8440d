// "Compare": the menu of texts and readings to compare the current text with, and the form for a second text.

import { make } from "../../lib/dom.mjs";
import { isHead } from "../../lib/heads.mjs";
import { baseName, promptText } from "../../lib/words.mjs";
import { menu } from "../../widgets/menu.mjs";
import { withScale } from "../../lib/head_masks.mjs";
import { isBusy } from "../state/pointer.mjs";
import { mainAction, quietAction } from "../../widgets/controls.mjs";
import { badge } from "./names.mjs";
import { effect, whenever } from "../../lib/reactive.mjs";

/** @import { ReadAgain } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Texts } from "./texts.mjs" */

/** What is said of a text B while it is written. */
export const ABOUT = ": change a word, or write another text. You will see where the two part, and which heads differ.";
export const UNCHANGED = "This is still the text A: change a word of it first.";

/** @param {ShownText} store @param {Texts} texts */
export function compareMenu(store, texts) {
  const holder = make("span", { class: "hs-compare-menu" });
  const own = new OwnText(store, texts, () => opener()?.focus());
  /** @returns {HTMLButtonElement | null} */
  const opener = () => holder.querySelector("button[aria-haspopup]");
  /** @param {ReadAgain} reading */
  const readAgain = (reading) => texts.rereads.begin(reading);
  let listed = "";

  const draw = () => {
    const { model, settings, state, run } = store.pointer;
    const { models } = texts;
    const steps = models.find(({ name }) => name === baseName(model))?.steps ?? [];
    const list = JSON.stringify([model, models.map(({ name }) => name), steps, Boolean(settings.prompt)]);
    const isReady = run !== "" && !isBusy(state) && store.length > 0;
    if (list !== listed) {
      listed = list;
      /** @type {[string, () => void][]} */
      const items = [];
      items.push(["texts", () => own.open()]);
      if (settings.prompt) items.push(["with a new seed", () => texts.writing.writeAnother()]);
      items.push(["with heads muted", () => mute()]);
      for (const { name } of models) {
        if (name !== baseName(model)) items.push([`with ${name}`, () => readAgain({ model: name, head_mask: null })]);
      }
      if (steps.length) items.push(["with another training step", () => readAgain(otherStep(model, steps))]);
      const { element, button } = menu("Compare", "Compare this text", items);
      holder.replaceChildren(element, own.element);
      button.title = "Show this text next to another one, or next to another reading of it";
    }
    for (const button of holder.querySelectorAll("button[aria-haspopup]")) {
      /** @type {HTMLButtonElement} */ (button).disabled = !isReady;
    }
  };

  /** The open head is muted first, so that there is something to see. */
  const mute = () => {
    const { pointer, open } = store;
    const muted = isHead(open, pointer) ? [open] : [];
    readAgain({ model: pointer.model, head_mask: withScale(null, pointer, muted, 0) });
    texts.compare.heads.startMuting(true);
  };

  whenever(() => store.progress, draw);
  return holder;
}

/**
 * What to compare with: the middle training step for the model itself, the model itself for a snapshot.
 * @param {string} model
 * @param {number[]} steps
 */
function otherStep(model, steps) {
  const base = baseName(model);
  return { model: model === base ? `${base}@${steps[Math.floor((steps.length - 1) / 2)]}` : base, head_mask: null };
}

export class OwnText {
  /**
   * @param {ShownText} store
   * @param {Texts} texts
   * @param {() => void} closed called when the visitor has closed the form
   */
  constructor(store, texts, closed) {
    this.store = store;
    this.closed = closed;
    this.texts = texts;
    this.field = make("textarea", { rows: 3, spellcheck: "false", "aria-label": "Text to compare with" });
    this.first = make("span", {});
    const firstLine = make("p", { class: "hs-own-first" }, badge("a"), this.first);
    this.problem = make("p", { class: "hs-problem", role: "alert", hidden: true });
    const read = mainAction("Compare", () => {}, { type: "submit", title: "Enter" });
    const cancel = quietAction("Cancel");
    const hint = make("p", { class: "hs-own-about" }, "This is ", badge("b"), ABOUT);
    const buttons = make("div", { class: "hs-controls" }, read, cancel);
    this.element = make("form", { class: "hs-own-text", "aria-label": "Another text", hidden: true });
    this.element.append(firstLine, this.field, hint, this.problem, buttons);
    this.of = ""; // the run whose text was put into the field
    cancel.addEventListener("click", () => this.close());
    this.element.addEventListener("submit", async (event) => {
      event.preventDefault();
      const { run } = store.pointer;
      this.refuse(this.#why());
      if (this.#why()) {
        this.field.focus();
        return;
      }
      read.disabled = true;
      const why = await texts.rereads.readText(this.field.value);
      read.disabled = false;
      if (run !== this.of || this.element.hidden) return;
      this.refuse(why);
      if (why) this.field.focus();
      else this.element.hidden = true;
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
      else if (event.key === "Enter" && event.target === this.field && !event.shiftKey && !event.isComposing) {
        this.element.requestSubmit();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    effect(() => {
      const { state, run } = store.pointer;
      if (isBusy(state) || run !== this.of) this.element.hidden = true;
    });
  }

  /** Why this text is not compared; "" if it can be. */
  #why() {
    const { value } = this.field;
    if (!value) return "The text is empty: the model needs at least one token to read.";
    return value === this.first.textContent ? UNCHANGED : "";
  }

  /** @param {string} why "" for nothing */
  refuse(why) {
    this.problem.textContent = why;
    this.problem.hidden = !why;
    this.field.setAttribute("aria-invalid", String(why !== ""));
  }

  close() {
    this.element.hidden = true;
    this.refuse("");
    this.closed();
  }

  open() {
    const { run, context_length } = this.store.pointer;
    this.first.textContent = promptText(this.texts.first, context_length);
    if (run !== this.of) this.field.value = promptText(this.store, context_length);
    this.of = run;
    this.element.hidden = false;
    this.field.focus();
  }
}
