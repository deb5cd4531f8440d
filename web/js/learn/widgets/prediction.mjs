// The prediction to make before a picture.

import { make } from "../../lib/dom.mjs";
import { PHONE_WIDTH } from "./elements.mjs";

/** @import { Prediction } from "../rung.js" */

/**
 * @param {Prediction} prediction
 * @param {number | undefined} chosen the option that was chosen in an earlier visit
 * @param {(chosen: number | undefined) => void} answer called with each answer, and with undefined to try again
 */
export function prediction({ ask, options, right, why }, chosen, answer) {
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
  const title = make("summary", {}, "Before you go on: make a prediction");
  const list = make("div", { class: "hl-options" }, ...buttons);
  const attributes = { class: "hl-prediction", "aria-label": "Prediction", open: innerWidth > PHONE_WIDTH };
  return make("details", attributes, title, make("p", {}, ask), list, verdict);
}
