// What a question is about: the text, the prediction and the head that are selected.

import { withScale } from "../../lib/head_masks.mjs";
import { isHead } from "../../lib/heads.mjs";
import { make } from "../../lib/dom.mjs";
import { headsOff } from "../state/mixer.mjs";
import { capitalised, plainly, spoken, unitOf, whyQuestion } from "../../lib/words.mjs";

/** @import { PictureId } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { ShownStep } from "../stage/shown_step.mjs" */

/**
 * The text as the routes under `v1/lens/` take it, with the head mask it was written with and without the heads that
 * are off on the stage. The last token of a full context was written but never read.
 * @param {ShownText} store
 */
export function textBody(store) {
  const { pointer } = store;
  const { model, context_length } = pointer;
  const head_mask = withScale(pointer.head_mask, pointer, headsOff(store), 0);
  const tokens = store.ids.slice(0, context_length);
  return head_mask ? { model, tokens, head_mask } : { model, tokens };
}

/**
 * Why the question cannot be asked about the text; "" if it can.
 * @param {ShownText} store
 * @param {number} [least] tokens that it must have
 */
export function textProblem(store, least = 1) {
  if (!store.pointer.run) return "There is no text yet. Write one to ask about it.";
  if (store.isGrowing) return "The text is still being written. The question will be asked when it is complete.";
  if (store.ids.length < least) return `This question needs a text of at least ${least} tokens.`;
  return "";
}

/** The position of the token that all panels name, else the newest. @param {ShownText} store */
export const selectedToken = (store) => store.selection.chosen ?? store.tokens.length - 1;

/** @param {ShownText} store @param {number} position */
export const tokenName = (store, position) => `${spoken(store.tokens[position]?.text ?? "")} (token ${position})`;

/** @typedef {{ position: number, token: number | null }} Prediction a null token stands for the most probable one */

/**
 * The prediction of the token that all panels name, as in the next-token panel.
 * @param {ShownText} store
 * @returns {Prediction}
 */
export function askedPrediction({ selection: { predictor }, tokens }) {
  const position = predictor < 0 ? tokens.length - 1 : predictor;
  return { position, token: tokens[position + 1]?.id ?? null };
}

/** The open head; null while a mean or a rollout is open. @param {ShownText} store @returns {PictureId | null} */
export function openHead({ open, pointer }) {
  return isHead(open, pointer) ? open : null;
}

/**
 * The open head and the prediction that a question about both needs, or why it cannot be asked.
 * @param {ShownText} store
 * @returns {string | (ReturnType<typeof textBody> & Prediction & { layer: number, head: number })}
 */
export function headAndPrediction(store) {
  const open = openHead(store);
  if (!open) return "This question is about one head: open one in the grid.";
  const problem = textProblem(store);
  if (problem) return problem;
  store.selection.settle();
  return { ...textBody(store), layer: open[0], head: open[1], ...askedPrediction(store) };
}

/**
 * The next word in quotes: that of the stage, or what stands in the text.
 * @param {ShownText} store
 * @param {ShownStep} [step]
 */
export function nextWord(store, step) {
  const text = nextText(store, step);
  return text === undefined ? `this ${unitOf(store)}` : spoken(text);
}

/** @param {ShownText} store @param {ShownStep} [step] */
function nextText(store, step) {
  const next = step?.shown?.target ?? null;
  return next === null ? store.tokens[askedPrediction(store).position + 1]?.text : step?.texts[next];
}

/**
 * The next word as it is shown: tinted, where quotes around a mark would be hard to read.
 * @param {ShownText} store
 * @param {ShownStep} step
 */
export function shownNextWord(store, step) {
  const words = nextWord(store, step);
  const text = nextText(store, step);
  return text !== undefined && words.startsWith("“") ? make("span", { class: "hs-token-name" }, plainly(text)) : words;
}

/**
 * The question why the next word comes, in parts.
 * @template {string | Node} Name
 * @param {ShownText} store
 * @param {ShownStep} step
 * @param {Name} name of the word
 */
export const whyNext = (store, step, name) => whyQuestion(nextText(store, step) ?? "", name);

/**
 * What a group of questions is about.
 * @param {ShownText} store
 * @param {"word" | "head" | "text" | "prompts"} topic
 */
export function topicWords(store, topic) {
  if (topic === "word") return `The next ${unitOf(store)}`;
  if (topic === "head") return capitalised(store.openName);
  return topic === "text" ? "The whole text" : "Many prompts";
}
