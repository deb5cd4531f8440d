// The Use tab: how programs get what the page shows. Text on the left, code on the right, answers below the code.

import { loadStyle, make, setFlag } from "../lib/dom.mjs";
import { maskWords } from "../lib/head_masks.mjs";
import { request } from "../lib/http.mjs";
import { modelChosen, pageShown } from "../lib/page_events.mjs";
import { copying } from "../widgets/copy.mjs";
import { smallButton } from "../widgets/controls.mjs";
import { Roving } from "../widgets/roving.mjs";
import { json } from "./answers.mjs";
import { painted } from "./paint.mjs";
import { RouteList } from "./routes.mjs";
import { LANGUAGES, NEEDED, sectionsOf } from "./sections.mjs";
import { shownNow } from "./view.mjs";

/** @import { Sent } from "../calls/call.mjs" */
/** @import { Language, Section } from "./sections.mjs" */
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

class UsePage {
  /** @type {Language} */
  #language = "curl";
  /** @type {Section[]} */
  #sections = [];
  /** @type {Map<string, Example>} by section */
  #examples = new Map();

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    const { key, training } = element.dataset;
    this.server = { withKey: key === "true", withTraining: training === "true" };
    this.contents = make("nav", { class: "hu-contents", "aria-label": "Contents" });
    this.view = make("p", { class: "hu-view" });
    this.tabs = Object.entries(LANGUAGES).map(([key_, name]) =>
      make("button", { type: "button", role: "tab", id: `hu-${key_}`, onclick: () => this.#speak(key_) }, name),
    );
    const tablist = make("div", { class: "hu-tabs", role: "tablist", "aria-label": "Language" }, ...this.tabs);
    this.roving = new Roving(tablist, () => this.tabs, { choose: (at) => this.tabs[at].click() });
    this.bar = make("div", { class: "hu-bar" }, this.view, tablist);
    this.body = make("div", {});
    this.routes = new RouteList(async () => (await request("v1/openapi.json")).json());
    for (const event of [modelChosen, pageShown]) window.addEventListener(event, () => void this.#follow());
  }

  async open() {
    const title = make("h2", {}, "Use it from a program");
    const about = make("p", {}, "Everything you saw in Look is one request away. ");
    about.append("The examples are filled with what you are looking at.");
    const main = make("div", {}, make("div", { class: "hu-intro" }, title, about), this.bar, this.body);
    await this.#follow();
    this.element.replaceChildren(this.contents, main);
    this.#speak(this.#language);
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }

  /** Fill the examples with what *Look* shows. */
  async #follow() {
    if (document.body.dataset.page !== "use") return;
    const shown = await shownNow(this.server);
    if (!shown) return;
    this.#sections = sectionsOf(shown);
    this.#showView(shown);
    const links = this.#sections.map(({ id, name }) => make("a", { href: `#use/${id}` }, name));
    const all = make(
      "a",
      { href: "#use/routes", onclick: () => (this.routes.element.open = true) },
      "All routes and limits",
    );
    const endpoints = make("a", { href: "?view=api" }, "Gradio’s endpoints");
    this.contents.replaceChildren(make("h3", {}, "Examples"), ...links, make("h3", {}, "Reference"), all, endpoints);
    this.#examples = new Map(this.#sections.map((section) => [section.id, new Example(section)]));
    this.body.replaceChildren(...[...this.#examples.values()].map((example) => example.element), this.routes.element);
    this.#speak(this.#language);
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
    if (asked) facts.push(fact("Question", asked.route.replaceAll("-", " ")));
    const change = make("a", { href: "#" }, "Change it in Look");
    this.view.replaceChildren(...facts, change);
  }

  /** @param {string} language */
  #speak(language) {
    this.#language = /** @type {Language} */ (language);
    for (const tab of this.tabs) setFlag(tab, "aria-selected", tab.id === `hu-${language}`);
    this.roving.update(this.tabs.find((tab) => tab.id === `hu-${language}`));
    for (const example of this.#examples.values()) example.speak(this.#language);
  }
}

/** One example: what it is for, its code, and its answer, whose place is kept free. */
class Example {
  /** @param {Section} section */
  constructor(section) {
    this.section = section;
    const { id, title, about, options, run } = section;
    const heading = make("h3", {}, make("a", { href: `#use/${id}` }, title));
    const rows = options.flatMap(([name, meaning]) => [make("dt", {}, name), make("dd", {}, meaning)]);
    const text = make("div", {}, heading, make("p", {}, about), ...(rows.length ? [make("dl", {}, ...rows)] : []));
    this.language = make("span", {});
    this.code = make("code", {});
    const copyButton = smallButton("Copy", () => void copy(this.code.textContent));
    const { said, copy } = copying(copyButton);
    const buttons = make("div", {}, copyButton, said);
    this.answer = make("div", { class: "hu-answer", role: "status" });
    if (run) {
      this.runButton = smallButton("Ask this server", () => void this.#run(), { class: "hs-primary" });
      this.runButton.title = "Sends this request from your browser, whatever the language of the code";
      buttons.append(this.runButton);
      this.answer.classList.toggle("hu-short", run.isShort ?? false);
      this.answer.append(make("p", { class: "hu-soft" }, "The answer appears here."));
    } else this.answer.hidden = true;
    const listing = make("pre", { tabindex: 0, "aria-label": `Code: ${title}` }, this.code);
    const box = make("div", { class: "hu-code" }, make("header", {}, this.language, buttons), listing, this.answer);
    this.element = make("section", { class: "hu-example", id: `use/${id}` }, text, box);
  }

  /** @param {Language} language */
  speak(language) {
    const { code } = this.section;
    const own = "only" in code ? null : code[language];
    const words =
      "only" in code ? code.only : own ? LANGUAGES[language] : `curl (${LANGUAGES[language]} has no call for this)`;
    const [needed, where] = ("only" in code ? code.needs : own && NEEDED[language]) ?? [];
    const install = needed ? [" needs ", make("code", {}, `pip install ${needed}`), where ?? ""] : [];
    this.language.replaceChildren(words, ...install);
    this.code.replaceChildren(...painted(own || ("only" in code ? code.code : (code.curl ?? ""))));
  }

  /** All of an answer, folded below the part of it that is shown. @param {unknown} found */
  #whole(found) {
    const details = make("details", {}, make("summary", {}, "Answer as JSON"), ...json(found));
    details.addEventListener("toggle", () => (this.answer.scrollTop = details.open ? details.offsetTop : 0));
    return details;
  }

  async #run() {
    const { run } = this.section;
    if (!run) return;
    this.answer.classList.add("hu-asked"); // as high as its answer, before that arrives
    this.answer.scrollIntoView({ block: "nearest" });
    setFlag(this.answer, "aria-busy", true);
    const began = performance.now();
    try {
      const found = await fetched(run.path, run.sent);
      const seconds = ((performance.now() - began) / 1000).toFixed(2);
      const how = make("p", { class: "hu-soft" }, `Answered in ${seconds} s.`);
      const whole = run.sent.file ? [] : [this.#whole(found)];
      this.answer.replaceChildren(...(run.show ? [...run.show(found), how, ...whole] : [...json(found), how]));
    } catch (error) {
      this.answer.replaceChildren(make("p", { class: "hu-problem" }, /** @type {Error} */ (error).message));
    }
    setFlag(this.answer, "aria-busy", false);
  }
}

/** @param {string} path @param {Sent} sent */
async function fetched(path, { body, query, file }) {
  const words = query ? `?${new URLSearchParams(/** @type {Record<string, string>} */ (query))}` : "";
  const response = await request(`${path}${words}`, { body });
  return file ? response.arrayBuffer() : response.json();
}
