// Conversations with a model that has a chat template: what is typed is the user's message, and the model writes the
// answer. The text that is shown is the conversation: its pointer holds the messages that it was made from.

import { make, setFlag } from "../lib/dom.mjs";
import { smallButton } from "../widgets/controls.mjs";

/** @import { ChatMessage, Pointer, SentMessage } from "../types.js" */
/** @import { ShownText } from "./state/shown_text.mjs" */

/** The messages of a text, as the server takes them. @param {readonly ChatMessage[]} chat @returns {SentMessage[]} */
export const asSent = (chat) => chat.map(({ role, content }) => ({ role, content }));

export class Chat {
  #isOffered = false;
  #isOn = false;
  #run = "";
  #left = ""; // the run of a conversation that the next message does not continue

  /**
   * @param {() => void} changed the switch was turned
   * @param {() => void} begin a new conversation
   */
  constructor(changed, begin) {
    this.toggle = make(
      "button",
      { type: "button", class: "hs-button hs-chat-switch", role: "switch", hidden: true },
      "Chat",
    );
    this.toggle.title = "Converse with the model: its chat template turns the messages into the text that it reads";
    this.changed = changed;
    this.toggle.addEventListener("click", () => this.turn(!this.#isOn));
    this.system = make("textarea", { rows: 2, "aria-label": "System message", spellcheck: "false" });
    this.more = make("details", {}, make("summary", {}, "System message"), this.system);
    const another = () => {
      this.#left = this.#run;
      this.another.hidden = true;
      begin();
    };
    this.another = smallButton("New conversation", another, { hidden: true });
    this.element = make("div", { class: "hs-chat", hidden: true }, this.more, this.another);
    this.#show();
  }

  /** @param {boolean} isOn whether what is typed is a message, from now on */
  turn(isOn) {
    this.#isOn = isOn;
    this.#show();
    this.changed();
  }

  /** Whether what is typed is a message. */
  get isOn() {
    return this.#isOffered && this.#isOn;
  }

  /** @param {boolean} isOffered whether the chosen model has a chat template */
  offer(isOffered) {
    this.#isOffered = isOffered;
    this.#show();
  }

  /** A text was opened: it is a conversation, or it is not. @param {readonly ChatMessage[] | null} chat */
  open(chat) {
    this.#isOn = chat !== null;
    this.system.value = chat?.find(({ role }) => role === "system")?.content ?? "";
    this.#show();
  }

  /** Close the system message. */
  fold() {
    this.more.open = false;
  }

  #show() {
    setFlag(this.toggle, "aria-checked", this.isOn);
    this.toggle.hidden = !this.#isOffered;
    this.element.hidden = !this.isOn;
  }

  /** Whether the next message continues the text. @param {Readonly<Pointer>} text @param {string} model to answer */
  #continues(text, model) {
    return text.chat !== null && text.model === model && text.run !== this.#left;
  }

  /** Offer to leave the conversation that is shown. @param {ShownText} store @param {string} model the chosen one */
  follow({ pointer }, model) {
    this.#run = pointer.run;
    this.another.hidden = !this.#continues(pointer, model);
  }

  /**
   * The messages to be answered: those of the conversation that is shown, its answer, and a new one.
   * @param {string} content of the new one
   * @param {ShownText} store
   * @param {string} model the chosen one
   * @returns {SentMessage[]}
   */
  messages(content, { pointer, ids }, model) {
    const earlier = this.#continues(pointer, model) ? asSent(pointer.chat ?? []) : [];
    if (earlier.length) earlier.push({ role: "assistant", ids: ids.slice(pointer.n_prompt) });
    const system = this.system.value;
    return [
      ...(system ? [/** @type {SentMessage} */ ({ role: "system", content: system })] : []),
      ...earlier.filter(({ role }) => role !== "system"),
      { role: "user", content },
    ];
  }
}
