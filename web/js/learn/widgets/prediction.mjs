// The prediction to make before a picture.

import { make } from "../../lib/dom.mjs";
import { PHONE_WIDTH } from "./elements.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Answered, Prediction } from "../rung.js" */

/**
 * @param {Prediction} prediction
 * @param {Answered | null} earlier the answer to it in an earlier visit
 * @param {(answered: Answered | null) => void} answer called with each answer, and with null to try again
 */
export function prediction({ ask, options, right, why }, earlier, answer) {
  const verdict = make("p", { class: "hl-why", role: "status" });
  const buttons = options.map((text, i) => {
    const onclick = () => take({ answer: i, isRight: i === right, wrong: Number(i !== right) });
    return smallButton(text, onclick);
  });
  const again = smallButton("Try again", () => take(null));
  /** @param {Answered | null} answered */
  const show = (answered) => {
    buttons.forEach((button, i) => {
      const isChosen = i === answered?.answer;
      button.disabled = answered !== null;
      button.classList.toggle("hl-right", answered !== null && i === right);
      button.classList.toggle("hl-wrong", isChosen && i !== right);
      button.setAttribute("aria-pressed", String(isChosen));
    });
    const judged = answered?.answer === right ? "Yes. " : `No: ${options[right]}. `;
    verdict.replaceChildren(...(answered ? [make("b", {}, judged), why, " ", again] : []));
  };
  /** @param {Answered | null} answered */
  const take = (answered) => {
    show(answered);
    answer(answered);
  };
  show(earlier);
  const title = make("summary", {}, "Before you go on: make a prediction");
  const list = make("div", { class: "hl-options" }, ...buttons);
  const attributes = { class: "hl-prediction", "aria-label": "Prediction", open: innerWidth > PHONE_WIDTH };
  return make("details", attributes, title, make("p", {}, ask), list, verdict);
}
