// The bar at the top: model, prompt, Write and Stop, settings, and the tabs.

import { make, setFlag, setHidden } from "../lib/dom.mjs";
import { icon, logo } from "../lib/icons.mjs";
import { LentNote } from "./borrow.mjs";
import { Chat } from "./chat.mjs";
import { detailsSwitch } from "./panels/details.mjs";
import { Settings } from "./settings.mjs";
import { counted } from "../lib/numbers.mjs";
import { endsWithSpace } from "../lib/words.mjs";
import { Popover } from "../widgets/popover.mjs";
import { pageButton, plainButton, smallButton } from "../widgets/controls.mjs";
import { Roving } from "../widgets/roving.mjs";

/** @import { ChatMessage, Control, ModelInfo } from "../types.js" */
/** @import { View } from "./state/view.mjs" */

/** The tabs, by their name in the body's `data-page`. */
const PAGES = { look: "Look", learn: "Learn", train: "Train", use: "Use" };

/** @import { PageName } from "./state/router.mjs" */

/** What to try, by the model that shows it; those that are served are offered. @type {Record<string, string>} */
const EXAMPLES = { "stories-bpe": "A story", "shakespeare-char": "Shakespeare", "two-layer-steps": "A head is born" };

const MAX_HEIGHT = 140; // CSS pixels of the prompt

export class Bar {
  #typed = false; // whether the visitor typed the prompt
  #sent = ""; // the prompt that was written last
  #suggested = "";
  #isExample = true; // whether the text that is shown is the chosen model's example

