// A prediction to make before the answer is shown.

import { make } from "../../lib/dom.mjs";

/** @import { Question } from "../rung.js" */

/**
 * @param {Question} question
 * @param {number | undefined} chosen the option that was chosen in an earlier visit
 * @param {(chosen: number) => void} answer is called once
 */
export function question({ ask, options, right, why }, chosen, answer) {
  const verdict = make("p", { class: "hl-why", role: "status" });
  const buttons = options.map((text, i) =>
    make("button", { type: "button", class: "hs-small", onclick: () => choose(i) }, text),
  );
  /** @param {number} answered */
  const show = (answered) => {
    buttons.forEach((button, i) => {
      button.disabled = true;
      if (i === right) button.classList.add("hl-right");
      else if (i === answered) button.classList.add("hl-wrong");
      button.setAttribute("aria-pressed", String(i === answered));
    });
    verdict.replaceChildren(make("b", {}, answered === right ? "Yes. " : `No: ${options[right]}. `), why);
  };
  /** @param {number} i */
  const choose = (i) => {
    show(i);
    answer(i);
  };
  if (chosen !== undefined && Number.isInteger(chosen) && chosen in options) show(chosen);
  const title = make("h3", {}, "Before you go on: predict");
  const list = make("div", { class: "hl-options" }, ...buttons);
  const attributes = { class: "hl-question", "aria-label": "Question" };
  return make("section", attributes, title, make("p", {}, ask), list, verdict);
}
