// What is said of the next word, in one or two sentences, and what can be done about it. Both stand below the sentence
// at the left; the list of next words is at their right.

import { isStill, make, setChildren, setText } from "../../lib/dom.mjs";
import { headIndex, spokenHead } from "../../lib/heads.mjs";
import { mostProbable } from "../../lib/sampling.mjs";
import { changeWords, likeliestWords, offWords, originOf, restWords } from "../../lib/without_heads.mjs";
import { capitalised, spoken, unitOf } from "../../lib/words.mjs";
import { action, mainAction, quietAction } from "../../widgets/controls.mjs";
import { saveSentence } from "../export/save_menu.mjs";
import { canTakeBack, goBack } from "../state/router.mjs";
import { stageMenu } from "./menu.mjs";

/** @import { Effect, Part } from "../../lib/without_heads.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Sentence } from "./sentence.mjs" */
/** @import { ShownStep, Step } from "./shown_step.mjs" */

const LONG = 116; // characters for which two lines of a narrow screen have no room
const HOW_TO_END = `${matchMedia("(pointer: coarse)").matches ? "A tap" : "Any key"} shows the rest.`;

/** What a text that is being written shows. @param {string} unit @param {boolean} hasDrawn whether a word was drawn */
const writingWords = (unit, hasDrawn) =>
  hasDrawn
    ? `Dotted ${unit}s were drawn by chance; the other new ones were the likeliest. ${HOW_TO_END}`
    : `The model writes, one ${unit} after the other. ${HOW_TO_END}`;

/**
 * @typedef {object} Actions
 * @property {() => void} edit
 * @property {() => void} compare with another text
 * @property {() => void} next go on with the next word
 * @property {() => void} goOn let the model write on
 * @property {() => void} stop
 * @property {() => void} replay
 * @property {(isMeant: boolean) => void} mean the heads of the switch, while it is pointed at or has the focus
 */

export class Verdict {
  /**
   * @param {ShownText} store
   * @param {ShownStep} step
   * @param {() => Part[]} ofSteps what is said of the step of a training that is shown
   * @param {Sentence} sentence
   * @param {Actions} actions
   * @param {HTMLElement | null} link copies the text's address; null where there is none, and no model
   */
  constructor(store, step, ofSteps, sentence, { edit, compare, next, goOn, stop, replay, mean }, link) {
    this.store = store;
    this.step = step;
    this.ofSteps = ofSteps;
    this.sentence = sentence;
    this.say = make("p", { class: "hs-stage-say", role: "status" });
    this.off = mainAction("", () => void step.turnOff(step.isOff ? [] : (step.group?.heads ?? [])));
    for (const begin of ["pointerenter", "focus"]) {
      this.off.addEventListener(begin, () => mean(begin !== "focus" || this.off.matches(":focus-visible")));
    }
    for (const end of ["pointerleave", "blur", "click"]) this.off.addEventListener(end, () => mean(false));
    this.next = action("Next", next);
    this.write = quietAction("Write your own", edit, { class: "hs-beside" });
    this.stop = action("Stop", stop, { class: "hs-stop" });
    const takeBack = make("span", { class: "hs-on-wide" }, " Take it back");
    this.back = quietAction(["↶", takeBack], goBack, { class: "hs-take-back", "aria-label": "Take it back" });
    const acts = {
      write: { name: "Write your own", act: edit, class: "hs-beside" },
      goOn: { name: "Write on", act: goOn },
      compare: { name: "Compare texts", act: compare },
      replay: { name: "Replay", act: replay },
    };
    const save = saveSentence(store, sentence.element, () => this.say.textContent);
    const { element: menu, buttons } = stageMenu(store, link, acts, save);
    this.inMenu = buttons;
    const withModel = link ? [this.off, this.stop, this.next, this.write, this.back] : [];
    this.actions = make("div", { class: "hs-stage-actions" }, ...withModel, menu);
    this.element = make("div", { class: "hs-verdict" }, this.say, this.actions);
  }