  /**
   * @param {Control[]} controls
   * @param {object} actions
   * @param {() => void} actions.write
   * @param {() => void} actions.stop
   * @param {(name: string) => void} actions.chooseModel
   * @param {(name: PageName) => void} actions.showPage
   * @param {() => void} actions.help
   * @param {() => void} actions.menu it was opened or closed
   * @param {boolean} withTraining whether visitors may train GPTs of their own
   * @param {View} view
   */
  constructor(controls, actions, withTraining, view) {
    this.settings = new Settings(controls);
    this.models = new ModelPicker(actions.chooseModel, () => this.#showModel());
    this.prompt = this.#makePrompt(actions.write);
    this.refusal = make("div", { class: "hs-notices hs-refusal", role: "alert" });
    const drop = smallButton("Drop the space", () => this.#dropSpace());
    const about = "The prompt ends with a space, which in this model’s vocabulary is part of the next word. ";
    this.spaceHint = make("p", { class: "hs-space-hint", hidden: true }, about, drop);
    this.lent = new LentNote(actions.write);
    this.write = pageButton("Write", actions.write, { id: "hs-write", class: "hs-detail hs-primary" });
    this.stop = pageButton("Stop", actions.stop, { id: "hs-stop", class: "hs-detail", hidden: true });
    const begin = () => this.prompt.focus();
    this.chat = new Chat(() => this.#showChat(), begin);
    this.box = make("div", { class: "hs-prompt-box hs-detail" }, this.prompt, this.chat.toggle);
    const titles = Object.entries(PAGES).filter(([name]) => name !== "train" || withTraining);
    this.tabs = titles.map(([name, title]) =>
      plainButton(title, () => actions.showPage(/** @type {PageName} */ (name)), { "data-page": name }),
    );
    const pages = make("nav", { class: "hs-pages", "aria-label": "Pages" }, ...this.tabs);
    const brand = make("h1", { class: "hs-brand" }, logo(), make("span", {}, "Headscope"));
    this.examples = make("div", { class: "hs-try", role: "group", "aria-label": "Try" });
    const guide = { class: "hs-help", title: "What you see", "aria-label": "Guide" };
    const help = plainButton("?", actions.help, guide);
    const detail = detailsSwitch(view);
    detail.classList.add("hs-detail");
    const more = make("div", { class: "hs-more" }, pages, detail, help);
    this.menu = pageButton(icon("menu"), null, { class: "hs-menu-button", "aria-label": "Menu" });
    more.addEventListener("click", ({ target }) => {
      if (target instanceof Element && target.closest("button:not(.hs-details)")) this.popover.toggle(false);
    });
    this.more = make("div", { class: "hs-more-anchor" }, this.menu, more);
    this.popover = new Popover(this.more, this.menu, actions.menu);
    const writing = [this.box, this.write, this.stop, this.settings.element];
    this.element = make(
      "header",
      { class: "hs-topbar" },
      brand,
      this.models.element,
      this.examples,
      ...writing,
      this.more,
    );
    this.#showChat();
  }

  /** @param {() => void} write */
  #makePrompt(write) {
    const title = "Enter: write. Shift+Enter: new line.";
    const prompt = make("textarea", { rows: 1, id: "hs-prompt", title, spellcheck: "false", autocomplete: "off" });
    prompt.addEventListener("input", () => {
      this.#typed = true;
      this.refuse("");
      this.#grow();
    });
    prompt.addEventListener("focus", () => this.#grow());
    prompt.addEventListener("blur", () => this.#grow());
    prompt.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.write.hidden) write();
    });
    return prompt;
  }

  /** @param {ModelInfo[]} models @param {string} name of the chosen one */
  fill(models, name) {
    this.models.fill(models, name);
    const served = Object.entries(EXAMPLES).filter(([model]) => models.some((one) => one.name === model));
    const buttons = served.map(([model, title]) => plainButton(title, () => this.#try(model), { "data-name": model }));
    this.examples.replaceChildren(...buttons);
    this.examples.hidden = served.length < 2;
    this.#showExample();
  }

  /** Another text is shown, or another state of it. @param {string} state */
  showState(state) {
    if (state === "snapshot" || state === "loading") return; // the same text, read by the model as it was before
    this.#isExample = state === "opening" || state === "none";
    this.#showExample();
  }

  #showExample() {
    for (const button of this.examples.querySelectorAll("button")) {
      setFlag(button, "aria-pressed", this.#isExample && button.dataset.name === this.models.name);
    }
  }

  /** Open an example, with its prompt. @param {string} model */
  #try(model) {
    this.#typed = false;
    this.models.open(model);
  }

  /** Offer what the chosen model has: a chat template, and sampling settings of its own. */
  #showModel() {
    this.settings.offer(this.models.chosen?.sampling ?? {});
    this.lent.show(this.models.chosen);
    this.#showExample();
    this.#showChat();
  }

  /** Whether messages or prompts are typed, and whether the chosen model has a chat template. */
  #showChat() {
    this.chat.offer(this.models.chosen?.chat ?? false);
    const { isOn } = this.chat;
    this.prompt.placeholder = isOn ? "Your message" : "Text for the model to continue";
    this.prompt.setAttribute("aria-label", isOn ? "Message" : "Prompt");
    if (isOn && !this.#typed) this.#empty();
    if (!isOn && !this.prompt.value) this.suggest(this.#suggested);
    this.#showSpaceHint();
  }

  #showSpaceHint() {
    const isSpaced = !this.chat.isOn && (this.models.chosen?.spaced ?? false);
    setHidden(this.spaceHint, !(isSpaced && endsWithSpace(this.prompt.value)));
  }

  #dropSpace() {
    this.prompt.focus();
    this.prompt.value = this.prompt.value.trimEnd();
    this.prompt.dispatchEvent(new Event("input"));
  }

