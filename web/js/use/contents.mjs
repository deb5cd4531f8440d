// The contents of the page, in which the section that is read is marked.

import { make } from "../lib/dom.mjs";

/** @import { RouteList } from "./routes.mjs" */
/** @import { Section } from "./sections.mjs" */

const BELOW_THE_BAR = "-160px 0px 0px 0px"; // a section is read as long as some of it stands below this line

export class Contents {
  /** @type {HTMLElement[]} */
  #sections = [];
  /** @type {Set<Element>} */
  #inView = new Set();
  #chosen = ""; // the section that was chosen here last

  /** @param {RouteList} routes */
  constructor(routes) {
    this.routes = routes;
    this.element = make("nav", { class: "hu-contents", "aria-label": "Contents" });
    this.observer = new IntersectionObserver((changes) => this.#see(changes), { rootMargin: BELOW_THE_BAR });
  }

  /** @param {Section[]} sections @param {HTMLElement[]} elements of all that can be read, from the top down */
  show(sections, elements) {
    const link = (/** @type {string} */ id, /** @type {string} */ name, open = () => {}) =>
      make("a", { href: `#${id}`, onclick: () => (open(), this.#choose(id)) }, name);
    const examples = sections.map(({ id, name }) => link(`use/${id}`, name));
    // Opened before the browser scrolls to it, so that there is enough below it to bring it to the top.
    const all = link(this.routes.element.id, "All routes and limits", () => (this.routes.element.open = true));
    const endpoints = make("a", { href: "?view=api" }, "Gradio’s endpoints");
    this.element.replaceChildren(make("h3", {}, "Examples"), ...examples, make("h3", {}, "Reference"), all, endpoints);
    this.observer.disconnect();
    this.#inView.clear();
    this.#sections = elements;
    for (const element of elements) this.observer.observe(element);
  }

  /** @param {string} id */
  #choose(id) {
    this.#chosen = id;
    this.#mark();
  }

  /** @param {IntersectionObserverEntry[]} changes */
  #see(changes) {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting) this.#inView.add(target);
      else this.#inView.delete(target);
    }
    this.#mark();
  }

  /** The uppermost section is read; at the end of the page, where not all can be scrolled to the top, the chosen. */
  #mark() {
    const seen = this.#sections.filter((section) => this.#inView.has(section));
    const { scrollTop, clientHeight, scrollHeight } = document.documentElement;
    const isEnd = scrollTop + clientHeight > scrollHeight - 2;
    const read = (isEnd && seen.find(({ id }) => id === this.#chosen)) || seen[0];
    for (const link of this.element.querySelectorAll("a")) {
      if (read && link.hash === `#${read.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
}
