// Rung 11: induction, the repetition of the visitor's phrase, and how a model learned to continue it.

import { make } from "../../lib/dom.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { headName } from "../../lib/heads.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { cells } from "../../lib/triangle.mjs";
import { visible } from "../../lib/words.mjs";
import { formula, row, sub } from "../../widgets/formula.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { StoryWithoutHeads } from "../widgets/kite.mjs";
import { content } from "../content/11_induction.mjs";
import { Drawing } from "../widgets/drawing.mjs";
import { bars, chart } from "../widgets/chart.mjs";
import { Chips, choice, heading, paragraph, rowOf, slider } from "../widgets/elements.mjs";
import { StillStore } from "./10_open_head.mjs";
import { makeTable } from "../../widgets/table.mjs";

/** @import { Lesson, Rung } from "../rung.js" */
/** @import { Stop } from "../widgets/steps.mjs" */
/** @import { Data } from "../data.js" */
/** @typedef {[layer: number, head: number]} Place */

const CLEAR_RISE = 0.1; // nats per token
const CLEAR_LEAP = 0.1; // of a mean weight between two steps of training
const CLEAR_ROLE = 0.3; // mean weight, after the last step

/** @type {Rung<"induction">} */
export const induction = {
  ...content,
  key: "induction",
  options: () => ({ step: null, muted: null }),
  followsModel: true,
  own({ n, ids, tokens }) {
    const at = n + Math.min(2, n - 1);
    const places = whatFollowed(ids, at);
    const more = places.length > 1 ? ` The token comes more than once: all of ${places.join(", ")} are right.` : "";
    return {
      kind: "number",
      ask:
        `Your phrase has ${n} tokens, so the text has the tokens 0 to ${2 * n - 1}. Token ${at} is ` +
        `“${visible(tokens[at])}”. At which token should the induction head look from there?`,
      right: at - n + 1,
      alsoRight: places,
      tolerance: 0,
      mistakes: [
        { number: at - n, reply: "That is the same token, earlier: the head looks at what followed it." },
        { number: at - 1, reply: "That is the token before: the other head looks there." },
        { number: at + 1, reply: "That token comes later: it is hidden." },
        { number: at, reply: "That is the token itself." },
      ],
      hint: `The same token is at position ${at - n}, too. Which token followed?`,
      second: "It is the next one after that position.",
      why: `“${visible(tokens[at - n + 1])}”, token ${at - n + 1}, followed it: ${n - 1} places back.${more}`,
    };
  },
  build: (lesson) => new Induction(lesson),
};

/** @extends {Drawing<"induction">} */
class Induction extends Drawing {
  /** @param {Lesson} lesson */
  constructor(lesson) {
    super(lesson);
    this.stores = [new StillStore(() => {}), new StillStore(() => {})];
    this.pictures = this.stores.map((store) => {
      const caption = make("p", { class: "hl-count" });
      return { caption, element: make("div", { class: "hl-half" }, caption, new Matrix(store, store).element) };
    });
    this.column = make("p", { class: "hl-count" });
    this.phrase = new Chips();
    this.repetition = new Chips();
    this.step = make("div");
    this.said = make("p", { class: "hl-count", role: "status" });
    this.scores = make("div");
    this.losses = make("div");
    this.feeding = make("div");
    this.lossBars = make("div");
    this.mute = make("div");
    this.risen = make("p", { class: "hl-count", role: "status" });
    this.stamp = new Stamp(
      "the losses by the steps of these lessons, compared with the model’s own forward pass",
      true,
    );
    this.formation = make(
      "div",
      {},
      heading("How it formed"),
      rowOf(this.scores, this.losses),
      paragraph("Training lowers the mean loss of many texts. On this one, weights and losses may also turn back."),
    );
    this.leap = paragraph();
    /** @type {ReturnType<typeof slider> | null} */
    this.stepSlider = null;
    /** @type {ReturnType<typeof choice> | null} */
    this.muting = null;
    /** The token of the phrase that is followed in the text and in both matrices, and of which text and model. */
    this.example = { of: "", i: 0 };
    this.made = "";
    this.formula = formula(
      ["…", "A", "B", "…", "A", "→", "B"],
      ["induction score", "=", " mean of ", sub("w", row("i", ",", "i", "−", "n", "+", "1"))],
      ["i", " in the repetition, ", "n", " tokens in the phrase"],
    );
    this.parts = this.#makeParts();
  }

