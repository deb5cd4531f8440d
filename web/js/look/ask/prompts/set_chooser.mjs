// Which set of prompts a question is about: one that comes with the page, or the visitor's own.

import { make } from "../../../lib/dom.mjs";
import { preparedQuestion } from "../../state/prepared.mjs";
import { readStored, writeStored } from "../../../widgets/storage.mjs";
import { MAX_BYTES, parseRows } from "./prompt_rows.mjs";
import { fileButton, smallButton } from "../../../widgets/controls.mjs";

/** @import { AskContext } from "../question.js" */
/** @import { AskRequest } from "../../state/ask_server.mjs" */
/** @import { PromptRow } from "./prompt_rows.mjs" */

const OWN = "own";
const STORED = "headscope-prompts";
export const FIRST_SET = "names";

/** @typedef {{ key: string, title: string, about: string, rows: PromptRow[] }} PromptSet */
/** @import { AboutSet } from "../../state/ask_server.mjs" */
/** @typedef {{ rows: PromptRow[], set: AboutSet }} ChosenSet */

/** @type {PromptSet[]} those that come with the page, once they are known */
let sets = [];

/** @returns {Promise<PromptSet[]>} */
export async function shippedSets() {
  if (!sets.length) sets = await (await fetch(new URL("prompt_sets.json", import.meta.url))).json();
  return sets;
}

/** A short code for a text. @param {string} text */
function codeOf(text) {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return `${OWN}-${hash.toString(16)}`;
}

/**
 * The set that a question was about.
 * @param {AskRequest} [asked]
 * @returns {ChosenSet | null}
 */
export const setOf = (asked) =>
  asked?.set ? { rows: /** @type {{ prompts: PromptRow[] }} */ (asked.body).prompts, set: asked.set } : null;

export class SetChooser {
  /**
   * The chosen set is `choices.set`. A file has no other than the one that its answer is about.
   * @param {Pick<AskContext, "store" | "choices" | "choose">} context
   * @param {Record<string, string>} [others] what else can be chosen in place of a set, by its key
   */
  constructor({ store, choices, choose }, others = {}) {
    this.store = store;
    this.choices = choices;
    this.choose = choose;
    this.others = others;
    this.select = make("select", { "aria-label": "Set of prompts" });
    this.area = make("textarea", {
      rows: 4,
      spellcheck: "false",
      "aria-label": "Your own prompts",
      placeholder: "One prompt per line, CSV with the columns prompt, corrupted, answer and wrong, JSON lines, or JSON",
    });
    const file = fileButton("File of prompts", ".csv,.json,.jsonl,.txt", async (chosen) => {
      if (chosen.size > MAX_BYTES) this.about.textContent = "The file is larger than 2 MB.";
      else this.useOwn(await chosen.text());
    });
    this.own = make(
      "div",
      {},
      this.area,
      smallButton("Use these", () => this.useOwn(this.area.value)),
      file.button,
    );
    this.about = make("p", { class: "hs-hint" });
    this.saved = setOf(preparedQuestion());
    this.shownSets = "";
    this.select.addEventListener("change", () => choose({ set: this.select.value }));
    void this.loadSets();
    this.controls = [this.select, this.own, file.field, this.about];
  }

  /** Keep the visitor's own prompts, so that a reload finds them again. @param {string} text */
  useOwn(text) {
    writeStored(STORED, text);
    this.choose({ set: codeOf(text) });
  }

  async loadSets() {
    if (sets.length || this.store.view.isLookOnly) return;
    await shippedSets();
    this.store.redraw();
  }

  show() {
    const code = this.choices.set.startsWith(OWN) ? this.choices.set : OWN;
    const entries = this.store.view.isLookOnly
      ? [[this.choices.set, this.saved?.set.title ?? this.others[this.choices.set]]]
      : [...Object.entries(this.others), ...sets.map(({ key, title }) => [key, title]), [code, "your own"]];
    if (this.shownSets !== JSON.stringify(entries)) {
      this.select.replaceChildren(...entries.map(([key, title]) => make("option", { value: key }, title)));
      this.shownSets = JSON.stringify(entries);
    }
    this.select.value = this.choices.set;
    this.own.hidden = this.store.view.isLookOnly || !this.choices.set.startsWith(OWN);
    this.about.textContent = this.saved?.set.about ?? sets.find(({ key }) => key === this.choices.set)?.about ?? "";
  }

  /** Show the choice. Returns the set, or why there is none. @returns {ChosenSet | string} */
  rows() {
    this.show();
    if (this.saved) return this.saved;
    if (!this.choices.set.startsWith(OWN)) {
      const set = sets.find(({ key }) => key === this.choices.set);
      if (!set) return "Loading the prompts…";
      return { rows: set.rows, set: { title: set.title, about: set.about, lines: set.rows.map((_, at) => at + 1) } };
    }
    if (this.choices.set === OWN) return "Paste prompts above, or open a file.";
    const text = readStored(STORED);
    if (codeOf(text) !== this.choices.set) return "These prompts are not kept in this browser. Paste them again.";
    if (!this.area.value) this.area.value = text;
    try {
      const { lines, ...parsed } = parseRows(text);
      return { ...parsed, set: { title: "own prompts", about: "", lines } };
    } catch (error) {
      return /** @type {Error} */ (error).message;
    }
  }
}
