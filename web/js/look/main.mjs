// The page starts here: the bar, the workspace below it, and the streams of the texts being written.

import { make, PHONE } from "../lib/dom.mjs";
import { request } from "../lib/http.mjs";
import { LatestRequest } from "../lib/latest.mjs";
import { announce, announceModel, modelsChanged, pageShown, shareLook, trainingResumed } from "../lib/page_events.mjs";
import { baseName } from "../lib/words.mjs";
import { borrow } from "./borrow.mjs";
import { isBusy } from "./state/pointer.mjs";
import { restoreLinkedView, showOpening } from "./compare/address.mjs";
import { Bar } from "./bar.mjs";
import { asSent } from "./chat.mjs";
import { leaveDetails, wantsDetails } from "./panels/details.mjs";
import { Texts } from "./compare/texts.mjs";
import { lookView } from "./look_view.mjs";
import { skipLinks } from "./panels/keyboard.mjs";
import { openText } from "./state/open_text.mjs";
import { fromFirstScreen, PREPARED, usePrepared } from "./state/prepared.mjs";
import { stopWriting, TextWriter } from "./state/text_writer.mjs";
import { pageOf, Router } from "./state/router.mjs";
import { Workspace } from "./workspace.mjs";
import { View } from "./state/view.mjs";
import { Guide } from "./stage/guide.mjs";
import { keepTheme } from "./stage/theme.mjs";
import { onChange, until, whenever } from "../lib/reactive.mjs";

/** @import { Branch, Control, ModelInfo, SentPointer, Writing } from "../types.js" */
/** @import { PageName } from "./state/router.mjs" */
/** @import { FirstScreen } from "./state/prepared.mjs" */
/** @import { GradioTransport } from "./state/text_writer.mjs" */

/**
 * The server's answer to the page's address.
 * @typedef {object} Landing
 * @property {ModelInfo[]} models
 * @property {SentPointer} pointer
 * @property {Record<string, unknown>} settings
 * @property {SentPointer | null} second a text it is compared with
 * @property {boolean} training whether this visitor is training a GPT here, or has trained one
 */

/** @type {Page | null} */
let page = null;

/**
 * Called by the page's HTML: show the page before Gradio has started, in a place that looks the same as Gradio's.
 * @param {() => void} startGradio
 */
export function start(startGradio) {
  const data = /** @type {HTMLElement} */ (document.getElementById("hs-start"));
  const { controls, withTraining, gradioWrites, screen } = JSON.parse(data.textContent);
  data.remove();
  keepTheme();
  page = new Page(controls, gradioWrites, withTraining);
  const version = /** @type {any} */ (window).gradio_config.version.replaceAll(".", "-");
  const place = make("div", { class: "headscope" }, page.element);
  const early = make("div", { id: "hs-early", class: `gradio-container gradio-container-${version}` }, place);
  document.getElementById("hs-first")?.remove();
  document.body.prepend(early);
  void page.firstDrawing.then(startGradio);
  void page.open(screen);
}

/**
 * Gradio calls this when the page's element exists.
 * @param {HTMLElement} root the element to fill
 * @param {Control[]} controls the settings of a text
 * @param {GradioTransport | false} gradio carries the texts if the GPU is only available inside Gradio's events
 * @param {boolean} withTraining whether visitors may train GPTs of their own
 */
export function mount(root, controls, gradio, withTraining) {
  if (page) moveInto(root, page.element);
  else {
    page = new Page(controls, gradio !== false, withTraining);
    root.replaceChildren(page.element);
    void page.open();
  }
  if (gradio) page.connect(gradio);
}

/**
 * Gradio shows its elements a few frames after it creates them: the page is moved before they are visible.
 * @param {HTMLElement} root
 * @param {HTMLElement} element
 */
function moveInto(root, element) {
  if (root.isConnected && getComputedStyle(root).visibility !== "visible") {
    requestAnimationFrame(() => moveInto(root, element));
    return;
  }
  root.replaceChildren();
  // Moved in this way, the page keeps its focus and scroll positions.
  if ("moveBefore" in root && root.isConnected && element.isConnected) {
    /** @type {any} */ (root).moveBefore(element, null);
  } else root.append(element);
  document.getElementById("hs-early")?.remove();
}

/** @implements {Writing} */
class Page {
  /** @type {string | null} the query of the address that the server has not answered yet */
  #awaited = null;
  #landing = new LatestRequest();
  #opening = new LatestRequest(); // of a model that was chosen
  /** @type {PromiseWithResolvers<GradioTransport>} */
  #gradio = Promise.withResolvers();