  /** A head with its role, if it has one after the last step. @param {number[]} place */
  #nameOf(place) {
    const { induction: found, previous_token: before } = this.data.curve[this.data.curve.length - 1];
    const name = headName(place);
    if (`${place}` === `${this.data.head}` && found >= CLEAR_ROLE) return `induction head (${name})`;
    if (`${place}` === `${this.data.fed_by}` && before >= CLEAR_ROLE) return `previous-token head (${name})`;
    return name;
  }

  /** The same in a sentence. @param {number[]} place */
  #theHead(place) {
    return this.#nameOf(place).replace(/^(?=[ip])/, "the ");
  }

  /** The slider and the switch depend on the model. */
  #makeControls() {
    const { data } = this;
    const heads = [data.fed_by, data.head].filter(Boolean);
    const key = `${data.model} ${data.steps} ${heads.map((place) => this.#nameOf(place))}`;
    if (key === this.made) {
      if (document.activeElement !== this.stepSlider?.input) this.stepSlider?.update(data.step);
      this.muting?.show(data.muted ? `${data.muted}` : "none");
      return;
    }
    this.made = key;
    this.step.replaceChildren();
    if (data.steps.length) {
      this.stepSlider = slider({
        label: "step of the training",
        values: data.steps,
        value: data.step,
        format: (value) => number(value),
        change: (value) => this.lesson.set({ step: value, muted: null }),
      });
      this.step.append(this.stepSlider.element);
    }
    const names = { none: "no head" };
    for (const place of heads) Object.assign(names, { [`${place}`]: this.#nameOf(place) });
    // Before the last step there may be nothing to lose yet.
    this.muting = choice({
      label: "without",
      options: names,
      value: data.muted ? `${data.muted}` : "none",
      change: (name) => this.lesson.set({ step: null, muted: name === "none" ? null : name.split(",").map(Number) }),
    });
    this.mute.replaceChildren(this.muting.element);
  }

  #showText() {
    const { n, tokens, without } = this.data;
    const chips = tokens.map((/** @type {string} */ token, /** @type {number} */ i) => {
      return { text: token, below: i ? fixed(without.losses[i - 1], 2) : "–", known: true };
    });
    this.phrase.show(chips.slice(0, n), n, `The phrase: n = ${n} tokens; · is a space`);
    this.repetition.show(chips.slice(n), n, "Its repetition");
  }

  #showCurves() {
    const { data } = this;
    const [head, fedBy] = [this.#nameOf(data.head), data.fed_by ? this.#nameOf(data.fed_by) : ""];
    const x = data.steps.map((at) => number(at));
    const mark = data.steps.indexOf(data.step);
    /** @param {Exclude<keyof Data["induction"]["curve"][number], "step">} name */
    const line = (name) => data.curve.map((point) => point[name]);
    const weights = { [`${head}, to what followed last time`]: line("induction") };
    if (fedBy) weights[`${fedBy}, to the token before`] = line("previous_token");
    const shared = { x, mark, below: 0, xName: "step of the training (not to scale)" };
    this.formation.hidden = !x.length;
    this.leap.textContent = leapOf(data, this.#theHead(data.head));
    if (!x.length) return;
    this.scores.replaceChildren(
      chart({ ...shared, label: "The weights of both heads in training", lines: weights, yName: "Attention weight" }),
    );
    const lines = { "in the repetition": line("second_loss"), "in the phrase": line("first_loss") };
    this.losses.replaceChildren(chart({ ...shared, label: "The losses in training", lines, yName: "Nats per token" }));
  }

  #showFeeding() {
    const { data } = this;
    const titles = ["head", `${headName(data.head)} without it`, "weight on the token before", "K-composition"];
    const rows = data.feeding.map(({ head, composition, previous_token, without }) => {
      const numbers = [without, previous_token, composition].map((value) => fixed(value));
      const isIt = String(head) === String(data.fed_by);
      return [make(isIt ? "b" : "span", {}, headName(head)), ...numbers];
    });
    const fed = makeTable({ titles, rows }, { class: "hl-compare", "aria-label": "The heads of earlier layers" });
    const words = paragraph(
      `Which earlier head does ${headName(data.head)} rely on? Mute each in turn: the first column is then its `,
      `weight on what followed last time, ${fixed(data.read.induction)} with all heads. K-composition, in the last `,
      `column, is judged from the weights alone: how much of what a head writes the keys of ${headName(data.head)} `,
      `read, after the last step of training; about ${fixed(data.chance)} by chance. Heads that hardly differ in it `,
      "may differ widely in what muting them does, so it cannot replace that test.",
    );
    this.feeding.replaceChildren(...(rows.length ? [words, make("div", { class: "hl-scroll" }, fed)] : []));
  }

  #showMuted() {
    const { data } = this;
    const { read, without, muted, step, steps } = data;
    const isLast = step === (steps.at(-1) ?? step);
    const lines = [
      { label: "phrase, all heads", value: read.first_loss },
      { label: "repetition, all heads", value: read.second_loss },
    ];
    if (muted) {
      const name = this.#nameOf(muted);
      lines.push({ label: `phrase, without ${name}`, value: without.first_loss });
      lines.push({ label: `repetition, without ${name}`, value: without.second_loss });
    }
    const most = Math.max(...lines.map(({ value }) => value));
    this.lossBars.replaceChildren(
      bars("Nats per token, without the first of each", lines, most, { format: (value) => fixed(value, 2) }),
    );
    const change = without.second_loss - read.second_loss;
    const way = change < 0 ? "falls" : "rises";
    const effect =
      String(muted) === String(data.head)
        ? "It looks where it did, but what it finds there is no longer added to the token’s vector."
        : `The weight of ${this.#theHead(data.head)} on what followed last time goes from ` +
          `${fixed(read.induction, 2)} to ${fixed(without.induction, 2)}.`;
    const [before, after] = [fixed(read.first_loss, 2), fixed(without.first_loss, 2)];
    const phraseToo =
      without.first_loss - read.first_loss > CLEAR_RISE
        ? `The phrase suffers too, from ${before} to ${after}: the head does more than repeat.`
        : `The loss of the phrase goes from ${before} to ${after}.`;
    this.risen.textContent = muted
      ? `Without ${this.#theHead(muted)}, the loss of the repetition ${way} by ${fixed(Math.abs(change), 2)} nats ` +
        `per token, from ${fixed(read.second_loss, 2)} to ${fixed(without.second_loss, 2)}. ${effect} ${phraseToo}`
      : `All heads are at work${isLast ? "" : `, after step ${number(step)}. Muting one goes on to the last step`}.`;
  }

  #makeParts() {
    return {
      kiteAnswer: new StoryWithoutHeads(this.lesson.kept).element,
      leap: this.leap,
      said: this.said,
      step: this.step,
      phrase: this.phrase.element,
      repetition: this.repetition.element,
      pictures: this.pictures.map(({ element }) => element),
      column: this.column,
      formation: this.formation,
      scores: this.scores,
      mute: this.mute,
      risen: this.risen,
      lossBars: this.lossBars,
      stamp: this.stamp.element,
      feeding: this.feeding,
    };
  }

  /** @param {Data["induction"]} found */
  update(found) {
    this.data = found;
    Object.assign(this.lesson.options, { step: found.step });
    const { n, without, head, fed_by: fedBy, muted } = found;
    this.#makeControls();
    const of = `${found.model} ${found.ids}`;
    if (of !== this.example.of) this.example = { of, i: clearest(found) };
    const { i: first } = this.example;
    const followed = [
      { query: n + first, key: first + 1 },
      { query: first + 1, key: first },
    ];
    const when = found.steps.length ? ` after step ${number(found.step)}` : "";
    const less = muted ? `, without ${this.#theHead(muted)}` : "";
    this.said.textContent =
      `${found.model}${when}${less}: on average, ${this.#theHead(head)} gives ${fixed(without.induction, 2)} of its ` +
      `weight to what followed last time, n − 1 = ${n - 1} tokens back.`;
    this.#showText();
    this.pictures.forEach(({ caption, element }, i) => {
      const place = [head, fedBy][i];
      element.hidden = !place;
      if (!place) return;
      caption.textContent = this.#theHead(place).replace(/^t/, "T") + whyChanged(found, place);
      const [layer, h] = place;
      this.stores[i].show({
        ...found,
        layer,
        head: h,
        weights: found.weights[i],
        ...followed[i],
      });
    });
    this.column.textContent =
      `The first column: a row adds up to 1 even with nothing to find. In the phrase ${this.#theHead(head)} gives ` +
      `the first token ${fixed(weightOnFirstToken(found), 2)} of its weight on average.`;
    this.#showCurves();
    this.#showFeeding();
    this.#showMuted();
    this.stamp.show(found.error, 1e-3);
  }

  /** @returns {Stop[]} */
  play() {
    const { n, tokens, head, fed_by: fedBy, muted, weights, without } = this.data;
    if (n < 3) return [];
    const { i } = this.example;
    const [word, followed] = [tokens[i], tokens[i + 1]].map(visible);
    const isMuted = (/** @type {number[]} */ place) => `${muted}` === `${place}`;
    /** @param {number} which @param {number} query @param {number} key */
    const look = (which, query, key) => {
      const given = weights[which].slice(cells(query), cells(query + 1));
      const most = given.indexOf(Math.max(...given));
      const others = most === key ? "more than any other" : `but “${visible(tokens[most])}” ${fixed(given[most], 2)}`;
      return { value: fixed(given[key], 2), words: `${fixed(given[key], 2)}, ${others}` };
    };
    const [noted, found] = [fedBy && look(1, i + 1, i), look(0, n + i, i + 1)];
    const [first, second] = [without.losses[i], without.losses[n + i]].map((loss) => fixed(loss, 2));
    const noting = isMuted(fedBy) ? "But it is muted." : "What it finds goes into this token’s vector and key.";
    const finding = isMuted(head) ? " But it is muted." : "";
    const falls = without.losses[n + i] < without.losses[i];
    const [here, later] = [this.phrase, this.repetition].map(({ list }) => [list.children[i], list.children[i + 1]]);
    return [
      { at: later[0], value: word, words: `The model reads “${word}” again. What comes next?` },
      { at: here[0], value: word, words: `“${word}” stood here before, and “${followed}” followed.` },
      ...(noted
        ? [
            {
              at: here[1],
              value: noted.value,
              words: `From “${followed}”, ${this.#theHead(fedBy)} gave “${word}” ${noted.words}. ${noting}`,
            },
          ]
        : []),
      {
        at: here[1],
        value: found.value,
        words: `From the repeated “${word}”, ${this.#theHead(head)} gives this place ${found.words}.${finding}`,
      },
      {
        at: later[1],
        value: second,
        words: falls
          ? `The surprise at “${followed}” falls from ${first} to ${second} nats.`
          : `Here it fails: the surprise at “${followed}” goes from ${first} to ${second} nats.`,
      },
    ];
  }
}

