// "Why this token?": what every part of the model adds to the logit of the next token.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { headEntries, spokenHead } from "../../../lib/heads.mjs";
import { exact, fixed, share, signed, withoutZero } from "../../../lib/numbers.mjs";
import { capitalised, spoken, spokenApart, visible } from "../../../lib/words.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { HeadList } from "../head_list.mjs";
import { askedPrediction, openHead, textBody, textProblem } from "../subject.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { makeCell, makeRow, makeTable } from "../../../widgets/table.mjs";

/** @import { Overlay, PictureId } from "../../../types.js" */
/** @import { AttributionAnswer } from "../../../lens.js" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

const TOLERANCE = 1e-3; // up to this difference, the sum of the parts counts as equal to the logit
const LIKELIEST = /** @type {const} */ ("likeliest"); // the most probable other token
const NOTHING = "none"; // the logit itself
const DEFAULTS = { token: "written", against: LIKELIEST };

/** @type {Question} */
export const attribution = {
  key: "attribution",
  title: TITLES.attribution,
  hook: "Which parts of the model favour it, and which work against it.",
  explanation:
    "A token’s score, its logit, is a sum; the higher it is, the more probable the token. One part comes from each " +
    "head, one from each layer’s MLP (which works on a token alone), one from the token itself (its embedding), and " +
    "one from the biases. Here are those of this token, minus those of the most probable other token. The scale of " +
    "the final norm is held fixed.",
  caution:
    "A part is a direct effect only: it does not include how a head changes what later layers compute, or how the " +
    "final norm would scale the other parts without it. " +
    "Only differences of logits matter to the probabilities; against another token the parts can look different.",
  defaults: DEFAULTS,
  build: (context) => new Attribution(context),
};

