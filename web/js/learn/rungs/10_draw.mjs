// Part of rung 10: the next token, its logits and probabilities; draw it, append it, and read again; and the loops that
// do so when a text is written.

import { make } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { counted, exact, fixed, number } from "../../lib/numbers.mjs";
import { drawnHow } from "../../lib/sampling.mjs";
import { visible } from "../../lib/words.mjs";
import { formula, row, sub, sum } from "../../widgets/formula.mjs";
import { ask } from "../server.mjs";
import { code, controls, heading, paragraph, slider } from "../widgets/elements.mjs";
import { openLines } from "../widgets/source_lines.mjs";
import { setPart, smallButton } from "../../widgets/controls.mjs";
import { fillRows, makeRow, makeTable } from "../../widgets/table.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Data } from "../data.js" */
/** @typedef {{ p: number, drawn_with: number, n: number }} Counted */
/** @typedef {{ id: number, text: string, logit: number, p: number } & Partial<Counted>} Next */

const MANY_DRAWS = 1000;
const SLIDER_PAUSE = 90; // milliseconds to wait for a slider that is still moving

export class Draw {
  #request = new LatestRequest();
  /** @type {number | null} the token that follows in the sentence */
  #follower = null;

  /**
   * @param {Lesson} lesson
   * @param {(stage: string, name: string, id: number) => void} explain shows the arithmetic behind a number
   */
  constructor(lesson, explain) {
    this.lesson = lesson;
    this.explain = explain;
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
    const button = (name, onclick) => smallButton(name, onclick);
    const again = (/** @type {number} */ draws) => this.#draw({ draws, seed: this.settings.seed + 1 });
    this.append = button("Append it and read again", () => this.#append());
    const buttons = controls(
      button("Draw", () => again(1)),
      button(`Draw ${number(MANY_DRAWS)} times`, () => again(MANY_DRAWS)),
      this.append,
    );
    this.how = make("p", { class: "hl-count" });
    this.said = make("p", { class: "hl-count", role: "status" });
    this.follows = make("p", { class: "hl-count", role: "status" });
    const titles = ["token", "logit", "probability", "drawn with", "drawn", ""];
    this.rows = makeTable({ titles }, { class: "hl-next-token", "aria-label": "The next token" });
    this.title = heading("Draw the next token");
    const lines = make(
      "details",
      { class: "hl-source" },
      make("summary", {}, "The code that draws"),
      openLines("draw"),
    );
    this.table = make("div", { class: "hl-scroll hl-unchanged" }, this.rows);
    this.element = make(
      "div",
      {},
      make(
        "div",
        {},
        heading("From the last layer to the next token"),
        paragraph("After one more layer norm, the dot product with a token’s vector is that token’s logit. Click one."),
        this.table,
        this.follows,
      ),
      make(
        "div",
        {},
        this.title,
        paragraph(
          "Temperature divides the logits, top-k keeps the k most likely tokens, top-p the fewest that together reach ",
          "p, and a random number picks one. Then the text is read again with that token at its end: writing is no ",
          "more than this.",
        ),
        controls(...sliders.map(({ element }) => element)),
        buttons,
        this.said,
        this.how,
        lines,
      ),
    );
  }

  /** Show the next token after the one that is followed now, and draw it. @param {Data["whole-model"]["end"]} end */
  update({ next, follower, surprise }) {
    this.#follower = follower;
    const found = next.find(({ id }) => id === follower);
    this.follows.hidden = !found;
    this.follows.textContent = found
      ? `← In your sentence “${visible(found.text)}” follows: −ln ${exact(found.p)} = ${fixed(surprise ?? 0)} nats.`
      : "";
    fillRows(
      this.rows,
      next.map((token) => this.#line(token, ["", "", ""], false)),
    );
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
    /** @param {Counted} token @param {boolean} isDrawn @returns {[string, string, Element]} */
    const drawing = ({ drawn_with: drawnWith, n }, isDrawn) => {
      const histogram = make("i", { title: `${number(n)} of ${number(draws)} draws` });
      setPart(histogram, n / draws / most);
      const amount = make("span", { class: "hl-amount" }, ...(draws > 1 ? [histogram] : []));
      setPart(amount, drawnWith / most);
      return [exact(drawnWith), draws > 1 ? number(n) : isDrawn ? "✓" : "", amount];
    };
    const isOther = tokens.every((/** @type {{ id: number }} */ token) => token.id !== drawn.id);
    fillRows(this.rows, [
      ...tokens.map((/** @type {Next & Counted} */ token) =>
        this.#line(token, drawing(token, token.id === drawn.id), token.id === drawn.id),
      ),
      this.#row(["all others", "", exact(others.p), ...drawing(others, isOther)], isOther),
    ]);
    const { temperature, top_k: k, top_p: p } = this.settings;
    const isChanged = temperature !== 1 || k > 0 || p < 1;
    this.table.classList.toggle("hl-unchanged", !isChanged);
    const how = isChanged ? `${drawnHow(this.settings)} ` : "";
    this.how.textContent = `${how}${counted(possible, "token")} can be drawn.`;
    const which = draws > 1 ? `The first of ${number(draws)} draws` : "Drawn";
    const used = isChanged ? `, drawn with ${exact(drawn.drawn_with)}` : "";
    const first = `${which} (seed ${seed}): “${visible(drawn.text)}”`;
    this.said.textContent = `${first}, probability ${exact(drawn.p)}${used}.`;
  }

  /** @param {Next} token @param {[string, string, Node | string]} drawing @param {boolean} isDrawn */
  #line({ id, text, logit, p }, drawing, isDrawn) {
    /** @param {string} stage @param {string} value */
    const button = (stage, value) => {
      const title = `${stage === "logit" ? "Logit" : "Probability"} of “${visible(text)}”`;
      return make("button", { type: "button", onclick: () => this.explain(stage, title, id), title }, value);
    };
    const name = `${visible(text)}${id === this.#follower ? " ←" : ""}`;
    return this.#row([name, button("logit", fixed(logit)), button("probability", exact(p)), ...drawing], isDrawn);
  }

  /** @param {(Node | string)[]} cells the first is the title @param {boolean} isDrawn */
  #row(cells, isDrawn) {
    return makeRow(cells, { class: isDrawn ? "hl-follows" : "" });
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
