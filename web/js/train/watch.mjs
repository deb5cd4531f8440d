// A training in progress: its state, its losses, its samples and its heads.

import { thousands } from "../lib/numbers.mjs";
import { make } from "../lib/dom.mjs";
import { address } from "../lib/http.mjs";
import { HeadsPanel, ScoresPanel } from "./heads.mjs";
import { Lending } from "./lend.mjs";
import { LossPanel } from "./loss.mjs";
import { SamplePanel } from "./samples.mjs";
import { aboutResult, clock, timeLeft, weights } from "./words.mjs";
import { copying } from "../widgets/copy.mjs";
import { smallButton } from "../widgets/controls.mjs";

/** @import { StateEvent, TrainEvent } from "./types.js" */

const TITLES = {
  waiting: "Waiting in the queue",
  starting: "Starting",
  writing: "Writing the text",
  training: "Learning",
  finishing: "Testing it on all of the held-out text",
  done: "Trained",
  failed: "The training has ended",
};

/** A request to a trained model under `/v1`, for a shell. @param {string} name @param {string} token */
function callOf(name, token) {
  const body = JSON.stringify({ model: name, prompt: "The", max_tokens: 50 });
  const header = `Headscope-Model-Token: ${token}`;
  return `curl -H "${header}" \\\n  ${address("v1/completions").href} \\\n  -d '${body}'`;
}

export class Watch {
  /** @type {StateEvent} */
  #state = { kind: "state", state: "starting", name: "" };
  #seconds = 0; // of the whole training
  #pairs = 0; // the loss of letter pairs
  each = ""; // how long a training takes, for those who wait
  #isStopping = false;
  #isAsking = false; // whether the visitor is being asked to confirm the deletion of a finished model

