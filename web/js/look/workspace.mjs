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
import { effect, listen, onChange, whenever } from "../lib/reactive.mjs";
import { signal } from "../vendor/signals.mjs";

/** @import { Texts } from "./compare/texts.mjs" */
/** @import { Sliders } from "../types.js" */
/** @import { View } from "./state/view.mjs" */
/** @import { AskLine } from "./ask/ask_line.mjs" */

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

  /** The heads that are off or scaled in what is shown. */
  get mask() {
    const cut = this.store.view.options.details ? null : this.stage.step.cut;
    return cut ? cut.mask : this.mixer.mask;
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
    const [{ AskPanel }, { AskLine }, { mixTiles }] = await Promise.all([
      import("./ask/ask_panel.mjs"),
      import("./ask/ask_line.mjs"),
      import("./ask/mixer_controls.mjs"),
    ]);
    const ask = new AskPanel(this.store, this.mixer, this.texts);
    effect(() => {
      const head = this.#head.value;
      const { ask: question, details } = view.options;
      const place = details && head ? this.panels : this.stage.body;
      this.panels.classList.toggle("hs-asking", question !== "" && details);
      // Moved, it loses the focus.
      if (ask.element.parentElement !== place) place.insertBefore(ask.element, place === this.panels ? head : null);
    });
    ask.refresh();
    if (view.isLookOnly) return;
    mixTiles(this.mixer, this.stage.body);
    const line = new AskLine(this.store, this.stage.step, () => this.stage.edit("compare"));
    this.stage.questions.append(line.element);
    askKeys(this.store, this.element, ask.element, line);
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
function messagesOf({ pointer, problem, data, playback, view }) {
  const isFlat = data.untrained && pointer.state !== "snapshot"; // early weights are expected to be flat
  const loading = pointer.state === "loading" ? ["Loading the checkpoints…"] : [];
  const flat = isFlat
    ? ["Every head spreads its attention almost evenly: this model is untrained, or its weights did not load."]
    : [];
  const isLater = playback.isBehind && pointer.state === "done"; // the end is not shown yet
  const end = isLater || !view.options.details ? "" : (pointer.why ?? ""); // the stage says it above its sentence
  const messages = [...loading, ...pointer.notices, pointer.note, end, problem, ...flat];
  return messages.filter((message) => message !== "");
}

/** @param {KeyboardEvent} event */
const isTyping = ({ target }) => target instanceof Element && target.closest("input, textarea, select") !== null;

/**
 * In the workspace, outside of fields, "A" opens and closes Ask, and the keys of its line open its questions; Escape
 * closes it from anywhere. Then the focus is where it was when something was opened.
 * @param {ShownText} store
 * @param {HTMLElement} workspace
 * @param {HTMLElement} panel
 * @param {AskLine} line
 */
function askKeys({ view }, workspace, panel, line) {
  /** @type {HTMLElement | null} */
  let opener = null;
  const isAnswer = (/** @type {Element | null} */ element) => element?.closest(".hs-ask, .hs-why-answer");
  onChange(
    () => [view.options.ask],
    () => {
      const { activeElement: focused } = document;
      if (view.options.ask && focused instanceof HTMLElement && !isAnswer(focused)) opener = focused;
    },
  );
  const goBack = () => {
    const { activeElement: focused } = document;
    const isLost = focused === document.body || isAnswer(focused);
    view.closeAsk();
    const shown = [opener, line.more, workspace.querySelector(".hs-ask-button")];
    const target = shown.find((each) => each instanceof HTMLElement && each.checkVisibility());
    if (isLost && target instanceof HTMLElement) target.focus({ preventScroll: true });
  };
  // On the window, so that all other handlers have already run. An open list is closed first.
  listen(window, "keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (isTyping(event) && !isAnswer(/** @type {Element} */ (event.target))) return;
    if (view.options.ask && workspace.isConnected && !hasOpenList()) goBack();
  });
  listen(window, "keydown", (event) => {
    const isHere = event.target === document.body || workspace.contains(/** @type {Node} */ (event.target));
    if (!isHere || event.defaultPrevented || isTyping(event) || !line.byKey(event)) return;
    if (event.key === "/") requestAnimationFrame(() => panel.querySelector("input")?.focus({ preventScroll: true }));
  });
  workspace.addEventListener("keydown", (event) => {
    if (isTyping(event)) return;
    if (event.key.toLowerCase() !== "a" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    view.toggleAsk();
    // The panel is shown one frame later.
    if (view.options.ask) requestAnimationFrame(() => panel.focus({ preventScroll: true }));
  });
}
