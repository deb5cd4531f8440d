// Writing in the place of the sentence: another text, or the same one changed.

import { make } from "../../lib/dom.mjs";
import { onChange } from "../../lib/reactive.mjs";
import { baseName, promptText } from "../../lib/words.mjs";
import { mainAction, quietAction } from "../../widgets/controls.mjs";

/** @import { Texts } from "../compare/texts.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

export class Editor {
  #before = ""; // what stood there when it was opened

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
    const write = quietAction("Let it write", () => this.#write());
    this.message = quietAction("Send as a message", () => this.#write(true));
    const cancel = quietAction("Cancel", () => this.close());
    const buttons = make("div", { class: "hs-stage-actions" }, this.read, write, this.message, cancel);
    this.element = make("div", { class: "hs-editor" }, this.field);
    this.side = make("div", { class: "hs-editor-side" }, this.problem, buttons); // in the place of what is said
    this.field.addEventListener("input", () => this.#grow());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        if (this.#isChat) this.#write();
        else void this.#read();
      } else return;
      event.preventDefault();
    });
    onChange(
      () => [store.isGrowing],
      () => this.isOpen && store.isGrowing && this.close(),
    );
  }

  isOpen = false;

  /** Whether what is written is a message of a conversation. */
  get #isChat() {
    return this.store.pointer.chat !== null;
  }

  /** @param {boolean} isAnother whether typing replaces what stands there */
  open(isAnother) {
    const { store, field } = this;
    this.isOpen = true;
    this.problem.textContent = "";
    const model = this.texts?.models.find(({ name }) => name === baseName(store.pointer.model));
    this.read.hidden = this.#isChat;
    this.message.hidden = this.#isChat || !model?.chat;
    field.value = this.#before = this.#isChat ? "" : promptText(store, this.shown());
    field.placeholder = this.#isChat ? "Your message" : "A text for the model to read";
    this.changed();
    this.#grow();
    field.focus({ preventScroll: true });
    field.setSelectionRange(isAnother ? 0 : field.value.length, field.value.length);
    field.scrollTop = field.scrollHeight;
  }

  close() {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.changed();
  }

  #grow() {
    const { field } = this;
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

  /** @param {boolean} [isMessage] the first one of a conversation */
  #write(isMessage = this.#isChat) {
    const { value } = this.field;
    this.close();
    this.texts?.writing.writeText(value, isMessage);
  }
}
