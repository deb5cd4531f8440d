// A prediction to make before the picture answers it.

import { make } from "../../lib/dom.mjs";

/** @import { Question } from "../rung.js" */

const PHONE = 640; // pixels, below which the question is folded so that the picture comes sooner

/**
 * @param {Question} question
 * @param {number | undefined} chosen the option that was chosen in an earlier visit
 * @param {(chosen: number | undefined) => void} answer is called with each answer, and with none to try again
 */
export function question({ ask, options, right, why }, chosen, answer) {
  const verdict = make("p", { class: "hl-why", role: "status" });
  const buttons = options.map((text, i) =>
    make("button", { type: "button", class: "hs-small", onclick: () => choose(i) }, text),
  );
  const again = make("button", { type: "button", class: "hs-small", onclick: () => choose(undefined) }, "Try again");
  /** @param {number | undefined} answered */
  const show = (answered) => {
    const isAnswered = answered !== undefined;
    buttons.forEach((button, i) => {
      button.disabled = isAnswered;
      button.classList.toggle("hl-right", isAnswered && i === right);
      button.classList.toggle("hl-wrong", i === answered && i !== right);
      button.setAttribute("aria-pressed", String(i === answered));
    });
    const judged = answered === right ? "Yes. " : `No: ${options[right]}. `;
    verdict.replaceChildren(...(isAnswered ? [make("b", {}, judged), why, " ", again] : []));
  };
  /** @param {number | undefined} i */
  const choose = (i) => {
    show(i);
    answer(i);
  };
  show(chosen !== undefined && Number.isInteger(chosen) && chosen in options ? chosen : undefined);
  const title = make("summary", {}, "Before you go on: predict");
  const list = make("div", { class: "hl-options" }, ...buttons);
  const attributes = { class: "hl-question", "aria-label": "Question", open: innerWidth > PHONE };
  return make("details", attributes, title, make("p", {}, ask), list, verdict);
}
