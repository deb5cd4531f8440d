// The answer key of the page for teachers and of the worksheets.

import { make } from "../../lib/dom.mjs";
import { rightAnswer } from "../widgets/exercises.mjs";

/** @import { Exercise, Prediction } from "../rung.js" */

/**
 * A question, its answer and why.
 * @param {Prediction | Exercise} question
 */
export function answerTo(question) {
  const right = rightAnswer("kind" in question ? question : { ...question, kind: "choice", hint: "" });
  return [question.ask, " ", make("b", {}, right), ". ", question.why];
}