/**
 * What muting has done to the map of a head.
 * @param {Pick<Data["induction"], "head" | "muted" | "read" | "without">} data
 * @param {number[]} place
 */
export function whyChanged({ head, muted, read, without }, place) {
  if (!muted) return "";
  if (`${muted}` === `${place}`) return ", muted: it still looks, but what it finds is not added";
  if (`${head}` !== `${place}` || !(read.induction - without.induction > CLEAR_LEAP)) return "";
  return `: its diagonal has paled, since what ${headName(muted)} finds is no longer added to the tokens`;
}

/**
 * Where an induction head may look from a token: just after each earlier occurrence of the same token.
 * @param {number[]} ids
 * @param {number} at
 */
export const whatFollowed = (ids, at) => ids.slice(0, at).flatMap((id, i) => (id === ids[at] ? [i + 1] : []));

/**
 * The token of the phrase whose repetition the head continues best: where it looks at what followed more than at
 * anything else, if it does so anywhere, and then where the loss of what follows falls most.
 * @param {Pick<Data["induction"], "n" | "weights" | "without">} data
 */
export function clearest({ n, weights: [weights], without: { losses } }) {
  const places = Array.from({ length: n - 1 }, (_, i) => {
    const given = weights.slice(cells(n + i), cells(n + i + 1));
    return { i, isFound: given[i + 1] === Math.max(...given), fall: losses[i] - losses[n + i] };
  });
  const found = places.filter(({ isFound, fall }) => isFound && fall > 0);
  return (found.length ? found : places).reduce((best, one) => (one.fall > best.fall ? one : best)).i;
}

/** Between which two steps the head formed, "" if it never did. @param {Data["induction"]} data @param {string} name */
function leapOf({ curve, steps }, name) {
  const rises = curve.slice(1).map(({ induction: after }, i) => after - curve[i].induction);
  const at = rises.indexOf(Math.max(...rises));
  if (!(rises[at] > CLEAR_LEAP)) return "";
  const [from, to] = [curve[at], curve[at + 1]].map((point) => fixed(point.induction, 2));
  return (
    `Between steps ${number(steps[at])} and ${number(steps[at + 1])}, the weight of ${name} on what followed last ` +
    `time rises from ${from} to ${to}.`
  );
}

/** The mean weight of the induction head on the first token within the phrase. @param {Data["induction"]} data */
function weightOnFirstToken({ n, weights: [weights] }) {
  const queries = Array.from({ length: n - 1 }, (_, i) => i + 1);
  return queries.reduce((sum, query) => sum + weights[cells(query)], 0) / queries.length;
}
