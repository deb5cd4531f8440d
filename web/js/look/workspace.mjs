// One text over one store: the stage, or with details the instrument, and the ways to open Ask.

import { make } from "../lib/dom.mjs";
import { onThemeChange } from "../lib/drawing/palette.mjs";
import { Mixer } from "./state/mixer.mjs";
import { loadRoles } from "./roles/head_roles.mjs";
import { copyLink } from "./export/copy_link.mjs";
import { Stage } from "./stage/stage.mjs";
import { wayBack } from "./stage/way_back.mjs";
import { ShownText } from "./state/shown_text.mjs";
import { hasOpenList } from "../widgets/popover.mjs";
import { effect, listen, whenever } from "../lib/reactive.mjs";
import { signal } from "../vendor/signals.mjs";

/** @import { Texts } from "./compare/texts.mjs" */
/** @import { Sliders } from "../types.js" */
/** @import { View } from "./state/view.mjs" */

export class Workspace {
  #messages = "";
  /** @type {Promise<void> | null} */
  #instrument = null;
  #head = signal(/** @type {HTMLElement | null} */ (null)); // the open head's panel
  panels = make("div", { class: "hs-panels" });

  /**
   * @param {View} view
   * @param {Sliders} settings
   * @param {Texts | null} texts null in a file
   */
  constructor(view, settings, texts) {
    const store = new ShownText(view);
    this.store = store;
    this.notices = make("div", { class: "hs-notices", role: "status" });
    this.mixer = new Mixer(store);
    this.settings = settings;
    this.texts = texts;
    const link = view.isLookOnly ? null : copyLink(store, () => /** @type {Texts} */ (texts).address.copy());
    this.stage = new Stage(store, texts, link);
    const back = view.isLookOnly ? [] : [wayBack(store)];
    this.element = make("div", { class: "hs-workspace" }, this.notices, this.stage.element, ...back, this.panels);
    onThemeChange(() => store.redraw());
    if (!view.isLookOnly) loadRoles(store);
    whenever(
      () => [store.pointer, store.problem, store.rows, store.isGrowing, store.data.untrained, view.options.details],
      () => this.showMessages(),
    );
    whenever(
      () => [view.options.details],
      () => view.options.details && void this.addInstrument(),
    );
  }

  /** Make what only details show. */
  addInstrument() {
    return (this.#instrument ??= this.#makeInstrument());
  }

  async #makeInstrument() {
    const { instrument } = await import("./instrument.mjs");
    const { writing, heads, head } = instrument(this.store, this.mixer, this.settings, this.texts);
    this.panels.append(writing, heads, head);
    this.#head.value = head;
    this.showMessages(); // whose place is in the text
  }

  /** Ask is not part of what is drawn first. Without a model there is the answer that was open, or none. */
  async addAsk() {
    const { view } = this.store;
    if (view.isLookOnly && !view.options.ask) return;
    const { AskPanel } = await import("./ask/ask_panel.mjs");
    const ask = new AskPanel(this.store, this.mixer, this.texts);
    effect(() => this.#head.value?.before(ask.element));
    ask.refresh();
    if (!view.isLookOnly) askKeys(this.store, this.element, ask.element);
  }

  showMessages() {
    const { store } = this;
    this.element.classList.toggle("hs-growing", store.isGrowing);
    const messages = messagesOf(store);
    const joined = messages.join("\n");
    // At the end of the text, where they take room without moving anything else; on their own if there is no text.
    const box = store.view.options.details && store.pointer.run ? this.panels.querySelector(".hs-text-box") : null;
    const place = box ?? this.element;
    if (joined !== this.#messages || this.notices.parentElement !== place) {
      const text = place.querySelector(".hs-text");
      const isAtEnd = text && text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
      this.#messages = joined;
      const { why } = store.pointer;
      this.notices.replaceChildren(
        ...messages.map((message) => make("p", message === why ? { class: "hs-at-end" } : {}, message)),
      );
      if (box) place.append(this.notices);
      else place.prepend(this.notices);
      if (text && isAtEnd) text.scrollTop = text.scrollHeight;
    }
    this.element.dataset.state = store.pointer.state;
    this.panels.hidden = !store.pointer.run || !store.view.options.details; // only messages to see, or the stage
  }
}

/**
 * Messages to the visitor: which checkpoints failed, who wrote a text, why it ended, and what could not be fetched.
 * @param {ShownText} store
 */
function messagesOf({ pointer, problem, data, playback }) {
  const isFlat = data.untrained && pointer.state !== "snapshot"; // early weights are expected to be flat
  const loading = pointer.state === "loading" ? ["Loading the checkpoints…"] : [];
  const flat = isFlat
    ? ["Every head spreads its attention almost evenly: this model is untrained, or its weights did not load."]
    : [];
  const end = playback.isBehind && pointer.state === "done" ? "" : (pointer.why ?? ""); // the end is not shown yet
  const messages = [...loading, ...pointer.notices, pointer.note, end, problem, ...flat];
  return messages.filter((message) => message !== "");
}

/** @param {KeyboardEvent} event */
const isTyping = ({ target }) => target instanceof Element && target.closest("input, textarea, select") !== null;

/**
 * "A" opens and closes Ask while the focus is in the workspace and not in a field; Escape closes it from anywhere.
 * @param {ShownText} store
 * @param {HTMLElement} workspace
 * @param {HTMLElement} panel
 */
function askKeys({ view }, workspace, panel) {
  // On the window, so that all other handlers have already run. An open list is closed first.
  listen(window, "keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || isTyping(event)) return;
    if (!view.options.ask || !workspace.isConnected || hasOpenList()) return;
    /** @type {HTMLElement | null} */
    const button = workspace.querySelector(".hs-ask-button");
    if (panel.contains(document.activeElement)) button?.focus();
    view.closeAsk();
  });
  workspace.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "a" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    event.preventDefault();
    view.toggleAsk();
    // The panel is shown one frame later.
    if (view.options.ask) requestAnimationFrame(() => panel.focus({ preventScroll: true }));
  });
}