  /**
   * @param {Control[]} controls
   * @param {boolean} gradioWrites whether texts are carried by Gradio's events
   * @param {boolean} withTraining
   */
  constructor(controls, gradioWrites, withTraining) {
    this.withTraining = withTraining;
    this.router = new Router({
      read: () => this.#pageState,
      show: (state) => this.#show(state),
      isHeld: () => this.#awaited !== null,
      arrive: () => this.#arrive(),
      showPage: (name) => this.showPage(name),
    });
    this.view = new View();
    this.view.set({ details: wantsDetails() });
    this.guide = new Guide();
    this.bar = new Bar(controls, this.#barActions, withTraining, this.view);
    this.texts = new Texts(this.view, this, controls, this.router, (texts) => {
      this.workspace = new Workspace(this.view, this.bar.settings, texts);
      return this.workspace;
    });
    this.writer = new TextWriter((pointer) => this.follow(pointer), gradioWrites && this.#gradio.promise);
    const { element, chat, refusal, spaceHint, lent } = this.bar;
    const parts = [element, chat.element, refusal, spaceHint, lent.element, this.texts.element, this.guide.element];
    this.element = make("div", { class: "hs-page" }, skipLinks(), ...parts);
    this.firstDrawing = this.#drawing();
    void this.firstDrawing.then(() => this.workspace.addAsk());
    this.#keepHistory();
    shareLook(() => lookView(this.store, this.bar.models.chosen, this.workspace));
    whenever(
      () => this.texts.stores.map(({ isGrowing }) => isGrowing),
      () => this.#showProgress(),
    );
    window.addEventListener(modelsChanged, (event) => this.#reloadModels(/** @type {CustomEvent} */ (event).detail));
  }

  get #barActions() {
    return {
      write: () => this.write(),
      stop: () => this.stop(),
      chooseModel: (/** @type {string} */ name) => this.chooseModel(name),
      showPage: (/** @type {PageName} */ name) => this.showPage(name),
      help: () => this.guide.show(true),
      menu: () => this.router.record(),
    };
  }

  /** Resolves once the first text is drawn, or it is clear that there is none. */
  #drawing() {
    const { store } = this;
    const { pointer: first } = store;
    const hasText = () => store.data.rows > 0 || !store.pointer.run;
    return until(() => store.problem || (store.pointer !== first && hasText()));
  }

  /** What is opened gets an entry of the browser's history, and what an entry holds is shown. */
  #keepHistory() {
    const { store, texts, view } = this;
    onChange(
      () => [store.clicks],
      () => texts.address.follow(),
    );
    onChange(
      () => [view.options.ask, view.options.askWith, view.options.details, view.isLifted, this.guide.isOpen],
      () => this.router.record(),
    );
  }

  /** Texts are carried by Gradio's events from now on. @param {GradioTransport} gradio */
  connect(gradio) {
    this.#gradio.resolve(gradio);
  }

  get store() {
    return this.texts.first;
  }

