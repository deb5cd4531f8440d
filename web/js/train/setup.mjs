// What to train: a text, and the size of the model.

import { thousands } from "../lib/numbers.mjs";
import { make, setFlag } from "../lib/dom.mjs";
import { request } from "../lib/http.mjs";
import { countCharacters } from "../lib/words.mjs";
import { Outlook } from "./outlook.mjs";
import { sampleText } from "./sample_text.mjs";
import { cost, duration, megabytes, weights } from "./words.mjs";
import { smallButton, tabs } from "../widgets/controls.mjs";

/** @import { Size, TrainState } from "./types.js" */

const SOURCES = { paste: "Paste a text", file: "Pick a file", model: "Let a model write it" };
/** @typedef {keyof typeof SOURCES} Source */

/** Architectures, by the names that the server gives them. */
const ARCHITECTURES = { gpt2: "GPT-2", llama: "Llama: rotary positions, RMSNorm, gated MLP" };

const MIN_CHARACTERS = 1_000; // the server's limit
const ABOUT_SAMPLE =
  "Short stories put together at random for this page. Only their names are invented: all other words are English. " +
  "Look at what your GPT writes: which of its words are English, and which only sound like it?";
const SHOWN_CHARACTERS = 1_200; // of the sample text, of which the panel shows as many as fit

export class Setup {
  /** @type {Source} */
  #source = "paste";
  /** @type {File | null} */
  #file = null;
  /** @type {TrainState | null} */
  #state = null;
  #size = "";

