// Answers in place, for somebody who has never heard of attention, to the questions of the first screen: what would the
// model write without such heads, why does it choose this word, and what if it had chosen another one? Each offers the
// way to the full instrument, which opens at once with details.

import { make } from "../../lib/dom.mjs";
import { Emitter } from "../../lib/emitter.mjs";
import { isSamePicture } from "../../lib/heads.mjs";
import { icon } from "../../lib/icons.mjs";
import { share } from "../../lib/numbers.mjs";
import { mostProbable, softmax } from "../../lib/sampling.mjs";
import {
  changeWords,
  likeliestWords,
  lookWords,
  originOf,
  shareWords,
  strongestFor,
  titlesOf,
} from "../../lib/without_heads.mjs";
import { plainly, spoken, unitOf } from "../../lib/words.mjs";
import { OPEN_LIST } from "../keyboard.mjs";
import { askedPrediction, textBody } from "../ask/subject.mjs";
import { MIN_LOOK, withoutAlike } from "../roles/heads_alike.mjs";
import { askServer } from "../state/ask_server.mjs";
import { vocabulary } from "../state/run_fetcher.mjs";
import { effectOf, inBold } from "./effect.mjs";
import { TwoTexts } from "./two_texts.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { AttributionAnswer } from "../../lens.js" */
/** @import { PictureId } from "../../types.js" */
/** @import { Mixer } from "../ask/mixer.mjs" */
/** @import { Texts } from "../compare/texts.mjs" */
/** @import { Store } from "../state/store.mjs" */

/** @typedef {"" | "without" | "why" | "instead"} Question */

/** Topics: asked (also when an answer is closed). */
export class PlainAnswer extends Emitter {
  /** @type {Question} */
  #asked = "";
  #about = ""; // the place in the text that the answer is about
  #turn = 0; // results of earlier turns are discarded
  /** @type {Element | null} */
  #focused = null;
  /** @type {{ from: PictureId, to: PictureId } | null} the open head before an answer opened another one, and that */
  #opened = null;