  #empty() {
    this.#typed = false;
    this.prompt.value = "";
    this.#grow();
  }

  /**
   * Show what was typed for a text that is opened: its prompt or, in a conversation, nothing.
   * @param {readonly ChatMessage[] | null} chat
   * @param {string} prompt
   */
  open(chat, prompt) {
    this.chat.open(chat);
    this.#showChat();
    if (!this.chat.isOn) this.suggest(prompt, true);
  }

  /** Enter what was typed elsewhere. @param {string} text */
  enter(text) {
    this.#typed = true;
    this.prompt.value = text;
    this.#grow();
  }

  /** A message was sent: the next one is typed in its place. */
  clearSent() {
    if (this.prompt.value === this.#sent) this.#empty();
    this.chat.fold();
  }

  /** The fields that the server needs to write a text. */
  submit() {
    this.#sent = this.prompt.value;
    return { prompt: this.prompt.value, model: this.models.name, ...this.settings.fields };
  }

  /**
   * Show a prompt, unless the visitor has typed one.
   * @param {string} prompt
   * @param {boolean} [replacesSent] whether it replaces one that was typed and written, too
   */
  suggest(prompt, replacesSent = false) {
    this.#suggested = prompt;
    if (this.chat.isOn) return;
    const isSent = replacesSent && this.prompt.value === this.#sent;
    if (this.#typed && this.prompt.value && !isSent) return;
    this.#typed = false;
    this.prompt.value = prompt;
    this.#grow();
  }

  /** Say why the prompt is refused, until the prompt or the model changes. @param {string} why "" if it is fine */
  refuse(why) {
    this.refusal.replaceChildren(...(why ? [make("p", {}, why)] : []));
    if (why) void this.lent.check();
    setFlag(this.prompt, "aria-invalid", why !== "");
  }

  /** @param {boolean} isWriting */
  showWriting(isWriting) {
    const hadFocus = document.activeElement === this.write || document.activeElement === this.stop;
    setHidden(this.write, isWriting);
    setHidden(this.stop, !isWriting);
    if (hadFocus) (isWriting ? this.stop : this.write).focus();
  }

  /** @param {PageName} name */
  showPage(name) {
    for (const tab of this.tabs) {
      if (tab.dataset.page === name) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
  }

  /** The field grows only while it is edited, and covers the panels below. */
  #grow() {
    const { prompt } = this;
    this.#showSpaceHint();
    const isTall = document.activeElement === prompt;
    prompt.style.height = "";
    prompt.classList.remove("hs-folded");
    prompt.classList.toggle("hs-grown", isTall && prompt.scrollHeight > prompt.clientHeight + 2);
    // Folded, it shows only its first line, without half of the second.
    prompt.classList.toggle("hs-folded", !isTall && prompt.scrollHeight > prompt.clientHeight + 2);
    if (!isTall) prompt.scrollTop = 0;
    else prompt.style.height = `${Math.min(prompt.scrollHeight + 2, MAX_HEIGHT)}px`;
  }
}

class ModelPicker {
  #name = "";
  /** @type {ModelInfo[]} */
  #models = [];

  /**
   * @param {(name: string) => void} choose
   * @param {() => void} shown another model is the chosen one, or more is known of it
   */
  constructor(choose, shown) {
    this.choose = choose;
    this.shown = shown;
    this.label = make("span", {}, "…");
    this.button = make("button", {
      type: "button",
      class: "hs-button hs-model-button",
      "aria-haspopup": "listbox",
      "aria-label": "Model",
    });
    this.button.append(this.label, icon("chevron"));
    this.list = make("ul", { class: "hs-popover hs-models", role: "listbox", "aria-label": "Model", hidden: true });
    this.element = make("div", { class: "hs-popover-anchor" }, this.button, this.list);
    this.popover = new Popover(this.element, this.button, (isOpen) => {
      this.list.hidden = !isOpen;
      if (isOpen) this.#rows.find((row) => row.dataset.name === this.#name)?.focus();
    });
    this.roving = new Roving(this.list, () => this.#rows);
    this.button.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      this.popover.toggle(true);
    });
    this.list.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.#pickAndClose(/** @type {HTMLElement} */ (event.target).dataset.name ?? this.#name);
    });
  }

  get name() {
    return this.#name;
  }

  /** The server's description of the chosen model. */
  get chosen() {
    return this.#models.find((model) => model.name === this.#name);
  }

  /** @param {ModelInfo[]} models @param {string} name of the chosen one */
  fill(models, name) {
    this.#models = models;
    this.list.replaceChildren(
      ...models.map((model) => {
        const kept = model.steps?.length ? `, kept at ${counted(model.steps.length, "step")} of its training` : "";
        const facts = make("span", {}, model.facts, kept);
        const lines = [make("b", {}, model.name), facts, make("small", {}, model.about)];
        const row = make("li", { role: "option", "data-name": model.name }, ...lines);
        row.addEventListener("click", () => this.#pickAndClose(model.name));
        return row;
      }),
    );
    this.show(name);
  }

  /** @param {string} name */
  show(name) {
    this.#name = name;
    this.label.textContent = name || "No model";
    this.button.title = this.chosen?.facts ?? "";
    for (const row of this.#rows) setFlag(row, "aria-selected", row.dataset.name === name);
    this.roving.update(this.#rows.find((row) => row.dataset.name === name));
    this.shown();
  }

  /** @returns {HTMLElement[]} */
  get #rows() {
    return /** @type {HTMLElement[]} */ ([...this.list.children]);
  }

  /** Open a model, the chosen one too: its opening comes back. @param {string} name */
  open(name) {
    this.show(name);
    this.choose(name);
  }

  /** Choose a model. @param {string} name */
  pick(name) {
    if (name !== this.#name) this.open(name);
  }

  /** Choose a model from the list. @param {string} name */
  #pickAndClose(name) {
    this.popover.toggle(false);
    this.pick(name);
  }
}
