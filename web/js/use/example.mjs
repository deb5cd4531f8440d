// One example: what it is for, its code, and its answer, whose place is kept free.

import { make, setFlag } from "../lib/dom.mjs";
import { request } from "../lib/http.mjs";
import { smallButton, tabs } from "../widgets/controls.mjs";
import { copying } from "../widgets/copy.mjs";
import { printed } from "./answers.mjs";
import { painted } from "./paint.mjs";
import { LANGUAGES, NEEDED } from "./sections.mjs";

/** @import { Call, Language, Section } from "./sections.mjs" */

/** @typedef {{ found: string | ArrayBuffer, seconds: number }} Answer as it arrived */

const LINE = 24; // pixels
const CHARACTER = 8; // pixels, about
const LINES = 6; // of an answer
const SHORT = 2; // of one that is short
const MOST_LINES = 10; // of a text that is shown without scrolling

export class Example {
  /** @type {Language} */
  #language = "curl";
  #isDrawn = true; // whether the picture of the answer is shown, not what the code prints
  /** @type {Answer | null} */
  #answer = null;

  /** @param {Section} section */
  constructor(section) {
    this.section = section;
    const { id, title, about, options, call } = section;
    const heading = make("h3", {}, make("a", { href: `#use/${id}` }, title));
    const rows = options.flatMap(([name, meaning]) => [make("dt", {}, name), make("dd", {}, meaning)]);
    const text = make("div", {}, heading, make("p", {}, about), ...(rows.length ? [make("dl", {}, ...rows)] : []));
    this.told = make("p", { class: "hu-soft", role: "status" });
    this.views = tabs("Answer", { drawn: "Drawn", printed: "Printed" }, (key) => {
      this.#isDrawn = key === "drawn";
      if (this.#answer) this.#show(this.#answer);
    });
    this.result = make("div", { class: "hu-result", tabindex: 0, role: "region", hidden: true });
    this.language = make("span", {});
    this.code = make("code", {});
    const copyButton = smallButton("Copy", () => void copy(this.code.textContent));
    const { said, copy } = copying(copyButton);
    const buttons = make("div", {}, copyButton, said);
    if (call) {
      const run = smallButton("Ask this server", () => void this.#run(), { class: "hs-primary" });
      run.title = "Sends this request from your browser, whatever the language of the code";
      buttons.append(run);
    }
    const listing = make("pre", { tabindex: 0, "aria-label": `Code: ${title}` }, this.code);
    const box = make("div", { class: "hu-code" }, make("header", {}, this.language, buttons), listing);
    if (call) box.append(this.#place(title));
    this.element = make("section", { class: "hu-example", id: `use/${id}` }, text, box);
  }

  /** The place of the answer. @param {string} title */
  #place(title) {
    this.told.textContent = "The answer appears here.";
    this.views.element.hidden = true;
    this.result.setAttribute("aria-label", `Answer: ${title}`);
    return make("div", { class: "hu-answer" }, make("div", {}, this.told, this.views.element), this.result);
  }

  /** @param {Language} language */
  speak(language) {
    this.#language = language;
    const { code, needs } = this.section;
    const own = "only" in code ? null : code[language];
    const words =
      "only" in code ? code.only : own ? LANGUAGES[language] : `curl (${LANGUAGES[language]} has no call for this)`;
    const [needed, where] = ("only" in code ? code.needs : own && (needs ?? NEEDED)[language]) ?? [];
    const install = needed ? [" needs ", make("code", {}, `pip install ${needed}`), where ?? ""] : [];
    this.language.replaceChildren(words, ...install);
    this.code.replaceChildren(...painted(own || ("only" in code ? code.code : (code.curl ?? ""))));
    if (this.#answer) this.#show(this.#answer);
  }

  /** How many lines the answer gets before it is known: as many as it can have, if those are not too many. */
  #lines() {
    const { characters, call } = this.section;
    if (characters) return Math.min(MOST_LINES, Math.ceil((characters * CHARACTER) / this.result.clientWidth));
    return call?.sent.file || call?.path === "health" ? SHORT : LINES;
  }

  async #run() {
    const { call } = this.section;
    if (!call) return;
    this.result.hidden = false;
    this.result.style.height = `${LINE * this.#lines()}px`;
    this.result.scrollIntoView({ block: "nearest" });
    setFlag(this.result, "aria-busy", true);
    const began = performance.now();
    try {
      const found = await fetched(call);
      this.#answer = { found, seconds: (performance.now() - began) / 1000 };
      this.#show(this.#answer);
    } catch (error) {
      this.#answer = null;
      this.views.element.hidden = true;
      this.told.textContent = "There is no answer.";
      this.result.replaceChildren(make("p", { class: "hu-problem" }, /** @type {Error} */ (error).message));
    }
    setFlag(this.result, "aria-busy", false);
  }

  /** @param {Answer} answer */
  #show({ found, seconds }) {
    const { call, code, draw } = this.section;
    const isFile = typeof found !== "string";
    const isDrawn = draw !== undefined && (isFile || this.#isDrawn);
    this.views.element.hidden = !draw || isFile;
    this.views.show(isDrawn ? "drawn" : "printed");
    const isWhole = "only" in code || this.#language === "curl" || !code[this.#language];
    const { how, shown } = isDrawn
      ? { how: isFile ? "The file has:" : "Drawn from the answer:", shown: draw(isFile ? found : JSON.parse(found)) }
      : printed(/** @type {string} */ (found), isWhole ? null : (call?.part ?? []));
    this.told.textContent = `Answered in ${seconds.toFixed(2)} s. ${how}`;
    this.result.replaceChildren(...shown);
  }
}

/** What the server sends: text, or the bytes of a file. @param {Call} call @returns {Promise<string | ArrayBuffer>} */
async function fetched({ path, sent: { body, query, file } }) {
  const words = query ? `?${new URLSearchParams(/** @type {Record<string, string>} */ (query))}` : "";
  const response = await request(`${path}${words}`, { body });
  return file ? response.arrayBuffer() : response.text();
}
