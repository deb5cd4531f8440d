// Which heads does this text need? The loss with each head removed.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { headEntries, spokenHead } from "../../../lib/heads.mjs";
import { fixed, percent, probabilityChange, probabilityMove, signed, withoutZero } from "../../../lib/numbers.mjs";
import { asWritten, capitalised, spoken, textOf } from "../../../lib/words.mjs";
import { HeadList } from "../head_list.mjs";
import { HeadSet, NO_HEADS } from "../head_set.mjs";
import { selectedToken, textBody, textProblem, tokenName } from "../subject.mjs";
import { chipButton, tabs } from "../../../widgets/controls.mjs";

/** @import { PictureId } from "../../../types.js" */
/** @import { KnockoutAnswer } from "../../../lens.js" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

/** @typedef {KnockoutAnswer & { token_loss: number[], token_delta: number[][][] }} PerTokenAnswer */

const METHODS = { zero: "zeros", mean: "reference mean", text_mean: "mean of this text" };
const METHOD_HELP = {
  zero: "A removed head adds nothing: its context vectors are replaced with zeros.",
  mean:
    "A removed head adds what it adds on average: its context vectors are replaced with their mean over the " +
    "reference set, 24 short English passages that come with Headscope.",
  text_mean:
    "A removed head adds what it adds on average in this text: its context vectors are replaced with their mean over " +
    "all tokens of it, the later ones included, so a change may come from tokens that the model has not read yet.",
};
const IN_PLACE = {
  zero: "with zeros in place of",
  mean: "with its mean over the reference passages in place of",
  text_mean: "with its mean over this text in place of",
};
const ABOUT = { text: "whole text", token: "selected token" };
const MAX_CHIPS = 5; // for which the open head matters most
const SLIGHT_CHANGE = 0.05; // of a probability
const MIN_CHANGE = 0.01; // nats: a smaller change hardly counts
const CLEAR_GAP = 0.15; // of the sum: a smaller difference counts as about the same

/** The head with the largest value. @param {number[][]} values `[layer][head]` @returns {[PictureId, number]} */
function largest(values) {
  const { picture, value } = headEntries(values).reduce((best, one) => (one.value > best.value ? one : best));
  return [picture, value];
}

/**
 * How the joint change of the loss compares with the changes one by one. A cause is named only if all of them are
 * positive and the joint one is at least the largest: otherwise removing some heads helps, and the sum is misleading.
 * @param {number} joint nats
 * @param {number[]} singles nats
 */
export function comparison(joint, singles) {
  const sum = singles.reduce((total, value) => total + value, 0);
  const numbers = `${signed(joint, 3)} nats; one by one they add up to ${signed(sum, 3)}`;
  if (Math.min(joint, ...singles) <= 0 || joint < Math.max(...singles)) return `${numbers}.`;
  if (joint > (1 + CLEAR_GAP) * sum)
    return `${numbers}. Together they cost more: when one is removed alone, others partly compensate.`;
  if (joint < (1 - CLEAR_GAP) * sum) return `${numbers}. Together they cost less: their contributions overlap.`;
  return `${numbers}, about the same: each makes its own contribution.`;
}

/** A value, short enough for a tile. @param {number} value */
const short = (value) => withoutZero(fixed(value, Math.abs(value) < 10 ? 2 : 0));

/** @type {Question} */
export const knockout = {
  key: "knockout",
  title: TITLES.knockout,
  hook: "Each head is removed in turn: how much worse are the predictions?",
  explanation:
    "Each head is removed in turn, and the change of the loss is measured: above 0, the text got harder to predict. " +
    "An increase of 0.69 nats means that a token is half as likely.",
  caution:
    "A small change does not mean that a head does nothing: others may do the same and compensate for it. " +
    "The numbers are about this text, not about the model.",
  defaults: { method: "zero", about: "text", set: NO_HEADS },
  build: (context) => new Knockout(context),
};

