// Part of rung 10: draw the next token, append it, and read again; and the loops that do so when a text is written.

import { make } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { counted, exact, number } from "../../lib/numbers.mjs";
import { drawnHow } from "../../lib/sampling.mjs";
import { visible } from "../../lib/words.mjs";
import { formula, row, sub, sum } from "../../widgets/formula.mjs";
import { ask } from "../server.mjs";
import { code, controls, heading, paragraph, slider } from "../widgets/elements.mjs";
import { openLines } from "../widgets/source_lines.mjs";

/** @import { Lesson } from "../rung.js" */
/** @typedef {{ p: number, drawn_with: number, n: number }} Counted */

const MANY_DRAWS = 1000;
const SLIDER_PAUSE = 90; // milliseconds to wait for a slider that is still moving

export class Draw {
  #request = new LatestRequest();

  /** @param {Lesson} lesson */
  constructor(lesson) {
    this.lesson = lesson;
    // Kept while another rung is open, and when the drawn token has been appended.
    this.settings = lesson.kept.draw;
    /** @param {string} name @param {string} label @param {{ min: number, max: number, step: number }} range */
    const setting = (name, label, range) =>
      slider({ ...range, label, value: this.settings[name], change: (value) => this.#draw({ [name]: value }) });
    const sliders = [
      setting("temperature", "temperature", { min: 0, max: 2, step: 0.1 }),
      setting("top_k", "top-k (0 = all)", { min: 0, max: 20, step: 1 }),
      setting("top_p", "top-p", { min: 0.05, max: 1, step: 0.05 }),
    ];
    /** @param {string} name @param {() => void} onclick */
    const button = (name, onclick) => make("button", { type: "button", class: "hs-small", onclick }, name);
    const again = (/** @type {number} */ draws) => this.#draw({ draws, seed: this.settings.seed + 1 });
    this.append = button("Append it and read again", () => this.#append());
    const buttons = controls(
      button("Draw", () => again(1)),
      button(`Draw ${number(MANY_DRAWS)} times`, () => again(MANY_DRAWS)),
      this.append,
    );
    this.how = make("p", { class: "hl-count" });
    this.said = make("p", { class: "hl-count", role: "status" });
    this.body = make("tbody");
    const titles = ["token", "probability", "drawn with", "drawn", ""].map((name) =>
      make("th", { scope: "col" }, name),
    );
    const table = make("table", { class: "hl-next hl-draws", "aria-label": "Drawing the next token" });
    table.append(make("thead", {}, make("tr", {}, ...titles)), this.body);
    this.title = heading("4. Draw the next token");
    const lines = make(
      "details",
      { class: "hl-source" },
      make("summary", {}, "The code that draws"),
      openLines("draw"),
    );
    this.elements = [
      this.title,
      paragraph(
        "Temperature divides the logits, top-k and top-p leave out unlikely tokens, and a random number picks one. ",
        "Then the text is read again with that token at its end: writing is no more than this.",
      ),
      controls(...sliders.map(({ element }) => element)),
      buttons,
      this.said,
      make("div", { class: "hl-scroll" }, table),
      this.how,
      lines,
    ];
  }

  /** Draw after the token that is followed now. */
  update() {
    if (this.lesson.kept.isAppended) this.title.scrollIntoView({ block: "start" });
    this.lesson.kept.isAppended = false;
    void this.#draw({});
  }

  /** @param {Record<string, number>} changes */
  async #draw(changes) {
    Object.assign(this.settings, changes);
    const body = { ...this.lesson.body, ...this.settings };
    try {
      const pause = "seed" in changes ? 0 : SLIDER_PAUSE;
      const found = await this.#request.send((signal) => ask("draw", body, signal), pause);
      if (found) this.#show(found);
    } catch (error) {
      this.said.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {any} found */
  #show({ drawn, continued, draws, seed, n_possible: possible, tokens, others }) {
    this.continued = continued;
    this.append.disabled = continued === null;
    this.append.title = continued === null ? "Only after the last token of the sentence" : "";
    const most = Math.max(others.drawn_with, ...tokens.map((/** @type {Counted} */ token) => token.drawn_with));
    /** @param {string} name @param {Counted} counted @param {boolean} isDrawn */
    const line = (name, { p, drawn_with: drawnWith, n }, isDrawn) => {
      const histogram = make("i", { title: `${number(n)} of ${number(draws)} draws` });
      histogram.style.setProperty("--part", String(n / draws / most));
      const amount = make("span", { class: "hl-amount" }, ...(draws > 1 ? [histogram] : []));
      amount.style.setProperty("--part", String(drawnWith / most));
      const numbers = [exact(p), exact(drawnWith)].map((text) => make("td", {}, text));
      const times = draws > 1 ? number(n) : isDrawn ? "✓" : "";
      const cells = [make("th", { scope: "row" }, name), ...numbers, make("td", {}, times), make("td", {}, amount)];
      return make("tr", { class: isDrawn ? "hl-follows" : "" }, ...cells);
    };
    const rows = tokens.map((/** @type {Counted & { id: number, text: string }} */ token) =>
      line(visible(token.text), token, token.id === drawn.id),
    );
    const isOther = tokens.every((/** @type {{ id: number }} */ token) => token.id !== drawn.id);
    this.body.replaceChildren(...rows, line("all others", others, isOther));
    this.how.textContent = `${drawnHow(this.settings)} ${counted(possible, "token")} can be drawn.`;
    const which = draws > 1 ? `The first of ${number(draws)} draws` : "Drawn";
    this.said.textContent =
      `${which} (seed ${seed}): “${visible(drawn.text)}”, probability ${exact(drawn.p)}, drawn with ` +
      `${exact(drawn.drawn_with)}.`;
  }

  #append() {
    this.lesson.kept.isAppended = true;
    Object.assign(this.settings, { seed: this.settings.seed + 1, draws: 1 });
    if (this.continued) this.lesson.read(this.continued);
  }
}

// The compiled loops that compute attention when a text is written on a CPU.

export function compiledLoops() {
  const scores = formula(
    [sub("s", "j"), "=", sum("d"), sub("q", "d"), sub("k", row("j", "d"))],
    [sub("w", "j"), "=", "softmax", "(", "scale", "·", "s", ")", sub("", "j")],
    [sub("z", "d"), "=", sum("j"), sub("w", "j"), sub("v", row("j", "d"))],
  );
  const words = make("div", {});
  words.append(
    scores,
    paragraph(
      "For one new token and one head: the first loop takes the dot products of the query with all keys so far, ",
      code("softmax"),
      " turns the scores into weights in place, and the second loop adds up the weighted values. ",
      code("multiply"),
      " is the dot product, for as many columns at once as the processor has lanes. There is no mask, because the ",
      "newest token has no future.",
    ),
    paragraph(
      "PyTorch computes the same with a call for every small operation, and in a small model the calls take longer ",
      "than the arithmetic. Compiled as a whole, the forward pass is several times as fast; the factor depends on ",
      "model and machine. docs/performance.md has the figures, and ",
      code("python -m bench.decode"),
      " measures them again.",
    ),
  );
  const details = make("details", { class: "hl-remarks" });
  details.append(
    make("summary", {}, "Attention while writing: compiled loops"),
    paragraph(
      "The classes in these lessons are written to be read. On a CPU, texts are written by the same forward pass as ",
      "plain loops, which Numba compiles to machine code. This is its attention, from the files that run here:",
    ),
    make("div", { class: "hl-loops" }, words, openLines("compiled")),
  );
  return details;
}