  /** @param {(send: () => Promise<Response>) => Promise<void>} start */
  constructor(start) {
    this.chooser = tabs("Where the text comes from", SOURCES, (source) => this.choose(source));
    this.text = this.#makeText();
    const sample = smallButton("Use a sample text");
    sample.title = "Short stories put together at random, the same for everyone";
    sample.addEventListener("click", () => {
      this.text.value = sampleText();
      this.describe();
    });
    this.picked = make("input", {
      type: "file",
      id: "ht-file",
      class: "hs-hidden",
      accept: "text/*,.txt,.md,.csv,.py",
    });
    this.picked.addEventListener("change", () => this.chooseFile(this.picked.files?.[0] ?? null));
    const drop = make("label", { for: "ht-file", class: "ht-drop" });
    this.dropped = make("span", {});
    drop.append(
      make("b", {}, "Choose a text file"),
      make("span", { class: "hs-hint" }, "or drop it here"),
      this.dropped,
    );
    drop.addEventListener("dragover", (event) => event.preventDefault());
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      this.chooseFile(event.dataTransfer?.files[0] ?? null);
    });
    this.writer = make("select", { id: "ht-writer", "aria-label": "Model" });
    this.writing = make("p", { class: "hs-hint" });
    this.fields = {
      paste: make("div", {}, this.text, make("p", { class: "ht-sample" }, "No text ready? ", sample)),
      file: make("div", {}, this.picked, drop),
      model: make("div", { class: "ht-writer" }, make("label", { for: "ht-writer" }, "Written by "), this.writer),
    };
    this.fields.model.append(this.writing);
    this.note = make("p", { class: "hs-hint", role: "status" });
    this.warning = make("p", { class: "ht-warning", role: "status", hidden: true });
    this.sizes = make("div", { class: "ht-sizes", role: "radiogroup", "aria-label": "Size" });
    const options = Object.entries(ARCHITECTURES).map(([value, name]) => make("option", { value }, name));
    this.arch = make("select", { id: "ht-arch" }, ...options);
    this.button = smallButton("Train", null, { class: "hs-primary" });
    this.button.addEventListener("click", async () => {
      this.button.disabled = true;
      await start(() => this.send());
      this.describe();
    });
    this.first = smallButton("", () => this.#startWithSample(start), { class: "hs-primary ht-first" });
    this.missing = make("p", { class: "hs-hint", id: "ht-missing" });
    this.button.setAttribute("aria-describedby", "ht-missing");
    this.queue = make("p", { class: "hs-hint" });
    this.promise = make("p", { class: "hs-hint" });
    this.outlook = new Outlook();
    this.element = make("div", { class: "ht-setup", hidden: true }, ...this.#parts());
    this.choose("paste");
  }

  /** Train the smallest model on the sample text. @param {(send: () => Promise<Response>) => Promise<void>} start */
  async #startWithSample(start) {
    const [smallest] = this.#state?.sizes ?? [];
    if (!smallest) return;
    this.first.disabled = true;
    await start(() => send(sampleText(), { size: smallest.name, arch: Object.keys(ARCHITECTURES)[0] }));
    this.first.disabled = false;
  }

  #makeText() {
    const text = make("textarea", {
      id: "ht-text",
      rows: 10,
      spellcheck: "false",
      "aria-label": "The text to learn from",
      placeholder: "Paste a text here: a play, a book chapter, song lyrics, source code …",
    });
    text.addEventListener("input", () => this.describe());
    return text;
  }

  #parts() {
    const intro = make(
      "section",
      { class: "hs-panel ht-intro" },
      make("h2", {}, "Train your own GPT"),
      make("p", { class: "ht-lead" }, "It starts from nothing and learns to guess the next letter of a text."),
      make("div", { class: "ht-go" }, this.first, this.queue),
      this.promise,
    );
    const preview = make(
      "section",
      { class: "hs-panel ht-preview" },
      make("h3", {}, "The sample text"),
      make("p", { class: "hs-hint" }, ABOUT_SAMPLE),
      make("p", { class: "ht-reads" }, sampleText().slice(0, SHOWN_CHARACTERS)),
    );
    const source = make("section", {}, make("h3", {}, "1. The text"), this.chooser.element);
    source.append(...Object.values(this.fields), this.note, this.warning);
    const size = make("section", {}, make("h3", {}, "2. The size"), this.sizes);
    size.append(make("p", {}, make("label", { for: "ht-arch" }, "Built like "), this.arch));
    size.append(make("div", { class: "ht-go" }, this.button, this.missing));
    const change = make("summary", {}, "Change the text or the size");
    const left = make("div", { class: "ht-start" }, intro, preview);
    const other = make("details", { class: "hs-panel ht-change" }, change, source, size);
    return [left, this.outlook.element, other];
  }

  /** Show what the server offers. @param {TrainState} state */
  show(state) {
    this.#state = state;
    const { sizes } = state;
    this.#size = sizes.some(({ name }) => name === this.#size) ? this.#size : (sizes[1] ?? sizes[0])?.name;
    this.first.hidden = !sizes.length;
    if (sizes.length) this.first.textContent = `Train on the sample text, ${duration(sizes[0].seconds)}`;
    this.outlook.show(sizes[0]);
    this.sizes.replaceChildren(...sizes.map((size) => this.#card(size)));
    this.writer.replaceChildren(...state.writers.map((name) => make("option", { value: name }, name)));
    this.writing.textContent =
      `It writes ${thousands(state.writes)} characters first, which may take a minute or more. Your GPT then learns ` +
      "from these alone: it cannot become better than its teacher.";
    this.promise.textContent =
      "Only this browser can see your text and your model. Both are deleted a few minutes after you leave " +
      `unless you lend the model, and no later than ${duration(60 * state.minutes)} after the training.`;
    const ahead = state.at_work + state.waiting;
    const who = ahead === 1 ? "Another visitor is" : `${ahead} other visitors are`;
    this.queue.textContent = ahead ? `${who} training or waiting: yours will wait in the queue.` : "";
    if (!state.writers.length && this.#source === "model") this.choose("paste");
    this.describe();
  }

  /** @param {Size} size */
  #card(size) {
    const { name, n_layer, n_head, n_embd, context_length } = size;
    const input = make("input", { type: "radio", name: "ht-size", value: name, checked: name === this.#size });
    input.addEventListener("change", () => {
      this.#size = name;
      this.describe();
    });
    const title = make("b", {}, name[0].toUpperCase() + name.slice(1));
    const shape = `${n_layer} layers × ${n_head} heads, ${n_embd} wide, reads ${context_length} characters at once`;
    const lines = [title, make("span", {}, cost(size)), make("small", {}, shape)];
    input.setAttribute("aria-label", `${title.textContent}: ${weights(size.n_parameters)}`);
    return make("label", { class: "ht-size" }, input, make("span", {}, ...lines));
  }

  /** @param {Source} source */
  choose(source) {
    this.#source = source;
    this.chooser.show(source);
    for (const [name, field] of Object.entries(this.fields)) field.hidden = name !== source;
    this.describe();
  }

  /** @param {File | null} file */
  chooseFile(file) {
    this.#file = file;
    this.dropped.textContent = file ? `${file.name}, ${megabytes(file.size)}` : "";
    this.describe();
  }

  /** Show what was chosen and what is missing, and whether the training can start. */
  describe() {
    const problem = this.#problem();
    const length = countCharacters(this.text.value);
    this.note.textContent =
      problem ||
      (this.#source === "paste"
        ? `${thousands(length)} characters, ${thousands(length - Math.floor(0.9 * length))} held out.`
        : "");
    this.button.disabled = problem !== "";
    this.missing.textContent = problem && this.#state ? "Choose a text first: see step 1." : "";
    this.warning.textContent = problem ? "" : this.#warning();
    this.warning.hidden = !this.warning.textContent;
    setFlag(this.text, "aria-invalid", this.#source === "paste" && problem !== "" && length > 0);
  }

  /** The reason why the training cannot start, "" if it can. */
  #problem() {
    if (!this.#state) return "Loading…";
    const most = this.#state.max_bytes;
    if (this.#source === "paste") {
      const length = countCharacters(this.text.value);
      const least = thousands(MIN_CHARACTERS);
      if (length < MIN_CHARACTERS)
        return `At least ${least} characters are needed, and more is better: ${thousands(length)} so far.`;
      const size = new Blob([this.text.value]).size;
      return size > most ? `${megabytes(size)} of text; at most ${megabytes(most)} are accepted.` : "";
    }
    if (this.#source === "file") {
      if (!this.#file) return `Choose a UTF-8 text of up to ${megabytes(most)}.`;
      return this.#file.size > most
        ? `The file has ${megabytes(this.#file.size)}; at most ${megabytes(most)} are accepted.`
        : "";
    }
    return this.#state.writers.length ? "" : "No model is available to write a text.";
  }

  /** A warning if the text is short for the chosen size, else "". */
  #warning() {
    const size = this.#state?.sizes.find(({ name }) => name === this.#size);
    const length = this.#source === "file" ? (this.#file?.size ?? 0) : countCharacters(this.text.value);
    if (!size || this.#source === "model" || length >= size.enough) return "";
    const isSmallest = size.name === this.#state?.sizes[0].name;
    return (
      `This is short for a ${size.name} model, which needs about ${thousands(size.enough)} characters. With less it ` +
      "may memorise the text and write well only what it has read (it overfits): the loss on the held-out part then " +
      `falls at first and rises again. The best weights are kept.${isSmallest ? "" : " A smaller size needs less."}`
    );
  }

  /** Send what was chosen; the server answers once the training is in the queue. */
  async send() {
    const chosen = { size: this.#size, arch: this.arch.value };
    if (this.#source === "model") return request("train/written", { body: { ...chosen, model: this.writer.value } });
    const body = this.#source === "file" ? /** @type {File} */ (this.#file) : this.text.value;
    return send(body, chosen);
  }
}

/** @param {File | string} text @param {Record<string, string>} chosen */
const send = (text, chosen) => request(`train/text?${new URLSearchParams(chosen)}`, { body: text });
