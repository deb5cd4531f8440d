// What is said of the next word, in one or two sentences, and what can be done about it. Both stand below the sentence
// at the left; the list of next words is at their right.

import { isStill, make, setFlag, setText } from "../../lib/dom.mjs";
import { mostProbable } from "../../lib/sampling.mjs";
import { offWords, originOf, restWords } from "../../lib/without_heads.mjs";
import { spoken, unitOf } from "../../lib/words.mjs";
import { stageMenu } from "./menu.mjs";

/** @import { Part } from "../../lib/without_heads.mjs" */
/** @import { Store } from "../state/store.mjs" */
/** @import { ShownStep } from "./shown_step.mjs" */

const WRITING = "Dotted words were drawn by chance; the others were the likeliest. Any key shows the rest.";

/**
 * @typedef {object} Actions
 * @property {() => void} edit
 * @property {() => void} next go on with the next word
 * @property {() => void} goOn let the model write on
 * @property {() => void} stop
 * @property {() => void} replay
 */

export class Verdict {
  /**
   * @param {Store} store
   * @param {ShownStep} step
   * @param {() => Part[]} ofSteps what is said of the step of a training that is shown
   * @param {Actions} actions
   * @param {HTMLElement | null} link copies the text's address; null where there is none, and no model
   */
  constructor(store, step, ofSteps, { edit, next, goOn, stop, replay }, link) {
    this.store = store;
    this.step = step;
    this.ofSteps = ofSteps;
    this.say = make("p", { class: "hs-stage-say", role: "status" });
    this.offWords = make("span", {});
    this.off = make("button", { type: "button", class: "hs-switch", role: "switch" }, make("i", {}), this.offWords);
    this.off.addEventListener("click", () => void step.switch(!step.isOff));
    const button = (/** @type {string} */ label, /** @type {() => void} */ act, kind = "hs-action") =>
      make("button", { type: "button", class: kind, onclick: act }, label);
    const ask = () => store.view.set({ ask: "attribution", details: true });
    this.why = button("Why this word?", ask, "hs-action hs-why");
    this.why.title = "What every part of the model adds to this word";
    this.next = button("Next", next);
    this.next.append(onWide(" word"));
    this.write = button("Write your own", edit, "hs-quiet-action hs-beside");
    this.stop = button("Stop", stop);
    this.back = button("↶", () => history.back(), "hs-quiet-action hs-take-back");
    this.back.append(onWide(" Take it back"));
    this.back.setAttribute("aria-label", "Take it back");
    const more = { "Why this word?": ask, "Write your own": edit, "Write on": goOn, Replay: replay };
    const { element: menu, actions } = stageMenu(store, link, more);
    [this.why, this.write].forEach(({ classList }, i) => actions[i].classList.add(classList[1]));
    this.inMenu = actions;
    const withModel = link ? [this.off, this.why, this.next, this.stop, this.write, this.back] : [];
    this.actions = make("div", { class: "hs-stage-actions" }, ...withModel, menu);
    this.element = make("div", { class: "hs-verdict" }, this.say, this.actions);
  }

  /** @param {boolean} isBusy whether the text is being changed, or the opening writes itself */
  draw(isBusy) {
    this.#drawWords();
    const { store, step } = this;
    const { isGrowing, pointer } = store;
    const n = step.group?.heads.length ?? 0;
    const [why, write, goOn, replay] = this.inMenu;
    this.off.hidden = this.why.hidden = why.hidden = this.next.hidden = isGrowing;
    this.off.disabled = !n || isBusy;
    this.why.disabled = isBusy;
    setFlag(this.off, "aria-checked", !step.isOff);
    const how = step.isOff ? "on" : "off";
    if (n === 1) this.offWords.replaceChildren(`Turn this head ${how}`);
    else this.offWords.replaceChildren("Turn ", onWide("these "), n ? `${n} heads ${how}` : `heads ${how}`);
    this.stop.hidden = !isGrowing;
    this.write.hidden = write.hidden = isGrowing;
    this.next.disabled = isBusy || step.query + 1 >= pointer.context_length;
    goOn.hidden = isGrowing || store.length >= pointer.context_length || pointer.chat !== null;
    this.back.hidden = isGrowing || !history.state?.isOpenedHere;
    replay.hidden = isGrowing || isStill();
  }

  #drawWords() {
    const { store, step } = this;
    const { n_head } = store.pointer;
    const unit = unitOf(store);
    const { whole, shown, group, effect } = step;
    const target = step.texts[shown?.target ?? -1];
    if (store.isGrowing) setText(this.say, WRITING);
    else if (effect && group) this.say.replaceChildren(...inBold(offWords(effect, group.heads.length, unit)));
    else if (whole?.isKnown && target !== undefined && !step.isOff) {
      const heads = group?.heads.map(([layer, head]) => layer * n_head + head) ?? [];
      const adds = whole.adds && heads.map((head) => /** @type {number[]} */ (whole.adds)[head]);
      const copied = group?.copied ?? null;
      const rest = restWords({ n: heads.length, copied, adds, all: whole.adds }, target);
      const ofStep = this.ofSteps();
      if (!ofStep.length) this.say.replaceChildren(...inBold(rest), this.#originWords());
      else if (copied !== null) this.say.replaceChildren(...inBold([...ofStep, ...rest]));
      else this.say.replaceChildren(...inBold(ofStep), "No head looks back at it to copy it yet.");
    } else if (!step.isOff) setText(this.say, "");
  }

  /** Where the word that stands in the text is not the likeliest one: which is, and how it came to stand there. */
  #originWords() {
    const { store, step } = this;
    const { whole, query, written, texts } = step;
    const origin = originOf(store.pointer, query + 1);
    const [likeliest] = whole ? mostProbable(whole.logits, 1) : [];
    if (likeliest === undefined || written === null || likeliest === written) return "";
    return ` ${origin === "drawn" ? "It was drawn by chance: " : ""}${spoken(texts[likeliest])} is likelier.`;
  }
}

/** A part of a label for which phones have no room. */
const onWide = (words = "") => make("span", { class: "hs-on-wide" }, words);

/** A sentence as it is shown. @param {Part[]} parts */
const inBold = (parts) => parts.map((part) => (typeof part === "string" ? part : make("b", {}, part.strong)));
