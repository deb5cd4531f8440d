// What carries the answer? Activations of this text are put into a run of a text that leads to another answer.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { headEntries, spokenHead } from "../../../lib/heads.mjs";
import { counted, fixed, percent } from "../../../lib/numbers.mjs";
import { capitalised, promptText, spokenApart } from "../../../lib/words.mjs";
import { openText } from "../../state/open_text.mjs";
import { encodeText, findEdit, writeChoices, writeEdit } from "../../state/choices.mjs";
import { HeadList } from "../head_list.mjs";
import { encodeMask, withScale } from "../../../lib/head_masks.mjs";
import { HeadSet, NO_HEADS } from "../head_set.mjs";
import { changedText, UNCHANGED } from "../prompts/changed_text.mjs";
import { residualMap } from "./residual_map.mjs";
import { chipButton, smallButton, tabs } from "../../../widgets/controls.mjs";

/** @import { PictureId } from "../../../types.js" */
/** @import { PatchAnswer, PatchBody } from "../../../lens.js" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

/**
 * An answer with the effect of every head and every residual stream.
 * @typedef {PatchAnswer & { heads: number[][], residual: number[][], raw: { heads: number[][] } }} GridAnswer
 */

const DEFAULTS = { ...UNCHANGED, way: "denoise", set: NO_HEADS };
const WAYS = { denoise: "into the changed text", noise: "into the original" };
/** @typedef {{ help: string, does: string, do: string, done: string, ends: [string, string] }} Words */
/** @type {Record<keyof typeof WAYS, Words>} */
const WAY_WORDS = {
  denoise: {
    help: "Denoising: which parts of the original are enough to bring its prediction back in the changed text?",
    does: "restores",
    do: "restore",
    done: "restored",
    ends: ["away from the original", "towards the original"],
  },
  noise: {
    help: "Noising: which parts of the original does its prediction need? Each is replaced by the changed text’s.",
    does: "takes away",
    do: "take away",
    done: "taken away",
    ends: ["away from the changed text", "towards the changed text"],
  },
};

/** @type {Question} */
export const patching = {
  key: "patch",
  title: TITLES.patch,
  hook: "Change a word, and find the head that carries it to the answer.",
  explanation:
    "Take this text up to the selected token, the answer, and change a word, so that another answer becomes likely. " +
    "Then activations of the original are patched into a run of the changed text, or the other way round: those that " +
    "bring the answer back, or take it away, carry it (activation patching).",
  caution:
    "Patching into the changed text: a head that restores much is enough to undo part of the change; a head " +
    "that restores nothing may still be needed. Patching into the original: a head that takes much away is needed " +
    "there; if a head takes nothing away, others may compensate for it. Shares need not add up to 100%.",
  defaults: DEFAULTS,
  build: (context) => new Patching(context),
};

/**
 * An example, found and checked on a model that comes with Headscope.
 * @typedef {{ model: string, title: string, prompt: string, corrupted: string, answer: string, wrong: string,
 *   tokens: number[], carriers: PictureId[], finding: string }} Example
 */

/** @type {Promise<Example[]> | null} */
let loading = null;
/** A file, which cannot open them, has none. @param {boolean} isFile @returns {Promise<Example[]>} */
const loadExamples = async (isFile) =>
  isFile
    ? []
    : (loading ??= fetch(new URL("patching_examples.json", import.meta.url)).then((response) => response.json()));

/** @implements {BuiltQuestion} */
class Patching {
  /** @type {PatchBody} what was asked last */
  body = {};
  conclusion = "";