/** @implements {BuiltQuestion} */
class Knockout {
  /** @param {AskContext} context */
  constructor({ store, mixer, beside, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    this.methods = tabs("What replaces a removed head", METHODS, (method) => choose({ method }));
    this.abouts = tabs("Loss of", ABOUT, (about) => choose({ about }));
    this.help = make("p", { class: "hs-hint" });
    this.sentence = make("p", { class: "hs-answer" });
    this.together = new HeadSet(
      store,
      { mixer, beside },
      {
        verb: ["remove", "Removed"],
        waiting: "Reading the text without them…",
        choose: (set) => choose({ set }),
        ask: (heads) => ({ route: "removal", body: { ...textBody(store), heads, method: this.chosenMethod() } }),
        say: (pictures, names, { delta, token_delta }) => {
          const position = Math.min(selectedToken(store), token_delta.length);
          const change = choices.about === "token" ? token_delta[position - 1] : delta;
          const what = choices.about === "token" ? `${tokenName(store, position)} is` : "tokens are on average";
          const words = `Without ${names}, ${what} ${probabilityChange(change)}`;
          return pictures.length > 1 ? `${words}: ${comparison(change, this.together.singles(pictures))}` : `${words}.`;
        },
      },
    );
    this.list = new HeadList(store, "Change of the loss without each head", {
      title: "together",
      label: (name) => `Remove ${name} together with others`,
      has: (picture) => this.together.has(picture),
      toggle: (picture) => this.together.toggle(picture),
    });
    this.tokens = make("p", { class: "hs-chips" });
    this.controls = [
      make("span", {}, "replace with"),
      this.methods.element,
      make("span", {}, "loss of"),
      this.abouts.element,
    ];
    this.picture = make("div", { class: "hs-knockout" }, this.list.element, this.together.element);
    this.element = make("div", { class: "hs-knockout" }, this.sentence, this.tokens, this.help);
  }

  chosenMethod() {
    return /** @type {keyof typeof METHODS} */ (this.choices.method in METHODS ? this.choices.method : "zero");
  }

  /** @returns {Asked} */
  request() {
    this.methods.show(this.choices.method);
    this.abouts.show(this.choices.about);
    this.help.textContent = METHOD_HELP[this.chosenMethod()];
    const problem = textProblem(this.store, 2);
    const method = this.chosenMethod();
    return problem || { route: "knockout", body: { ...textBody(this.store), method, per_token: true } };
  }

  /** @param {PerTokenAnswer} answer */
  draw(answer) {
    const position = Math.min(selectedToken(this.store), answer.token_loss.length);
    const isAboutToken = this.choices.about === "token";
    this.conclude(...this.conclusion(answer, position));
    const hasLoss = !isAboutToken || position >= 1;
    for (const part of [this.list.element, this.together.element]) part.hidden = !hasLoss;
    if (!hasLoss) {
      this.sentence.textContent = "The first token is not predicted, so it has no loss. Select a later one.";
      this.tokens.hidden = true;
      this.overlay(null);
      return;
    }
    const values = isAboutToken ? answer.token_delta.map((row) => row.map((head) => head[position - 1])) : answer.delta;
    this.together.show(this.choices.set, values);
    const plain = isAboutToken ? answer.token_loss[position - 1] : answer.loss;
    const of = isAboutToken ? `loss of ${tokenName(this.store, position)}` : "loss per token";
    const rows = headEntries(values).map(({ picture, value }) => ({
      picture,
      value,
      text: `${signed(value, 3)} → ${fixed(plain + value, 3)}`,
    }));
    rows.sort((a, b) => b.value - a.value);
    const [first] = rows;
    const without =
      first.value > 0
        ? `Without ${spokenHead(first.picture)} it is ${fixed(plain + first.value, 3)}.`
        : "Removing any single head does not increase it.";
    this.sentence.textContent = `The ${of} is ${fixed(plain, 3)} nats. ${without} ${slightPlain(answer.delta)}`;
    this.list.show("change of the loss → loss without the head (nats)", rows, true);
    this.showTokens(answer);
    this.overlay({
      title: `Change of the ${of} without each head, in nats`,
      values,
      most: Math.max(...rows.map(({ value }) => Math.abs(value)), 1e-6),
      ramp: "change",
      short,
      long: (value) => `${signed(value, 3)} nats`,
      ends: ["better without it", "worse without it"],
    });
  }

  /** Which head matters most, by name. @param {PerTokenAnswer} answer @param {number} position of the selected token */
  conclusion(answer, position) {
    return knockoutPlain(answer, position, this.chosenMethod(), this.store.tokens[position]?.text);
  }

  /** The tokens for which the open head matters most. @param {PerTokenAnswer} answer */
  showTokens(answer) {
    const [layer, head] = this.store.open;
    /** @type {number[] | undefined} of a picture other than a head */
    const changes = answer.token_delta[layer]?.[head];
    this.tokens.hidden = !changes;
    if (!changes) return;
    const most = changes.map((change, i) => ({ change, position: i + 1 }));
    most.sort((a, b) => b.change - a.change);
    const chips = most.slice(0, MAX_CHIPS).map(({ change, position }) => {
      const text = asWritten(this.store.tokens[position]?.text ?? "");
      const before = textOf(this.store.tokens.slice(Math.max(0, position - 6), position)).trim();
      const chip = chipButton(`${text} ${signed(change, 3)}`);
      chip.title = `Token ${position}, after “${before}”: ${signed(change, 3)} nats without this head`;
      chip.addEventListener("click", () => this.store.selection.look(position - 1));
      return chip;
    });
    this.tokens.replaceChildren(make("span", {}, `${capitalised(this.store.openName)} helps most with`), ...chips);
  }
}

/**
 * Which head matters most: for the text, and for the selected token.
 * @param {Pick<PerTokenAnswer, "delta" | "token_delta" | "token_loss">} answer
 * @param {number} position of the selected token
 * @param {keyof typeof METHODS} method what replaces a removed head
 * @param {string} [text] of the selected token
 * @returns {[string, string]}
 */
export function knockoutPlain({ delta, token_delta, token_loss }, position, method, text = "") {
  const inPlace = IN_PLACE[method];
  const [picture, value] = largest(delta);
  const whole =
    value < MIN_CHANGE
      ? `No single head is needed: ${inPlace} what any one of them writes, this text is predicted about as well, or ` +
        "better."
      : `This text needs ${spokenHead(picture)} most: ${inPlace} what it writes, the tokens are on average ` +
        `${probabilityChange(value)}.`;
  if (position < 1) return [whole, ""];
  const [best, change] = largest(token_delta.map((row) => row.map((head) => head[position - 1])));
  const token = spoken(text);
  const needs =
    change < MIN_CHANGE
      ? `No single head is needed: without any one of them, ${token} is predicted about as well, or better.`
      : `${capitalised(token)} needs ${spokenHead(best)} most: without the whole head, its probability ` +
        `${probabilityMove(Math.exp(-token_loss[position - 1]), change)}.`;
  return [whole, needs];
}

/** How many heads the text hardly needs by themselves. @param {number[][]} delta */
export function slightPlain(delta) {
  const changes = delta.flat();
  const slight = changes.filter((change) => Math.abs(change) < Math.log1p(SLIGHT_CHANGE)).length;
  return (
    `For ${slight} of ${changes.length} heads, removing it alone changes the probability of the tokens by less than ` +
    `${percent(SLIGHT_CHANGE)} on average.`
  );
}