  /** The browser has gone to another entry of its history. */
  #arrive() {
    if (this.texts.left?.address === location.search) this.texts.close();
    if (location.search === (this.#awaited ?? this.texts.address.shown)) this.router.arrive();
    else this.reopen();
  }

  /** The address has changed: abandon the text of the previous one. */
  reopen() {
    this.abandon();
    void this.open();
  }

  /**
   * Show the text that the address leads to.
   * @param {FirstScreen | null} [screen] what is known of it before the server answers
   */
  async open(screen = null) {
    this.showPage(pageOf(location.hash));
    const { search } = location;
    this.#opening.abort();
    if (screen) {
      const { models, pointer } = screen;
      usePrepared(fromFirstScreen(screen));
      const settings = { prompt: pointer.settings?.prompt };
      this.#land({ models, pointer, settings, second: null, training: false }, search);
    }
    try {
      const landing = await this.#askLanding(search, screen !== null);
      if (!landing) return;
      if (!screen || !this.#confirm(landing, screen)) this.#land(landing, search);
      if (landing.training) comeBackToTraining();
    } catch (error) {
      this.store.report(`The page could not be opened: ${/** @type {Error} */ (error).message}`);
    }
    this.router.begin();
  }

  /**
   * The server's answer to an address; null if another text was opened or written meanwhile.
   * @param {string} search the query of the address
   * @param {boolean} isShown whether its text is shown before the answer
   * @returns {Promise<Landing | null>}
   */
  #askLanding(search, isShown) {
    this.#awaited = search;
    this.texts.address.isOpening = !isShown;
    return this.#landing.send(async (signal) => {
      try {
        const problem = await borrow(); // before the server says which models the visitor may see
        const landing = await (await request(`look/landing${search}`, { signal })).json();
        if (problem) landing.pointer.notices = [problem]; // in place of the one that there is no such model
        return landing;
      } finally {
        if (!signal.aborted) this.#endOpening();
      }
    });
  }

  #endOpening() {
    this.#awaited = null;
    this.texts.address.isOpening = false;
  }

  /** Another text takes the place of the one that is being opened. */
  #leaveOpening() {
    this.#opening.abort();
    if (!this.texts.address.isOpening) return; // at most the first screen waits to be confirmed
    this.#landing.abort();
    this.#endOpening();
  }

  /**
   * The server has answered: keep the prepared opening if it is the server's. False if it is not.
   * @param {Landing} landing
   * @param {FirstScreen} screen
   */
  #confirm({ models, pointer }, { pointer: prepared }) {
    const isLeft = this.store.pointer.run !== PREPARED; // the visitor has opened another text meanwhile
    const names = /** @type {const} */ (["model", "sha256", "n_prompt", "ids", "head"]);
    if (!isLeft && !names.every((name) => String(pointer[name]) === String(prepared[name]))) return false;
    this.#list(models, this.bar.models.name);
    if (!isLeft) this.store.confirm(pointer);
    return true;
  }

  /** @param {ModelInfo[]} models @param {string} chosen */
  #list(models, chosen) {
    this.texts.setModels(models);
    this.bar.fill(models, chosen);
  }

  /** @param {Landing} landing @param {string} search the query of the page's address */
  #land({ models, pointer, settings, second }, search) {
    try {
      this.#list(models, pointer.model ?? "");
      this.tellModel();
      this.bar.open(pointer.chat ?? null, String(settings.prompt ?? ""));
      this.bar.settings.show(settings);
      this.texts.address.shown = search;
      this.texts.address.isOpening = true;
      this.follow(pointer);
      if (second) this.texts.compareWith(second);
      else this.texts.showAlone("a"); // two texts may still be compared
      if (pointer.state === "linked") restoreLinkedView(this.store, search, second ? this.texts.pair : null);
      else if (pointer.state === "opening") showOpening(this.store, search);
    } finally {
      this.texts.address.isOpening = false;
    }
  }

  /** @param {SentPointer} pointer */
  follow(pointer) {
    this.texts.follow(pointer);
    const { state, context_length } = this.store.pointer;
    this.bar.settings.fit(context_length);
    this.bar.settings.showSeed(this.store.pointer.settings.seed);
    this.bar.chat.follow(this.store, this.bar.models.name);
    this.#showProgress();
    this.bar.showState((this.element.dataset.state = state));
    if (!this.texts.stores.some((store) => isBusy(store.pointer.state))) this.texts.address.push();
  }

  /** Stop is shown until everything that was written is shown. */
  #showProgress() {
    this.bar.showWriting(this.texts.stores.some((store) => store.isGrowing));
  }

  /** Stop following the texts that are being written. */
  abandon() {
    this.writer.abandon();
    for (const store of this.texts.stores) store.abandon();
    this.bar.showWriting(false);
  }

  write() {
    const { chat, models, prompt } = this.bar;
    const messages = chat.isOn ? chat.messages(prompt.value, this.store, models.name) : null;
    this.abandon(); // a branch may still be writing
    this.workspace.mixer.reset();
    if (messages) void this.send({ messages }, {}, () => this.bar.clearSent());
    else void this.send({});
  }

  /**
   * Request a text; a refusal is shown below the prompt.
   * @param {object} changes to the bar's fields
   * @param {Partial<SentPointer>} [more] added to the text's pointers
   * @param {(run: string) => void} [started] gets the run of the text once it is known
   */
  async send(changes, more = {}, started = undefined) {
    this.#leaveOpening();
    this.bar.showWriting(true);
    this.bar.refuse("");
    try {
      await this.writer.write({ ...this.bar.submit(), ...changes }, more, started);
      this.store.report("");
    } catch (error) {
      this.bar.showWriting(false);
      this.bar.refuse(/** @type {Error} */ (error).message);
    }
  }

  /**
   * Write the current text twice at the same time, with the same prompt and seed: as before, and with heads scaled.
   * @param {number[][] | null} head_mask
   * @param {number} [n_given] how many tokens to begin with; those of the prompt if left out
   */
  writeScaled(head_mask, n_given = this.store.pointer.n_prompt) {
    this.abandon();
    const left = this.texts.leave();
    const { earlier, model, settings, head_mask: own, n_prompt } = this.store.pointer;
    const isWhole = n_given === n_prompt;
    const chat = isWhole ? this.store.pointer.chat : null;
    // A context shift has dropped ids of the prompt.
    const prompt = isWhole && earlier ? settings.prompt : this.store.ids.slice(0, n_given);
    const seed = typeof settings.seed === "number" ? settings.seed : newSeed();
    // A text whose context shifts would become a new run, which the comparison would not follow.
    const fields = { ...settings, prompt, model, seed, context_shift: false };
    void this.send({ ...fields, head_mask: own }, { chat }, (run) => {
      left(run);
      void this.send({ ...fields, head_mask }, { beside: run, chat });
    });
  }

  /** @param {string} text @param {boolean} isMessage of a conversation */
  writeText(text, isMessage) {
    if (isMessage !== this.bar.chat.isOn) this.bar.chat.turn(isMessage);
    this.bar.enter(text);
    this.write();
  }

  /** @param {string} text */
  async readText(text) {
    const { store } = this;
    const { sha256, model } = store.pointer;
    const body = { sha256, model, text, n_prompt: 1 };
    const { ids = [] } = /** @type {SentPointer} */ (await (await request("look/read", { body })).json());
    openText(store, { ids, n_prompt: ids.length });
  }

  goOn() {
    const { ids, pointer } = this.store;
    this.abandon();
    void this.send({ prompt: ids, model: baseName(pointer.model), head_mask: pointer.head_mask });
  }

  /** Write a second text from a token on. @param {Branch} data the token, and what comes before it */
  branch(data) {
    const from = this.texts.stores.find(({ pointer }) => pointer.run === data.of)?.pointer;
    // The conversation is another one if the token is part of it.
    void this.send({ branch: data }, { chat: from?.n_prompt === data.n_prompt ? from.chat : null });
  }

  /** Write a second text from the same prompt. */
  writeAnother() {
    const { chat, model, run } = this.store.pointer;
    void this.send({ seed: null, ...(chat ? { model, messages: asSent(chat) } : {}) }, { beside: run });
  }

  stop() {
    for (const store of this.texts.stores) {
      if (isBusy(store.pointer.state)) void stopWriting(store.pointer.run);
      store.halt();
    }
  }

  /** Show a model's opening, and how its heads formed. @param {string} name @param {boolean} [writes] a text instead */
  async chooseModel(name, writes = false) {
    this.#leaveOpening();
    this.abandon();
    this.workspace.mixer.reset();
    this.bar.refuse("");
    this.tellModel();
    try {
      const path = `look/opening/${encodeURIComponent(name)}`;
      const pointer = await this.#opening.send(async (signal) => (await request(path, { signal })).json());
      if (!pointer || this.bar.models.name !== name) return;
      this.texts.showAlone("a");
      this.view.closeAsk(); // the question was about another text
      this.follow(pointer);
      showOpening(this.store);
      const prompt = String(pointer.settings?.prompt ?? "");
      this.bar.suggest(prompt);
      this.router.add((this.texts.address.shown = `?model=${encodeURIComponent(name)}`));
      if (writes) this.writeText(prompt, false);
      else this.workspace.stage.birth.playSoon();
    } catch (error) {
      this.store.report(`Could not open ${name}: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** The models have changed: list them again, and let one write. @param {string} open its name; "" for none */
  async #reloadModels(open) {
    try {
      const response = await request(`look/landing${open ? `?model=${encodeURIComponent(open)}` : ""}`);
      /** @type {Landing} */
      const { models } = await response.json();
      this.#list(models, this.bar.models.name);
    } catch (error) {
      this.store.report(`The models could not be listed: ${/** @type {Error} */ (error).message}`);
    }
    if (!open) return;
    this.showPage("look");
    this.bar.models.show(open);
    await this.chooseModel(open, true);
  }

  /** Tell the lessons, which use the model chosen here. */
  tellModel() {
    announceModel(this.bar.models.name || null);
  }

  /** @param {PageName} name */
  showPage(name) {
    if (name === "train" && !this.withTraining) {
      this.showPage("look");
      return;
    }
    const isOther = document.body.dataset.page !== name;
    document.body.dataset.page = name;
    this.bar.showPage(name);
    if (isOther) announce(pageShown);
    this.router.record();
  }

  /** @returns {import("./state/router.mjs").PageState} */
  get #pageState() {
    const { view } = this;
    const shown = /** @type {PageName} */ (document.body.dataset.page ?? "look");
    const { ask, askWith, details } = view.options;
    const [menu, guide] = [this.bar.popover.isOpen, this.guide.isOpen];
    return { page: shown, ask, askWith, sheet: view.isLifted, comparing: this.texts.isComparing, menu, details, guide };
  }

  /** Show what an entry of the history holds. @param {import("./state/router.mjs").PageState} opened */
  #show({ page: shown, ask, askWith, sheet, comparing, details, guide }) {
    this.bar.popover.toggle(false);
    this.showPage(shown);
    if (!comparing) this.texts.showAlone("a");
    const { view } = this;
    view.set(details ? { ask, askWith, details } : { ask, askWith });
    if (!details) leaveDetails(view);
    this.guide.show(guide);
    view.lift(sheet && matchMedia(PHONE).matches);
  }
}

/** Start the Train tab in the background: the server keeps a training only while its page is open. */
function comeBackToTraining() {
  document.body.dataset.training = "true";
  announce(trainingResumed);
}

const newSeed = () => Math.floor(Math.random() * 2 ** 32);