  /** @param {boolean} isBusy whether the text is being changed, or something plays */
  draw(isBusy) {
    this.#drawWords();
    this.say.classList.toggle("hs-long", this.say.textContent.length > LONG);
    const { store, step } = this;
    const { isGrowing, pointer } = store;
    const unit = unitOf(store);
    const n = (step.cut ?? step.group)?.heads.length ?? 0;
    const { write, goOn, compare, replay } = this.inMenu;
    // Stop takes the place of the switch, and nothing beside it moves.
    this.off.hidden = write.hidden = compare.hidden = isGrowing;
    this.stop.hidden = !isGrowing;
    this.off.disabled = !n || isBusy;
    this.write.disabled = isGrowing;
    this.off.classList.toggle("hs-is-off", step.isOff);
    const how = step.isOff ? [offPhones("back "), "on"] : ["off"];
    if (n === 1) setChildren(this.off, "Turn it ", ...how);
    else setChildren(this.off, "Turn ", offPhones("these "), n ? `${n} heads ` : "heads ", ...how);
    setChildren(this.next, "Next", offPhones(` ${unit}`));
    this.next.disabled = isBusy || isGrowing || step.query + 1 >= pointer.context_length;
    goOn.hidden = isGrowing || store.length >= pointer.context_length || pointer.chat !== null;
    const canGoBack = canTakeBack();
    this.back.disabled = isGrowing || !canGoBack;
    this.back.classList.toggle("hs-nothing-before", !canGoBack);
    replay.hidden = isGrowing || isStill();
  }

  #drawWords() {
    const { store, step } = this;
    const unit = unitOf(store);
    const { whole, shown, known, effect } = step;
    const target = step.texts[shown?.target ?? -1];
    if (store.isGrowing) setText(this.say, writingWords(unit, this.sentence.hasDrawn));
    else if (store.pointer.state === "snapshot" && !known.isCurrent)
      return; // the step before it is still shown
    else if (step.isOff) this.say.replaceChildren(...(effect ? inBold(this.#offWords(effect, unit)) : []));
    else if (whole?.isKnown && target !== undefined) {
      const ofStep = this.ofSteps();
      const copied = step.group?.copied ?? null;
      if (!ofStep.length)
        this.say.replaceChildren(...inBold(this.#restWords(whole, target, unit)), this.#originWords());
      else if (copied === null) this.say.replaceChildren(...inBold(ofStep), this.#noneCopies());
      else this.say.replaceChildren(...inBold([...ofStep, ...this.#restWords(whole, target, unit)]));
    } else setText(this.say, "");
  }

  /** Whether heads copy is known only with their roles. */
  #noneCopies() {
    return this.store.roles && !this.step.kinds.includes("copies") ? "No head copies it from the text." : "";
  }

  /** @param {Step} whole @param {string} target @param {"word" | "letter"} unit */
  #restWords(whole, target, unit) {
    const { group } = this.step;
    const heads = group?.heads.map((head) => headIndex(head, this.store.pointer)) ?? [];
    const adds = whole.adds && heads.map((head) => /** @type {number[]} */ (whole.adds)[head]);
    return restWords({ n: heads.length, copied: group?.copied ?? null, adds, all: whole.adds }, target, unit);
  }

  /**
   * In short where those heads are off that the sentence before named.
   * @param {Effect} effect
   * @param {"word" | "letter"} unit
   */
  #offWords(effect, unit) {
    const { group, cut, isStillOff } = this.step;
    const heads = cut?.heads ?? [];
    if (!isStillOff && String(heads) === String(group?.heads)) return offWords(effect, heads.length, unit);
    const which = heads.length === 1 ? `${capitalised(spokenHead(heads[0]))} is` : `${heads.length} heads are`;
    const start = `${which} ${isStillOff ? "still " : ""}off. `;
    return [start, ...changeWords(effect, heads.length, unit), " ", ...likeliestWords(effect, heads.length, unit)];
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
const offPhones = (words = "") => make("span", { class: "hs-off-phones" }, words);

/** A sentence as it is shown. @param {Part[]} parts */
const inBold = (parts) => parts.map((part) => (typeof part === "string" ? part : make("b", {}, part.strong)));
