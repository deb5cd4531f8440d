// Writing in the place of the sentence: another text, the same one changed, or a second one to compare it with.

import { make } from "../../lib/dom.mjs";
import { onChange } from "../../lib/reactive.mjs";
import { baseName, promptText } from "../../lib/words.mjs";
import { mainAction, quietAction } from "../../widgets/controls.mjs";
import { ABOUT, UNCHANGED } from "../compare/compare_menu.mjs";
import { badge } from "../compare/names.mjs";

/** @import { Texts } from "../compare/texts.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

/** @typedef {"change" | "replace" | "compare"} Purpose what is written is for */

export class Editor {
  #before = ""; // what stood there when it was opened
  /** @type {Purpose} */
  #purpose = "change";
  #isSent = false; // the text: it is open until the text that is written takes its place

  /**
   * @param {ShownText} store
   * @param {Texts | null} texts
   * @param {() => number} shown how many tokens the sentence shows
   * @param {() => void} changed it was opened or closed
   */
  constructor(store, texts, shown, changed) {
    this.store = store;
    this.texts = texts;
    this.shown = shown;
    this.changed = changed;
    this.field = make("textarea", {
      class: "hs-stage-editor",
      spellcheck: "false",
      "aria-label": "Your text",
    });
    this.problem = make("p", { class: "hs-own-problem", role: "alert" });
    this.read = mainAction("What comes next?", () => void this.#read(), { title: "Enter" });
    this.compare = mainAction("Compare", () => void this.#compare(), { title: "Enter" });
    this.write = quietAction("Let it write", () => this.#write());
    this.message = quietAction("Send as a message", () => this.#write(true));
    const cancel = quietAction("Cancel", () => this.close());
    const ways = [this.read, this.compare, this.write, this.message, cancel];
    const buttons = make("div", { class: "hs-stage-actions" }, ...ways);
    this.first = make("span", {});
    this.firstLine = make("p", { class: "hs-editor-first" }, badge("a"), this.first);
    this.element = make("div", { class: "hs-editor" }, this.firstLine, badge("b"), this.field);
    this.about = make("p", { class: "hs-editor-about" }, "This is ", badge("b"), ABOUT);
    // In the place of what is said.
    this.side = make("div", { class: "hs-editor-side" }, this.problem, this.about, buttons);
    this.field.addEventListener("input", () => this.#edited());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        if (this.#purpose === "compare") void this.#compare();
        else if (this.#isChat) this.#write();
        else void this.#read();
      } else return;
      event.preventDefault();
    });
    onChange(
      () => [store.isGrowing, store.pointer.run],
      () => (store.isGrowing || this.#isSent) && this.close(),
    );
  }

  isOpen = false;

  /** Whether what is written is a message of a conversation. */
  get #isChat() {
    return this.store.pointer.chat !== null;
  }

  /** @param {Purpose} purpose */
  open(purpose) {
    const { store, field } = this;
    const isSecond = purpose === "compare";
    this.#purpose = purpose;
    this.isOpen = true;
    this.#isSent = false;
    this.problem.textContent = "";
    const model = this.texts?.models.find(({ name }) => name === baseName(store.pointer.model));
    this.read.hidden = isSecond || this.#isChat;
    this.message.hidden = isSecond || this.#isChat || !model?.chat;
    this.write.hidden = isSecond;
    this.compare.hidden = this.firstLine.hidden = this.about.hidden = !isSecond;
    const whole = promptText(store, this.shown()); // without the word that is predicted
    this.first.textContent = whole;
    field.value = this.#before = this.#isChat && !isSecond ? "" : whole;
    field.ariaLabel = isSecond ? "Text to compare with" : "Your text";
    field.placeholder = this.#isChat && !isSecond ? "Your message" : "A text for the model to read";
    this.changed();
    this.#edited();
    field.focus({ preventScroll: true });
    field.setSelectionRange(purpose === "replace" ? 0 : field.value.length, field.value.length);
    field.scrollTop = field.scrollHeight;
  }

  close() {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.changed();
  }

  #edited() {
    const { field } = this;
    this.compare.disabled = field.value === this.#before;
    this.compare.title = this.compare.disabled ? UNCHANGED : "Enter";
    field.style.height = "";
    if (field.scrollHeight > field.clientHeight) field.style.height = `${field.scrollHeight}px`;
  }

  /** Read the text without writing on. */
  async #read() {
    const { field } = this;
    if (!field.value) return;
    this.problem.textContent = "";
    try {
      if (field.value !== this.#before) await this.texts?.writing.readText(field.value);
      this.close();
    } catch (error) {
      this.problem.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** Show the text next to the one that was shown. */
  async #compare() {
    const { field, texts } = this;
    if (!field.value || !texts) return;
    if (field.value === this.#before) {
      this.problem.textContent = UNCHANGED;
      return;
    }
    this.problem.textContent = await texts.rereads.readText(field.value);
    if (!this.problem.textContent) this.close();
  }

  /** @param {boolean} [isMessage] the first one of a conversation */
  #write(isMessage = this.#isChat) {
    this.#isSent = true;
    this.texts?.writing.writeText(this.field.value, isMessage);
  }
}