  /** @param {AskContext} context */
  constructor({ store, mixer, beside, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    this.twin = changedText({ store, choices, choose });
    this.examples = make("p", { class: "hs-chips" });
    this.sentence = make("p", { class: "hs-answer" });
    this.finding = make("p", { class: "hs-hint" });
    /** @type {number[]} ids of the changed text of the answer */
    this.changedIds = [];
    const open = () => beside?.rereads.ofText(this.changedIds, this.conclusion);
    const compare = smallButton("Compare the two texts", open);
    compare.title = "Both texts side by side, with every head in both and how differently they attend";
    this.ways = tabs("Patch", WAYS, (way) => choose({ way }));
    this.help = make("p", { class: "hs-hint" });
    this.together = new HeadSet(
      store,
      { mixer, beside },
      {
        verb: ["patch", "Patched"],
        waiting: "Patching them together…",
        choose: (set) => choose({ set }),
        ask: (heads) => ({ route: "patch", body: { ...this.body, heads, grid: false } }),
        say: (pictures, names, answer) => this.sayTogether(pictures, names, answer),
      },
    );
    this.list = new HeadList(store, "Share of the difference that each head accounts for", {
      title: "together",
      label: (name) => `Patch ${name} together with others`,
      has: (picture) => this.together.has(picture),
      toggle: (picture) => this.together.toggle(picture),
    });
    this.residual = residualMap(store);
    this.picture = this.residual.element;
    /** @type {Example[]} */
    this.known = [];
    loadExamples(store.view.isLookOnly).then(
      (answer) => {
        this.known = answer;
        this.showExamples();
      },
      () => {}, // the question also works without examples
    );
    this.twin.form.append(
      make("div", { class: "hs-field" }, make("span", {}, "patch"), this.ways.element),
      smallButton("Patch", this.twin.apply, { class: "hs-primary" }),
    );
    this.controls = [this.examples, this.twin.form];
    this.element = make(
      "div",
      { class: "hs-patching" },
      this.help,
      this.sentence,
      this.finding,
      this.list.element,
      this.together.element,
      make("div", {}, compare),
    );
  }

  way() {
    return /** @type {keyof typeof WAYS} */ (this.choices.way in WAYS ? this.choices.way : DEFAULTS.way);
  }

  /** @param {PictureId[]} pictures @param {string} names @param {{ joint: number, raw: { joint: number } }} answer */
  sayTogether(pictures, names, { joint, raw }) {
    const words = WAY_WORDS[this.way()];
    const logits = `which leaves a logit difference of ${fixed(raw.joint, 2)}`;
    if (pictures.length === 1)
      return `${names} ${words.does} ${percent(this.effect(joint))} of the difference, ${logits}.`;
    const sum = this.together.singles(pictures).reduce((total, value) => total + value, 0);
    const alone = `one by one, they add up to ${percent(sum)}`;
    return `${names} together ${words.do} ${percent(this.effect(joint))} of the difference, ${logits}; ${alone}.`;
  }

  /** The share that a patch accounts for. @param {number} place of the patched run: 0 changed, 1 original */
  effect(place) {
    return this.way() === "noise" ? 1 - place : place;
  }

  showExamples() {
    const here = this.known.filter(({ model }) => model === this.store.pointer.model);
    const others = this.known.filter(({ model }) => model !== this.store.pointer.model).map(({ model }) => model);
    const buttons = here.map((example) => {
      const button = chipButton(example.title);
      button.title = "Opens its text; the browser’s Back button returns to this one";
      button.addEventListener("click", () => this.open(example));
      return button;
    });
    this.examples.replaceChildren(
      make("span", {}, here.length ? "example" : `there are examples for ${others.join(" and ")}`),
    );
    this.examples.append(...buttons);
    this.examples.hidden = !this.known.length;
  }

  /** @param {Example} example */
  open({ prompt, corrupted, wrong, tokens, carriers }) {
    const set = encodeMask(withScale(null, this.store.pointer, carriers, 0));
    const values = { change: writeEdit(findEdit(prompt, corrupted)), wrong: encodeText(wrong), set };
    const n_prompt = tokens.length - 1; // the answer is the last one
    const askWith = writeChoices(values, DEFAULTS);
    openText(this.store, {
      ids: tokens,
      n_prompt,
      open: carriers[0],
      options: { ask: "patch", askWith },
    });
  }

  /** @returns {Asked} */
  request() {
    this.showExamples();
    this.ways.show(this.way());
    this.help.textContent = WAY_WORDS[this.way()].help;
    const pair = this.twin.pair();
    if (typeof pair === "string") return pair;
    this.body = { model: this.store.pointer.model, ...pair, direction: this.way() };
    return { route: "patch", body: this.body };
  }

  /** @param {GridAnswer} answer */
  draw(answer) {
    const [right, other] = spokenApart(answer.answer.text, answer.wrong.text);
    const lead = (/** @type {number} */ nats) => `${fixed(Math.abs(nats), 2)} ${nats >= 0 ? "above" : "below"}`;
    const words = WAY_WORDS[this.way()];
    const effects = answer.heads.map((row) => row.map((place) => this.effect(place)));
    const rows = headEntries(effects).map(({ picture: [layer, head], value }) => ({
      picture: /** @type {PictureId} */ ([layer, head]),
      value,
      text: `${percent(value)} (${fixed(answer.raw.heads[layer][head], 2)})`,
    }));
    rows.sort((a, b) => b.value - a.value);
    const first = rows[0];
    const carrier = capitalised(spokenHead(first.picture));
    const at = "(a head is replaced at all positions at once)";
    this.sentence.textContent =
      `In this text the logit of ${right} is ${lead(answer.clean)} that of ${other}; in the changed one it is ` +
      `${lead(answer.corrupted)}. ${carrier} alone ${words.does} ${percent(first.value)} of the difference ${at}.`;
    this.sentence.textContent += ` ${differenceWords(answer.tokens, answer.corrupted_tokens)}`;
    const residuals = answer.residual.map((row) => row.map((place) => this.effect(place)));
    const pull =
      answer.clean < answer.corrupted
        ? ` Compared with the changed text, this one favours ${other} over ${right}.`
        : "";
    const best = { name: spokenHead(first.picture), value: first.value };
    const change = changeWords(answer.tokens, answer.corrupted_tokens);
    const found =
      nothingToCarry(answer, right, other) || verdict(favoured(answer, right, other), best, words.does) + pull;
    this.conclusion = `${change} ${found}`;
    const last = residuals[0][answer.tokens.length - 1];
    const warning = lastTokenWarning(answer.tokens, answer.corrupted_tokens, last, words.does);
    if (warning) this.conclude(warning, this.conclusion);
    else this.conclude(this.conclusion);
    this.changedIds = answer.corrupted_tokens.map(({ id }) => id);
    const asExample = this.known.find(({ model, prompt, corrupted, wrong }) => {
      const texts = [answer.tokens, answer.corrupted_tokens];
      const [one, two] = texts.map((tokens) => promptText({ tokens, pointer: this.store.pointer }));
      return model === answer.model && prompt === one && corrupted === two && wrong === answer.wrong.text;
    });
    this.finding.textContent = asExample?.finding ?? "";
    this.finding.hidden = !asExample || this.way() === "noise"; // it was measured by denoising
    this.together.show(this.choices.set, effects);
    this.list.show(`share ${words.done} (and the logit difference then)`, rows);
    this.residual.show({ ...answer, residual: residuals }, words.done);
    this.overlay({
      title: `Share of the difference that each head ${words.does}, in %`,
      values: effects,
      most: Math.max(...rows.map(({ value }) => Math.abs(value)), 1e-6),
      ramp: "change",
      short: (value) => fixed(100 * value, 0),
      long: percent,
      ends: words.ends,
    });
  }
}

/** @typedef {{ id: number, text: string }[]} Tokens */

const MIN_DIFFERENCE = 0.3; // nats between the two logit differences: shares of a smaller one say little
const MIN_CARRIED_SHARE = 0.2; // of the difference: a head with a smaller share does not carry the answer alone
const MAX_NAMED_POSITIONS = 12; // positions

/** The positions at which two texts of the same length differ. @param {Tokens} one @param {Tokens} other */
const differing = (one, other) => one.flatMap(({ id }, at) => (id === other[at].id ? [] : [at]));

/** Where the texts differ, token by token. @param {Tokens} one @param {Tokens} other */
export function differenceWords(one, other) {
  const differences = differing(one, other);
  const named = differences
    .slice(0, MAX_NAMED_POSITIONS)
    .map((at) => `token ${at} (${spokenApart(one[at].text, other[at].text).join(" / ")})`);
  const more = differences.length - named.length;
  if (more) named.push(`${more} more`);
  const words = named.length > 1 ? `${named.slice(0, -1).join(", ")} and ${named.at(-1)}` : named[0];
  const several = differences.length > 1 ? ", so a share may be due to any of these" : "";
  return `The two texts differ in ${words}${several}.`;
}

/** What was changed to what, in one sentence. @param {Tokens} one @param {Tokens} other */
export function changeWords(one, other) {
  const changes = new Set(
    differing(one, other).map((at) => spokenApart(other[at].text, one[at].text).join(" in place of ")),
  );
  const [first, second, third] = changes;
  if (third !== undefined) return `The changed text differs in ${counted(differing(one, other).length, "token")}.`;
  return `The changed text has ${second === undefined ? first : `${first} and ${second}`}.`;
}

/**
 * A warning if the last tokens of the two texts differ; "" if they do not.
 * @param {Tokens} one
 * @param {Tokens} other
 * @param {number} effect share of the difference that patching the last token's embedding accounts for
 * @param {string} does "restores" or "takes away"
 */
export function lastTokenWarning(one, other, effect, does) {
  const differences = differing(one, other);
  if (differences.at(-1) !== one.length - 1) return "";
  return (
    `The last token differs${differences.length > 1 ? " too" : ""}: exchanging it alone ${does} ${percent(effect)}, ` +
    "which no head has to carry. Keep the last token the same in both texts, and change only an earlier one."
  );
}

/**
 * A sentence saying that the change hardly matters to the answer, so that there is nothing to carry; "" if it matters.
 * @param {{ clean: number, corrupted: number }} answer logit differences
 * @param {string} right in quotation marks
 * @param {string} other in quotation marks
 */
export function nothingToCarry({ clean, corrupted }, right, other) {
  if (Math.abs(clean - corrupted) >= MIN_DIFFERENCE) return "";
  const lead = `the logit of ${right} minus that of ${other} is ${fixed(clean)} in this text and ${fixed(corrupted)}`;
  return `The change hardly matters here: ${lead} in the changed one. Shares of so small a difference say little.`;
}

/**
 * Two words, first the one that this text favours more than the changed text does: that one is carried.
 * @param {{ clean: number, corrupted: number }} answer logit differences
 * @param {string} right in quotation marks
 * @param {string} other in quotation marks
 * @returns {[string, string]}
 */
export const favoured = ({ clean, corrupted }, right, other) => (clean < corrupted ? [other, right] : [right, other]);

/**
 * The conclusion from the head with the largest share.
 * @param {[string, string]} words in quotation marks, first the one that this text favours more than the changed text
 * @param {{ name: string, value: number }} best
 * @param {string} does "restores" or "takes away"
 */
export function verdict([right, other], { name, value }, does) {
  const answer = `${right} rather than ${other}`;
  const share = `${percent(value)} of the difference between the two texts`;
  const least = percent(MIN_CARRIED_SHARE);
  return value < MIN_CARRIED_SHARE
    ? `No single head carries ${answer}: the best one, ${name}, ${does} ${share}, less than ${least}.`
    : `${capitalised(name)} carries ${answer} most: alone, it ${does} ${share}.`;
}
