// The Train tab: choosing what to train, and watching it.

import { loadStyle, make } from "../lib/dom.mjs";
import { HttpError, readEvents, request } from "../lib/http.mjs";
import { wait } from "../lib/latest.mjs";
import { announce, modelsChanged } from "../lib/page_events.mjs";
import { durations } from "./words.mjs";
import { Setup } from "./setup.mjs";
import { Watch } from "./watch.mjs";

/** @import { TrainEvent, TrainState } from "./types.js" */

/**
 * Gradio calls this when the tab is first opened, or when the visitor comes back to a training.
 * @param {HTMLElement} element the element to fill
 */
export async function mount(element) {
  await loadStyle(new URL("../train.css", import.meta.url));
  await new TrainPage(element).open();
}

const HERE_EVERY = 60_000; // milliseconds between two messages saying that the page is still open
const TRY_AGAIN = 2_000;
const CLOSING =
  "The server is about to restart, and your training ends with it. To keep what it has learned, " +
  "press “Stop and keep it” on the page Train at once, and then “Download”.";

/** @param {string} path */
const post = (path) => request(`train/${path}`, { body: {} });

/** Tell the other pages that the list of models has changed, and which model to open. @param {string} [open] */
const tellModels = (open = "") => announce(modelsChanged, open);

class TrainPage {
  #following = 0; // counts the trainings that were followed

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.setup = new Setup((send) => this.start(send));
    this.watch = new Watch({
      stop: () => this.do("stop"),
      open: (name) => tellModels(name),
      again: () => this.forget(),
      report: (problem) => this.report(problem),
    });
    this.problem = make("p", { class: "ht-problem", role: "alert", hidden: true });
    this.closing = make("p", { class: "ht-closing", role: "alert", hidden: true });
    // It is seen on the other pages, too.
    document.body.append(make("div", { class: "headscope ht-page" }, this.closing));
    setInterval(() => this.#isKept && post("here").catch(() => {}), HERE_EVERY);
  }

  #isKept = false; // whether the server keeps a training of this visitor

  /** Show this visitor's training, or the setup if there is none. */
  async open() {
    this.element.replaceChildren(this.problem, this.setup.element, this.watch.element);
    await this.refresh();
  }

  async refresh() {
    try {
      /** @type {TrainState} */
      const state = await (await request("train/state")).json();
      this.setup.show(state);
      this.watch.each = durations(state.sizes);
      this.#isKept = state.mine !== null;
      this.#showTraining(this.#isKept);
      if (state.mine) void this.follow();
    } catch (error) {
      this.report(`This page could not be opened: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** @param {boolean} isTraining */
  #showTraining(isTraining) {
    this.setup.element.hidden = isTraining;
    this.watch.element.hidden = !isTraining;
  }

  /** @param {string} problem "" for none */
  report(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = !problem;
    if (problem) this.problem.scrollIntoView({ block: "nearest" });
  }

  /** @param {() => Promise<Response>} send */
  async start(send) {
    this.report("");
    try {
      await send();
      this.#isKept = true;
      this.#showTraining(true);
      scrollTo({ top: 0 });
      void this.follow();
    } catch (error) {
      this.report(/** @type {Error} */ (error).message);
    }
  }

  /** Show the events of the training to its end. If the stream breaks, reopen it. */
  async follow() {
    const number = (this.#following += 1);
    for (;;) {
      this.watch.reset();
      try {
        const response = await request("train/events");
        for await (const event of readEvents(response)) {
          if (number !== this.#following) return;
          this.#receive(/** @type {TrainEvent} */ (event));
        }
        if (this.watch.hasEnded) return;
      } catch (error) {
        if (number !== this.#following) return;
        if (error instanceof HttpError && error.status === 404) {
          this.#isKept = false;
          this.#showTraining(false);
          this.report(
            this.closing.hidden ? error.message : "The server was restarted, and your training ended with it.",
          );
          this.closing.hidden = true;
          return;
        }
      }
      await wait(TRY_AGAIN);
    }
  }

  /** @param {TrainEvent} event */
  #receive(event) {
    this.watch.receive(event);
    if (event.kind === "closing") {
      this.closing.textContent = CLOSING;
      this.closing.hidden = false;
    }
    if (event.kind === "state" && event.state === "done") tellModels();
  }

  /** @param {string} path */
  async do(path) {
    try {
      await post(path);
    } catch (error) {
      this.report(/** @type {Error} */ (error).message);
    }
  }

  /** Delete the training and return to the setup. */
  async forget() {
    this.#following += 1;
    this.#isKept = false;
    this.closing.hidden = true;
    await post("forget").catch(() => {}); // it may already have been deleted
    this.report("");
    tellModels();
    await this.refresh();
  }
}
