// A form for a second text: the text at hand, to be changed, which the same model then reads beside it.

import { make } from "../../lib/dom.mjs";
import { isBusy } from "../state/pointer.mjs";

/** @import { TextActions } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

/**
 * @param {Store} store
 * @param {TextActions["readText"]} readText
 * @param {() => void} closed is called when a visitor has closed it
 */
export function ownText(store, readText, closed) {
  const field = make("textarea", { rows: 5, spellcheck: "false", "aria-label": "Text to compare with" });
  const problem = make("p", { class: "hs-problem", role: "alert", hidden: true });
  const read = make("button", { type: "submit", class: "hs-small hs-primary" }, "Compare");
  const cancel = make("button", { type: "button", class: "hs-small" }, "Cancel");
  const hint = make(
    "p",
    { class: "hs-hint" },
    "This text, for you to change: swap a word or write another one. Both are read by the same model.",
  );
  const buttons = make("div", { class: "hs-controls" }, read, cancel);
  const element = make("form", { class: "hs-own-text", "aria-label": "Another text", hidden: true });
  element.append(hint, field, problem, buttons);
  let of = ""; // the run whose text was put into the field

  /** @param {string} why "" for nothing */
  const refuse = (why) => {
    problem.textContent = why;
    problem.hidden = !why;
    field.setAttribute("aria-invalid", String(why !== ""));
  };
  const close = () => {
    element.hidden = true;
    refuse("");
    closed();
  };
  const open = () => {
    const { run, context_length } = store.pointer;
    const text = store.tokens.slice(0, context_length).map((token) => token.text);
    if (run !== of) field.value = text.join("");
    of = run;
    element.hidden = false;
    field.focus();
  };
  cancel.addEventListener("click", close);
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { run } = store.pointer;
    refuse(field.value ? "" : "The text is empty: the model needs at least one token to read.");
    if (!field.value) {
      field.focus();
      return;
    }
    read.disabled = true;
    const why = await readText(field.value);
    read.disabled = false;
    if (run !== of || element.hidden) return;
    refuse(why);
    if (why) field.focus();
    else element.hidden = true;
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element.requestSubmit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  store.on("state", () => {
    if (!element.hidden && (isBusy(store.pointer.state) || store.pointer.run !== of)) element.hidden = true;
  });
  return { element, open };
}
