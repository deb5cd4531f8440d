// The main path of a rung: steps to read, and beside them one figure that shows what the step at hand is about.

import { make } from "../../lib/dom.mjs";
import { smallButton } from "../../widgets/controls.mjs";
import { written } from "./content.mjs";
import { REVEAL } from "./elements.mjs";

/** @import { HeatTable } from "../../widgets/heat_table.mjs" */
/** @import { Content } from "../rung.js" */
/** @import { Parts } from "./content.mjs" */

/**
 * Where the number that is followed is at a step: a cell of a table, whose arithmetic is then shown, or any element; a
 * function finds one that may be drawn again.
 * @typedef {object} Stop
 * @property {[table: HeatTable, row: number, column: number] | Element | (() => Element) | null} at
 * @property {string} words
 * @property {string} [value] the number there, unless it is the text of the element
 */

const GAP = 8; // pixels around what is scrolled to
const READING_LINE = 0.52; // of the height of the window: the last step that begins above it is being read

export class Steps {
  #now = 0;
  /** @type {Element | null} */
  #marked = null;
  #left = { scroll: 0, top: 0 };
  /** Where the whole figure was opened. @type {{ step: number, top: number } | null} */
  #opened = null;

  /**
   * @param {Content} content
   * @param {Parts} parts
   * @param {object} rest
   * @param {Node} [rest.explanation] explains a number of the figure
   * @param {(title: string) => Node[]} rest.after what follows the text of a step
   * @param {() => Stop[]} rest.stops empty if there are no numbers yet
   * @param {Record<string, any>} rest.kept whether the whole figure is shown
   */
  constructor({ steps, figure }, parts, { explanation, after, stops, kept }) {
    this.content = steps;
    this.parts = parts;
    this.stops = stops;
    this.explanation = explanation instanceof Element ? explanation : null;
    this.sections = steps.map(({ title, text }) =>
      make("section", { class: "hl-step" }, make("h3", {}, title), ...written(text, parts), ...after(title)),
    );
    this.caption = make("p", { class: "hl-caption", role: "status" });
    this.shown = make("div", {}, ...written(figure, parts));
    this.kept = kept;
    this.whole = smallButton("Whole figure", () => (kept.whole ? this.#closeWhole() : this.#openWhole()));
    const last = explanation ? [explanation] : [];
    const said = make("div", { class: "hl-said" }, this.caption, this.whole);
    this.figure = make("div", { class: "hl-sticky hl-picture" }, this.shown, said, ...last);
    this.#showWhole(Boolean(kept.whole));
    this.figure.addEventListener(REVEAL, ({ target }) => this.#reveal(/** @type {Element} */ (target)));
    /** The parts that some step shows: only these are ever hidden. */
    this.names = [...new Set(steps.flatMap(({ show }) => show))];
    this.sections.forEach((section, i) => section.addEventListener("focusin", () => this.#go(i)));
    // A section counts from where it begins, so that a jump over several steps skips none.
    const above = `100000px 0px ${Math.round(100 * (READING_LINE - 1))}%`;
    this.reader = new IntersectionObserver(() => this.#hasScrolled() && this.#go(stepAt(this.sections)), {
      rootMargin: above,
    });
    for (const section of this.sections) this.reader.observe(section);
    this.grower = new ResizeObserver(() => this.content[this.#now].about && this.#scrollTo(this.#subject()));
    this.grower.observe(this.shown); // a training draws longer arrows
    this.#left = this.#place();
    this.#show();
  }

  /** @param {boolean} isWhole */
  #showWhole(isWhole) {
    this.kept.whole = isWhole;
    this.figure.classList.toggle("hl-whole", isWhole);
    this.whole.setAttribute("aria-pressed", String(isWhole));
  }

  /** Bring what the step is about into view: the whole figure begins above the first step. */
  #openWhole() {
    this.#opened = { step: this.#now, top: this.#place().top };
    this.#showWhole(true);
    this.#subject().scrollIntoView({ block: "center", behavior: "instant" });
  }

  /** Go back to where the whole figure was opened. */
  #closeWhole() {
    const { step, top } = this.#opened ?? { step: this.#now, top: this.#place().top };
    this.#opened = null;
    this.#now = step;
    this.#showWhole(false);
    this.#show();
    scrollBy({ top: this.#place().top - top, behavior: "instant" });
    this.#left = this.#place();
  }

  /** What the step at hand is about. */
  #subject() {
    const { about, show } = this.content[this.#now];
    const [part] = [this.parts[about ?? show[0]]].flat();
    return about === undefined && this.#marked ? this.#marked : /** @type {Element} */ (part);
  }

  /** Go to the first step that shows an element of the figure. @param {Element} element */
  #reveal(element) {
    const holds = (/** @type {string} */ name) => [this.parts[name]].flat().some((node) => node.contains(element));
    const step = this.content.findIndex(({ show }) => show.some(holds));
    if (step < 0) return;
    this.sections[step].scrollIntoView({ block: "center" });
    this.#go(step);
  }

  /** Where the step at hand is. */
  #place() {
    return { scroll: scrollY, top: this.sections[this.#now].getBoundingClientRect().top };
  }

  /**
   * Whether the reader has scrolled since the step was reached. What a click adds above moves the step in the window or
   * the page under it, but not both by the same way.
   */
  #hasScrolled() {
    const { scroll, top } = this.#place();
    return Math.min(Math.abs(scroll - this.#left.scroll), Math.abs(top - this.#left.top)) > 1;
  }

  /** @param {number} step */
  #go(step) {
    const isNew = step !== this.#now;
    this.#now = step;
    this.#left = this.#place();
    if (!isNew) return;
    this.figure.scrollTop = 0;
    this.#show();
  }

  /** The numbers of the rung have changed. */
  update() {
    this.#show();
  }

  #show() {
    const { show, follow, about } = this.content[this.#now];
    this.sections.forEach((section, i) => section.classList.toggle("hl-reading", i === this.#now));
    for (const name of this.names) {
      for (const node of [this.parts[name]].flat()) {
        if (node instanceof Element) node.classList.toggle("hl-off", !show.includes(name));
      }
    }
    this.explanation?.classList.toggle("hl-off", follow === undefined);
    this.#follow(follow === undefined ? undefined : this.stops().at(follow));
    if (about !== undefined || this.#marked) this.#scrollTo(this.#subject());
  }

  /** @param {Stop | undefined} stop */
  #follow(stop) {
    this.#marked?.classList.remove("hl-stop");
    this.caption.textContent = stop?.words ?? "";
    this.#marked = stop ? elementOf(stop.at) : null;
    this.#marked?.classList.add("hl-stop");
    if (Array.isArray(stop?.at) && !this.kept.whole) stop.at[0].point?.(stop.at[1], stop.at[2]);
  }

  /**
   * Scroll the figure to the end of a part, or of a number's table, as far as the part's beginning or the number stays
   * in view.
   * @param {Element} subject
   */
  #scrollTo(subject) {
    const [box, start, whole] = [this.figure, subject, subject.closest(".hl-figure") ?? subject].map((each) =>
      each.getBoundingClientRect(),
    );
    const panel = this.explanation?.getBoundingClientRect();
    const end = panel?.height ? Math.min(panel.top, box.bottom) : box.bottom; // it covers what is behind it
    const hidden = whole.bottom - end;
    if (hidden > 0) this.figure.scrollTop += Math.min(hidden + GAP, start.top - box.top - GAP);
  }

  /** Another rung is opened. */
  leave() {
    this.reader.disconnect();
    this.grower.disconnect();
  }
}

/** The step that is being read. @param {Element[]} sections */
export function stepAt(sections) {
  const line = READING_LINE * innerHeight;
  return Math.max(0, sections.filter((section) => section.getBoundingClientRect().top < line).length - 1);
}

/** @param {Stop["at"]} at */
const elementOf = (at) => (Array.isArray(at) ? at[0].cellAt(at[1], at[2]) : typeof at === "function" ? at() : at);

/**
 * The query and the key of the largest weight between two different words.
 * @param {number[][]} weights
 */
export function looksMost(weights) {
  const others = weights.flatMap((row, r) => row.flatMap((weight, c) => (r === c ? [] : [{ place: [r, c], weight }])));
  const first = { place: [0, 0], weight: 0 }; // for a single word
  return others.reduce((most, one) => (one.weight > most.weight ? one : most), first).place;
}