  /**
   * @param {Store} store
   * @param {Mixer} mixer
   * @param {Texts | null} texts null where there is no model
   */
  constructor(store, mixer, texts) {
    super();
    this.store = store;
    this.mixer = mixer;
    this.texts = texts;
    this.two = new TwoTexts(store.view, texts);
    this.words = make("p", { role: "status" });
    this.body = make("div", {});
    this.full = smallButton("Compare them in full", () => this.#compare());
    this.full.title = "Both texts with every head, and where they differ";
    this.arithmetic = smallButton("Show me the arithmetic", () => this.#askAbout("ledger"));
    this.everything = smallButton("All the numbers", () => this.#askAbout("attribution"));
    this.everything.title = "What each part of the model adds";
    this.end = smallButton("", () => this.close());
    this.end.append(icon("close"), " Close");
    const buttons = make("div", { class: "hs-controls" }, this.full, this.arithmetic, this.everything, this.end);
    const top = make("div", { class: "hs-answer-top" }, this.words, buttons);
    this.element = make("section", { class: "hs-plain-answer", "aria-label": "Answer", hidden: true });
    this.element.append(top, this.body);
    store.on("state tokens step", () => this.#follow());
    store.view.on(() => store.view.options.details && this.close());
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !this.#asked || document.querySelector(OPEN_LIST)) return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    };
    window.addEventListener("keydown", press, { capture: true }); // before the text handles it
  }

  /** The question that is answered; "" for none. */
  get asked() {
    return this.#asked;
  }

  /** @param {Exclude<Question, "instead">} question @returns {Promise<void>} */
  async open(question) {
    const { store, mixer } = this;
    if (!question) this.close();
    else if (!store.view.options.details) await (question === "why" ? this.#why() : this.without());
    else if (question === "why") store.view.set({ ask: "attribution", askWith: "" });
    else {
      const removal = await withoutAlike(store);
      if (removal) mixer.writeBoth(removal.mask, removal.query + 1);
    }
  }

  close() {
    if (!this.#asked) return;
    const hadFocus = this.element.contains(document.activeElement);
    this.#turn++;
    this.#asked = "";
    this.element.hidden = true;
    const panel = /** @type {HTMLElement} */ (this.element.parentElement);
    panel.removeAttribute("data-answer");
    panel.style.minHeight = "";
    this.two.end();
    this.store.selectedHeads.point([]);
    if (this.#opened && isSamePicture(this.#opened.to, this.store.open)) this.store.view.choose(this.#opened.from);
    this.#opened = null;
    queueMicrotask(() => this.mixer.try(undefined)); // by then, all panels know a new text
    this.emit("asked");
    if (hadFocus && this.#focused?.checkVisibility()) {
      /** @type {HTMLElement} */ (this.#focused).focus({ preventScroll: true });
    }
  }

  /** Another text or another place in it. */
  #follow() {
    if (!this.#asked || this.#about === this.#place) return;
    if (this.#asked === "why" && !this.store.isGrowing) void this.#why();
    else this.close();
  }

  /** It does not include the run's name, which a prepared opening gets only from the server. */
  get #place() {
    const { ids, isGrowing, pointer, selection } = this.store;
    return [pointer.sha256, ids, isGrowing, selection.currentRow].join();
  }

  /** @param {Question} asked @param {HTMLElement} body @returns {number} the turn */
  #begin(asked, body) {
    const { activeElement } = document;
    if (!this.#asked) this.#focused = activeElement;
    this.two.end();
    this.mixer.try(undefined);
    this.#asked = asked;
    this.#about = this.#place;
    const panel = /** @type {HTMLElement} */ (this.element.parentElement);
    if (!panel.dataset.answer) panel.style.minHeight = `${panel.offsetHeight}px`; // so that nothing below it moves
    panel.dataset.answer = asked;
    this.element.hidden = false;
    this.body.replaceChildren(body);
    this.full.hidden = asked === "why";
    this.full.disabled = true;
    this.arithmetic.hidden = this.everything.hidden = asked !== "why";
    this.emit("asked");
    if (this.element.getBoundingClientRect().top < 0) this.element.scrollIntoView();
    if (!activeElement?.checkVisibility() || activeElement === document.body) this.end.focus({ preventScroll: true });
    return ++this.#turn;
  }

  /** @param {...(string | HTMLElement)} words */
  #say(...words) {
    this.words.replaceChildren(...words);
  }

  /** Answer, unless something else is asked meanwhile. @param {number} turn @param {() => Promise<void>} answer */
  async #try(turn, answer) {
    try {
      await answer();
    } catch (error) {
      if (turn === this.#turn) this.#say(/** @type {Error} */ (error).message);
    }
  }

  /**
   * Write the text twice: as it is, and without the heads that look at the same word.
   * @param {ReturnType<typeof withoutAlike>} [alike]
   * @returns {Promise<boolean>} whether it ran until the two diverged
   */
  async without(alike = withoutAlike(this.store)) {
    const { store, mixer, two } = this;
    const turn = this.#begin("without", two.element);
    let isDone = false;
    this.#say("What if these heads were switched off?");
    await this.#try(turn, async () => {
      const removal = await alike;
      if (turn !== this.#turn || !removal) return;
      const { heads, mask, query, look } = removal;
      mixer.try(mask);
      const effect = await effectOf(store, mixer, mask, query);
      if (turn !== this.#turn) return;
      const n = heads.length;
      const unit = unitOf(store);
      const said = [lookWords(n, look), ...changeWords(effect, n, unit), " ", ...likeliestWords(effect, n, unit)];
      this.#say(...inBold(said));
      const given = store.ids.slice(0, query + 1);
      const [title, without] = titlesOf(n);
      const written = two.write(store, [
        { given, head_mask: store.pointer.head_mask, title },
        { given, head_mask: mask, title: without },
      ]);
      if (!(await written) || turn !== this.#turn) return;
      isDone = true;
      this.full.disabled = false;
      if (two.areSame) this.#say(...inBold(said), " Both texts are the same.");
    });
    return isDone;
  }

  /**
   * The text with another token at a place.
   * @param {number} token
   * @param {number} at
   */
  async instead(token, at) {
    const { store, two } = this;
    const turn = this.#begin("instead", two.element);
    await this.#try(turn, async () => {
      const { fetcher, pointer } = store;
      const [logits, texts] = await Promise.all([fetcher.logits(at - 1), vocabulary(pointer.sha256)]);
      if (turn !== this.#turn) return;
      const probabilities = softmax(logits);
      const ids = [store.tokens[at]?.id ?? mostProbable(logits, 1)[0], token];
      const names = ids.map((id) => `“${plainly(texts[id])}”`);
      const [was, is] = ids.map((id) => make("b", {}, share(probabilities[id])));
      this.#say(`If the next ${unitOf(store)} were ${names[1]} (`, is, `) instead of ${names[0]} (`, was, "):");
      const before = store.ids.slice(0, at);
      const [a, b] = ids.map((id, i) => ({
        given: [...before, id],
        head_mask: pointer.head_mask,
        title: `With ${names[i]}`,
      }));
      if ((await two.write(store, [a, b])) && turn === this.#turn) this.full.disabled = false;
    });
  }

  /** Which heads favour the next word, and what they look at. */
  async #why() {
    const { store } = this;
    const list = make("ul", { class: "hs-for" });
    const turn = this.#begin("why", list);
    this.#say("One moment …");
    const { position, token } = askedPrediction(store);
    const { fetcher } = store;
    await this.#try(turn, async () => {
      const body = { ...textBody(store), position, token, against: /** @type {const} */ ("likeliest") };
      const [answer, weights] = await Promise.all([askServer({ route: "attribution", body }), fetcher.query(position)]);
      if (turn !== this.#turn) return;
      const { heads, token: asked, against, probability, alternatives } = /** @type {AttributionAnswer} */ (answer);
      const most = strongestFor(heads);
      const looks = most.map(({ picture, value }) => ({ picture, value, ...this.#target(weights, picture, position) }));
      const unit = unitOf(store);
      const word = spoken(asked.text);
      const shares = shareWords(heads, most, word, against ? spoken(against.text) : "");
      const words = [shares, ...backWords(looks, plainly(asked.text), word)];
      const [likeliest] = alternatives; // they are sorted
      if (likeliest && likeliest.probability > probability) {
        const drawn = originOf(store.pointer, position + 1) === "drawn" ? " was drawn by chance:" : ":";
        const chances = `${share(likeliest.probability)} against ${share(probability)}`;
        words.push(`${word}${drawn} ${spoken(likeliest.text)} is more probable (${chances}).`);
      }
      this.#say(words.join(" "));
      if (most.length) {
        this.#opened = { from: this.#opened?.from ?? store.open, to: most[0].picture };
        store.view.choose(most[0].picture);
        store.selectedHeads.point(most.map(({ picture }) => picture));
      }
      list.replaceChildren(
        ...looks.map(({ picture, key, word: target, weight }) => {
          const where = key === position ? `the ${unit} itself` : `“${target}” with ${share(weight)}`;
          const looksAt = weight < MIN_LOOK ? "looks at many places" : `looks at ${where}`;
          const head = make("button", { type: "button", onclick: () => this.#show(picture) });
          head.append(make("b", {}, `Layer ${picture[0]}, head ${picture[1]}`), make("span", {}, looksAt));
          head.title = "Open this head";
          return make("li", {}, head);
        }),
      );
    });
  }

  /** One of the heads of the answer alone, which stays open. @param {PictureId} head */
  #show(head) {
    this.#opened = null;
    this.store.selectedHeads.point([]);
    this.store.view.choose(head);
  }

  /**
   * The word that a head looks at most, and how much of its attention that has.
   * @param {Float32Array} weights of the query in every picture
   * @param {PictureId} head
   * @param {number} query
   */
  #target(weights, head, query) {
    const { store } = this;
    const start = store.data.index(head) * (query + 1);
    const row = weights.subarray(start, start + query + 1);
    const key = row.indexOf(Math.max(...row));
    return { key, word: plainly(store.tokens[key].text), weight: row[key] };
  }

  /** Open the full comparison. */
  #compare() {
    this.mixer.try(undefined);
    this.texts?.compareBoth(this.two.stores);
    this.close();
  }

  /** @param {string} question of Ask, about the head that is open */
  #askAbout(question) {
    this.#opened = null;
    this.close();
    this.store.view.set({ ask: question, askWith: "" });
  }
}

/**
 * How many of the heads look back at an earlier occurrence of the word.
 * @param {{ word: string, weight: number }[]} heads with the word that each looks at most
 * @param {string} word
 * @param {string} name the word as it is said
 */
function backWords(heads, word, name) {
  const back = heads.filter((head) => head.weight >= MIN_LOOK && head.word === word).length;
  if (!back) return [];
  const those = back < heads.length ? `${back} of them` : back === 1 ? "It" : "All";
  return [`${those} ${back === 1 ? "looks" : "look"} back at an earlier ${name}.`];
}