  /**
   * @param {object} actions
   * @param {() => void} actions.stop
   * @param {(name: string) => void} actions.open
   * @param {() => void} actions.again
   * @param {(problem: string) => void} actions.report
   */
  constructor(actions) {
    this.title = make("h2", {});
    this.detail = make("p", { class: "hs-status", role: "status" });
    this.bar = make("progress", { max: 1, value: 0, "aria-label": "Progress of the training" });
    this.says = make("p", { class: "ht-result" });
    this.stop = smallButton("Stop and keep it");
    this.stop.title = "End the training now; what it has learned so far is kept";
    this.stop.addEventListener("click", () => {
      this.#isStopping = true;
      this.stop.disabled = true;
      actions.stop();
    });
    this.look = smallButton("Write with it", () => actions.open(this.#state.name), { class: "hs-primary" });
    this.download = make("a", { class: "hs-small", href: address("train/model.zip").href, download: "" }, "Download");
    this.download.title = "A zip archive with the checkpoint folder: Headscope, transformers and other engines open it";
    this.again = smallButton("Train another", () => this.#askToDelete());
    this.keep = smallButton("Keep it", () => this.#keep());
    this.actions = actions;
    const buttons = make("div", { class: "ht-buttons" }, this.look, this.download, this.stop, this.again, this.keep);
    const top = make("div", { class: "hs-top" }, this.title, this.detail);
    this.head = make("section", { class: "hs-panel", "aria-label": "Training" }, top, this.bar, this.says, buttons);
    this.call = make("pre", { class: "ht-call", tabindex: 0, "aria-label": "How a program calls the model" });
    const button = smallButton("Copy", () => copy(this.call.textContent));
    const { said, copy } = copying(button);
    const use = "Whoever has the token can use the model, but not download or delete it. It is deleted with the model.";
    this.program = make(
      "details",
      { class: "ht-program" },
      make("summary", {}, "Use it from a program"),
      this.call,
      make("p", { class: "hs-hint" }, button, said, ` ${use}`),
    );
    this.lending = new Lending(actions.report);
    this.head.append(this.program, this.lending.element);
    this.loss = new LossPanel();
    this.sample = new SamplePanel();
    this.heads = new HeadsPanel();
    this.scores = new ScoresPanel();
    this.#goBackTogether();
    const left = make("div", {}, this.sample.element, this.loss.element);
    const right = make("div", {}, this.heads.element, this.scores.element);
    this.panels = make("div", { class: "ht-panels" }, left, right);
    this.element = make("div", { class: "ht-watch", hidden: true }, this.head, this.panels);
  }

  /** The sample, the heads and the chart show the same step. */
  #goBackTogether() {
    const sliders = [this.sample.slider, this.heads.slider];
    for (const slider of sliders) {
      slider.moved = (step) => {
        for (const other of sliders) if (other !== slider) other.seek(step);
        this.loss.showStep(step);
      };
    }
  }

  get hasEnded() {
    return this.#state.state === "done" || this.#state.state === "failed";
  }

  /** Prepare for another training, or for the same one from its first event. */
  reset() {
    this.#state = { kind: "state", state: "starting", name: "" };
    this.#seconds = 0;
    this.#isStopping = this.#isAsking = false;
    this.stop.disabled = false;
    this.bar.value = 0;
    this.says.textContent = "";
    this.lending.show("");
    for (const panel of [this.loss, this.sample, this.heads, this.scores]) panel.reset();
    this.#show();
  }

  /** @param {TrainEvent} event */
  receive(event) {
    this.loss.receive(event);
    this.sample.receive(event);
    this.heads.receive(event);
    this.scores.receive(event);
    switch (event.kind) {
      case "state":
        this.#state = event;
        this.#show();
        break;
      case "start":
        this.#seconds = event.seconds;
        this.#pairs = event.bigram;
        this.says.textContent =
          `${weights(event.n_parameters)}, random at first, learn from ${thousands(event.train_tokens)} characters ` +
          `(${event.vocab_size} different ones). ${thousands(event.validation_tokens)} more are held out for a test.`;
        break;
      case "loan":
        this.lending.show(event.loan, event.until);
        break;
      case "writing":
        this.bar.value = Math.min(1, event.written / event.of);
        this.detail.textContent = `${thousands(event.written)} of ${thousands(event.of)} characters`;
        break;
      case "step":
        this.bar.value = Math.min(1, event.seconds / this.#seconds);
        this.detail.textContent = `step ${thousands(event.step)} · ${timeLeft(this.#seconds - event.seconds)}`;
        break;
      case "end":
        this.bar.value = 1;
        this.detail.textContent = `${thousands(event.step)} steps in ${clock(event.seconds)}`;
        this.says.textContent = aboutResult(event, this.loss.kept.validation_loss, this.#pairs);
        break;
    }
  }

  /** Delete the training and choose again; ask for a second click before a finished model is deleted. */
  #askToDelete() {
    if (this.#state.state !== "done" || this.#isAsking) {
      this.#isAsking = false;
      this.actions.again();
      return;
    }
    this.#isAsking = true;
    this.#show();
    this.keep.focus();
  }

  #keep() {
    this.#isAsking = false;
    this.#show();
    this.again.focus();
  }

  #show() {
    const { state, name, place, why, token } = this.#state;
    this.title.textContent = state === "done" ? `Trained: ${name}` : TITLES[state];
    this.element.dataset.state = state;
    if (state === "waiting") {
      this.detail.textContent = `You are number ${place} in the queue.`;
      const turn = "Yours starts when its turn comes: keep this page open.";
      this.says.textContent = `Other visitors are training${this.each}. ${turn}`;
    }
    if (state === "starting") this.detail.textContent = "in a separate process, with the lowest priority";
    if (state === "failed") {
      this.detail.textContent = "";
      this.says.textContent = why ?? "";
    }
    this.bar.hidden = state === "waiting" || state === "failed";
    this.panels.hidden = ["waiting", "starting"].includes(state) || (state === "failed" && this.loss.isEmpty);
    this.stop.hidden = this.hasEnded || state === "waiting" || state === "starting";
    this.stop.disabled = this.#isStopping || state === "finishing" || state === "writing";
    this.look.hidden = this.download.hidden = this.program.hidden = state !== "done";
    this.lending.offer(state === "done" ? name : "");
    this.call.textContent = token ? callOf(name, token) : "";
    this.again.hidden = false;
    this.keep.hidden = !this.#isAsking;
    this.again.textContent =
      state === "done"
        ? this.#isAsking
          ? "Yes, delete my model"
          : "Delete and train another"
        : this.hasEnded
          ? "Train another"
          : "Cancel";
    this.again.title = this.hasEnded
      ? "Delete the text and the model, and choose again"
      : "End the training and delete everything";
  }
}