/** @implements {BuiltQuestion} */
class Attribution {
  /** @param {AskContext} context */
  constructor({ store, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    /** @type {AttributionAnswer | null} */
    this.shown = null;
    this.token = make("select", { "aria-label": "The next token" });
    this.against = make("select", { "aria-label": "Rather than another token" });
    this.token.addEventListener("change", () => choose({ token: this.token.value, against: DEFAULTS.against }));
    this.against.addEventListener("change", () => choose({ against: this.against.value }));
    this.sentence = make("p", { class: "hs-answer" });
    this.parts = make("div", { class: "hs-answer-scroll" });
    this.heads = new HeadList(store, "What each head adds");
    this.next = smallButton("", () => this.onclick());
    this.stamp = new Stamp("all parts added up, and the model’s logit", true);
    this.controls = [make("label", {}, "why ", this.token), make("label", {}, "rather than ", this.against)];
    this.picture = this.parts;
    this.element = make(
      "div",
      { class: "hs-answer-part" },
      this.sentence,
      this.heads.element,
      make("div", {}, this.next),
      this.stamp.element,
    );
  }

  onclick() {
    return this.store.view.set({ ask: "head", askWith: "" });
  }

  /**
   * The token of a choice, which holds for one position: "id-position".
   * @param {string} choice
   * @param {number} position
   */
  tokenOf(choice, position) {
    const [id, at] = choice.split("-").map(Number);
    return at === position && Number.isInteger(id) ? id : null;
  }

  /** @returns {Asked} */
  request() {
    const problem = textProblem(this.store);
    if (problem) return problem;
    this.store.selection.settle();
    const { position, token: written } = askedPrediction(this.store);
    const other = this.tokenOf(this.choices.against, position);
    const body = {
      token: this.tokenOf(this.choices.token, position) ?? written,
      against: this.choices.against === NOTHING ? null : (other ?? LIKELIEST),
    };
    return { route: "attribution", body: { ...textBody(this.store), position, ...body } };
  }

  /** @param {AttributionAnswer} answer */
  draw(answer) {
    this.conclude(...whyPlain(answer));
    this.next.hidden = !openHead(this.store);
    this.next.textContent = `What does ${this.store.openName} take from each token?`;
    if (answer === this.shown) return this.overlay(overlayOf(answer));
    this.shown = answer;
    this.sentence.textContent = attributionSentence(answer);
    this.fillChoices(answer);
    this.parts.replaceChildren(partsTable(answer));
    const rows = headsBySize(answer.heads).map((row) => ({ ...row, text: signed(row.value, 3) }));
    this.heads.show(answer.against ? "adds to the difference" : "adds to the logit", rows);
    this.stamp.show(answer.difference, TOLERANCE);
    return this.overlay(overlayOf(answer));
  }

  /** @param {AttributionAnswer} answer */
  fillChoices({ position, token: asked, against: other, alternatives }) {
    const written = askedPrediction(this.store).token;
    const known = alternatives.some(({ id }) => id === asked.id) ? alternatives : [asked, ...alternatives];
    /** @param {{ id: number, text: string, probability?: number }} one @param {boolean} selected */
    const option = ({ id, text, probability }, selected) => {
      const chance = probability === undefined ? "" : `  ${exact(probability)}`;
      return make("option", { value: `${id}-${position}`, selected }, `${visible(text)}${chance}`);
    };
    this.token.replaceChildren(
      ...known.map((one) => {
        const element = option(one, one.id === asked.id);
        if (one.id === written) element.append("  written");
        return element;
      }),
    );
    const others = alternatives.filter(({ id }) => id !== asked.id);
    this.against.replaceChildren(
      ...others.map((one) => option(one, one.id === other?.id)),
      make("option", { value: NOTHING, selected: !other }, "nothing: the logit itself"),
    );
  }
}

/** A value, short enough for a tile; the colour shows the sign too. @param {number} value */
const short = (value) => withoutZero(fixed(value, Math.abs(value) < 1 ? 2 : 1));

/** Both tokens in a sentence. @param {Pick<AttributionAnswer, "token" | "against">} answer @returns {string[]} */
const namesOf = ({ token, against }) => (against ? spokenApart(token.text, against.text) : [spoken(token.text)]);

/** @param {AttributionAnswer} answer @returns {Overlay} */
const overlayOf = ({ token, against, heads }) => ({
  title: `What each head adds to the logit of ${namesOf({ token, against }).join(" minus that of ")}`,
  values: heads,
  most: Math.max(largestOf(heads.flat()), 1e-6),
  ramp: "change",
  short,
  long: (value) => signed(value, 4),
  ends: ["against it", "for it"],
});

/** How many times as ... @param {number} factor at least 1 */
const timesAs = (factor) => (factor < 1.05 ? "as" : `${factor < 10 ? fixed(factor, 1) : Math.round(factor)} times as`);

/** The answer in plain words. @param {AttributionAnswer} answer @returns {[string, string]} */
export function whyPlain(answer) {
  const { against, logit, probability } = answer;
  const [name, other] = namesOf(answer);
  const parts = partsBySize(answer);
  const [first, second] = parts;
  const last = parts[parts.length - 1];
  const part = (/** @type {{ name: string, value: number }} */ one) => `${one.name} (${signed(one.value, 1)})`;
  const rest =
    last.value < 0
      ? `Second is ${part(second)}; the largest contribution against it comes from ${part(last)}.`
      : `Second is ${part(second)}; nothing counts against it.`;
  if (!against) {
    const by = `${first.name}, which adds ${fixed(first.value, 1)} to its logit of ${fixed(logit, 1)}`;
    return [`The largest contribution to ${name} (${share(probability)}) comes from ${by}.`, rest];
  }
  const [more, less] = logit >= 0 ? [name, other] : [other, name];
  const by = Math.abs(logit);
  const times = timesAs(Math.exp(by));
  const lead = `${capitalised(more)} is ${times} likely as ${less}, since its logit is ${fixed(by, 1)} higher`;
  return [`${lead}. The largest contribution in favour of ${name} comes from ${part(first)}.`, rest];
}

/** What the answer is about. @param {AttributionAnswer} answer */
function attributionSentence({ tokens, position, token, against, logit, probability }) {
  const [name, other] = namesOf({ token, against });
  const after = `After ${spoken(tokens[position].text)} at position ${position}, `;
  const chance = `${name} has probability ${exact(probability)}`;
  if (!against) return `${after}${chance}: a logit of ${fixed(logit)}.`;
  return `${after}${chance}; its logit minus that of ${other} is ${signed(logit, 4)}.`;
}

/**
 * All parts in the order of the model, with their sum so far.
 * @param {AttributionAnswer} answer
 */
function partsTable(answer) {
  const parts = partsInOrder(answer);
  const position = axisOf(parts);
  const rows = parts.map(({ name, value, sum }) => {
    const bar = make("span", { "aria-hidden": "true" });
    bar.classList.toggle("hs-less", value < 0);
    bar.style.setProperty("--from", String(position(Math.min(sum - value, sum))));
    bar.style.setProperty("--to", String(position(Math.max(sum - value, sum))));
    return [name, signed(value), fixed(sum, 2), makeCell(bar, { class: "hs-waterfall" })];
  });
  const name = answer.against ? "difference" : "logit";
  const total = makeRow([name, "", fixed(answer.sum, 2), ""], { class: "hs-sum" });
  return makeTable(
    {
      name: "All parts in the order of the model",
      titles: ["part", "adds", "so far", makeCell("")],
      rows: [...rows, total],
    },
    { class: "hs-answer-table", "data-table": "parts" },
  );
}

/** @typedef {{ name: string, value: number, sum: number }} Part with the sum of all parts up to it */
/** @typedef {{ picture: PictureId, value: number }} HeadPart */

/**
 * The embedding, each layer's heads together and its MLP, and the biases.
 * @param {Pick<AttributionAnswer, "embedding" | "heads" | "mlps" | "biases">} answer
 * @returns {Part[]}
 */
export function partsInOrder({ embedding, heads, mlps, biases }) {
  const layers = heads.flatMap((row, layer) => [
    { name: `Layer ${layer}, heads`, value: row.reduce((sum, value) => sum + value, 0) },
    { name: `Layer ${layer}, MLP`, value: mlps[layer] },
  ]);
  let sum = 0;
  return [{ name: "embedding", value: embedding }, ...layers, { name: "biases", value: biases }].map((part) => ({
    ...part,
    sum: (sum += part.value),
  }));
}

/**
 * A function from a sum to its position, 0 to 1, between the smallest and the largest of all sums and 0.
 * @param {Part[]} parts
 */
export function axisOf(parts) {
  const sums = [0, ...parts.map(({ sum }) => sum)];
  const [low, high] = [Math.min(...sums), Math.max(...sums)];
  return (/** @type {number} */ value) => (value - low) / Math.max(high - low, 1e-9);
}

/**
 * All heads, those with the largest parts first, whatever their sign.
 * @param {number[][]} heads [layer][head]
 * @returns {HeadPart[]}
 */
export function headsBySize(heads) {
  return headEntries(heads).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}

/**
 * Every single part with its name, the largest first.
 * @param {Pick<AttributionAnswer, "embedding" | "heads" | "mlps" | "biases">} answer
 */
function partsBySize({ embedding, heads, mlps, biases }) {
  const all = [
    ...headsBySize(heads).map(({ picture, value }) => ({ name: spokenHead(picture), value })),
    ...mlps.map((value, layer) => ({ name: `the MLP of layer ${layer}`, value })),
    { name: "the embedding", value: embedding },
    { name: "the biases", value: biases },
  ];
  return all.sort((a, b) => b.value - a.value);
}

/** The largest absolute value. @param {number[]} values */
export const largestOf = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
