// The Use tab: how programs get what the page shows. Text on the left, code on the right, answers below the code.

import { loadStyle, make, setFlag } from "../lib/dom.mjs";
import { maskWords } from "../lib/head_masks.mjs";
import { request } from "../lib/http.mjs";
import { modelChosen, pageShown } from "../lib/page_events.mjs";
import { titleOfRoute } from "../calls/question_titles.mjs";
import { Roving } from "../widgets/roving.mjs";
import { readStored, writeStored } from "../widgets/storage.mjs";
import { Contents } from "./contents.mjs";
import { Example } from "./example.mjs";
import { RouteList } from "./routes.mjs";
import { LANGUAGES, sectionsOf } from "./sections.mjs";
import { shownNow } from "./view.mjs";

/** @import { Language } from "./sections.mjs" */
/** @import { Shown } from "./view.mjs" */

/**
 * Gradio calls this when the tab is first opened.
 * @param {HTMLElement} element the element to fill
 */
export async function mount(element) {
  await loadStyle(new URL("../use.css", import.meta.url));
  await new UsePage(element).open();
}

const ENDS = 18; // characters of each end of a text in the bar
const KEPT = "headscope-language";

class UsePage {
  /** @type {Language} */
  #language;
  /** @type {Example[]} */
  #examples = [];

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    const { key, tools, training } = element.dataset;
    this.server = { withKey: key === "true", withTools: tools === "true", withTraining: training === "true" };
    const kept = readStored(KEPT);
    this.#language = /** @type {Language} */ (kept in LANGUAGES ? kept : "curl");
    this.view = make("p", { class: "hu-view" });
    this.tabs = Object.entries(LANGUAGES).map(([key_, name]) =>
      make("button", { type: "button", role: "tab", id: `hu-${key_}`, onclick: () => this.#choose(key_) }, name),
    );
    const tablist = make("div", { class: "hu-tabs", role: "tablist", "aria-label": "Language" }, ...this.tabs);
    this.roving = new Roving(tablist, () => this.tabs, { choose: (at) => this.tabs[at].click() });
    this.bar = make("div", { class: "hu-bar" }, this.view, tablist);
    this.inAnyLanguage = make("div", {}); // the bar stays in view above these alone
    this.inOne = make("div", {});
    this.routes = new RouteList(async () => (await request("v1/openapi.json")).json());
    this.contents = new Contents(this.routes);
    for (const event of [modelChosen, pageShown]) window.addEventListener(event, () => void this.#follow());
  }

  async open() {
    const title = make("h2", {}, "Use it from a program");
    const about = make("p", {}, "Everything you saw in Look is one request away. ");
    about.append("The examples are filled with what you are looking at.");
    const intro = make("div", { class: "hu-intro" }, title, about);
    const languages = make("div", {}, this.bar, this.inAnyLanguage);
    await this.#follow();
    this.element.replaceChildren(
      this.contents.element,
      make("div", {}, intro, languages, this.inOne, this.routes.element),
    );
    const id = location.hash.slice(1);
    if (id === this.routes.element.id) this.routes.element.open = true;
    document.getElementById(id)?.scrollIntoView();
  }

  /** Fill the examples with what *Look* shows. */
  async #follow() {
    if (document.body.dataset.page !== "use") return;
    const shown = await shownNow(this.server);
    if (!shown) return;
    this.#showView(shown);
    const sections = sectionsOf(shown);
    const shownBefore = new Map(this.#examples.map((example) => [JSON.stringify(example.section), example]));
    // An example that stays the same keeps its answer.
    const examples = sections.map((section) => shownBefore.get(JSON.stringify(section)) ?? new Example(section));
    if (examples.every((example, i) => example === this.#examples[i])) return;
    this.#examples = examples;
    const [one, any] = [true, false].map((isOne) =>
      this.#examples.filter(({ section }) => "only" in section.code === isOne).map(({ element }) => element),
    );
    this.inAnyLanguage.replaceChildren(...any);
    this.inOne.replaceChildren(...one);
    this.contents.show(sections, [...any, ...one, this.routes.element]);
    this.#speak();
  }

  /** @param {Shown} shown */
  #showView({ model, text, head: [layer, head], mask, asked }) {
    const isLong = text.length > 2 * ENDS + 3;
    // Cut at spaces, if there are any.
    const short = isLong
      ? `${text.slice(0, ENDS).replace(/\s\S*$/, "")} … ${text.slice(-ENDS).replace(/^\S*\s/, "")}`
      : text;
    const fact = (/** @type {string} */ name, /** @type {string} */ value) =>
      make("span", {}, `${name} `, make("b", {}, value));
    const facts = [fact("Model", model || "the first"), fact("Text", short), fact("Head", `${layer}·${head}`)];
    const changed = maskWords(mask);
    if (changed) facts.push(fact("Read", changed.startsWith("without") ? changed : `with ${changed}`));
    if (asked) facts.push(fact("Question", titleOfRoute(asked.route)));
    const change = make("a", { href: "#" }, "Change it in Look");
    this.view.replaceChildren(...facts, change);
  }

  /** @param {string} language */
  #choose(language) {
    this.#language = /** @type {Language} */ (language);
    writeStored(KEPT, language);
    this.#speak();
  }

  #speak() {
    const chosen = `hu-${this.#language}`;
    for (const tab of this.tabs) setFlag(tab, "aria-selected", tab.id === chosen);
    this.roving.update(this.tabs.find((tab) => tab.id === chosen));
    for (const example of this.#examples) example.speak(this.#language);
  }
}
