// The arithmetic behind one number of the model, fetched when the visitor points at it.

import { mouseOrTouch, make } from "../../lib/dom.mjs";
import { LatestRequest } from "../../lib/latest.mjs";
import { counted, exact, fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { dotProduct, result } from "../../widgets/arithmetic.mjs";
import { ask } from "../server.mjs";
import { paragraph } from "../widgets/elements.mjs";

/** @import { Lesson } from "../rung.js" */
/** @import { Strip } from "../widgets/strip.mjs" */

const POINTER_PAUSE = 60; // milliseconds to wait for a pointer that is still moving

export class NumberPanel {
  #request = new LatestRequest();
  /** @type {(stage: string) => void} called with the stage whose number is shown */
  shown = () => {};

  /**
   * @param {Lesson} lesson
   * @param {() => Strip[]} strips of all stages
   * @param {Record<string, string[]>} sources the stages that each stage is computed from
   */
  constructor(lesson, strips, sources) {
    this.lesson = lesson;
    this.strips = strips;
    this.sources = sources;
    const how = mouseOrTouch(
      "Point at any number of a strip, or move with the arrow keys,",
      "Tap any number of a strip",
    );
    this.hint = make("p", { class: "hl-hint" }, `${how} to see what it is made of.`);
    this.body = make("div", { "aria-live": "polite" });
    const close = make("button", { type: "button", class: "hl-close", "aria-label": "Close" }, "×");
    this.element = make("div", { class: "hl-unfold", hidden: true }, close, this.body);
    close.addEventListener("click", () => this.element.classList.remove("hl-pinned"));
  }

  /**
   * Explain number `index` of a stage.
   * @param {string} stage
   * @param {string} name
   * @param {number} index
   */
  async show(stage, name, index) {
    const { lesson } = this;
    const body = { ...lesson.body, stage, index };
    try {
      const found = await this.#request.send((signal) => ask("number", body, signal), POINTER_PAUSE);
      if (!found) return;
      this.#pin();
      this.shown(stage);
      this.body.replaceChildren(...explain(name, index, found));
      for (const strip of this.strips()) {
        const lit = this.sources[stage]?.includes(strip.stage) ? (found.names ? [] : (found.places ?? [index])) : [];
        strip.mark(strip.stage === stage, lit);
      }
    } catch (error) {
      this.body.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** Show the arithmetic behind a number that is in no strip. @param {Node[]} parts */
  open(...parts) {
    this.#pin();
    this.body.replaceChildren(...parts);
    this.clear();
  }

  #pin() {
    this.element.hidden = false;
    this.element.classList.add("hl-pinned");
  }

  /** Remove all marks: the numbers have changed. */
  clear() {
    for (const strip of this.strips()) strip.mark(false, []);
  }
}

/** @param {string} name @param {number} index @param {any} found */
function explain(name, index, found) {
  const title = `${name}, number ${index}`;
  if (found.kind === "dot") return explainDot(title, found);
  if (found.kind === "norm") {
    const { value, mean, deviation, weight, bias, total } = found;
    return [
      paragraph(`${title}: (number − mean) / standard deviation × weight + bias`),
      paragraph(
        `(${fixed(value)} − ${fixed(mean)}) / ${fixed(deviation)} × ${fixed(weight)} + ${fixed(bias)} `,
        result(fixed(total)),
      ),
    ];
  }
  if (found.kind === "sum") {
    return dotProduct({
      title: [`${title}: a sum of two`],
      names: found.names,
      products: found.terms,
      total: found.total,
    });
  }
  if (found.kind === "gelu") {
    return [
      paragraph(`${title}: GELU of the hidden number ${fixed(found.value)} `, result(fixed(found.total))),
      paragraph("A large number passes almost unchanged, and a negative one almost vanishes: see the curve on rung 9."),
    ];
  }
  if (found.kind === "weight") {
    return [paragraph(`${title}: ${fixed(found.total)}, a trained weight of the embedding table.`)];
  }
  if (found.kind === "share") {
    const { logit, largest, exponential, sum, total, n } = found;
    return [
      paragraph(`${name}: the softmax over all ${number(n)} logits`),
      paragraph(
        `exp(${fixed(logit)} − ${fixed(largest)}) = ${exact(exponential)}, divided by the sum ${fixed(sum)} `,
        result(exact(total)),
      ),
    ];
  }
  return [
    paragraph(`${title}: ${fixed(found.total)}. The weights behind it are quantized, so there is no matrix to show.`),
  ];
}

/** @param {string} title @param {any} found */
function explainDot(title, { places, names, left, right, products, n, rest, bias, total }) {
  const shown = products.length < n ? `; the ${products.length} largest are shown` : "";
  const words = names
    ? products.map(
        (/** @type {number} */ _, /** @type {number} */ i) =>
          `${visible(names[i])}: ${number(left[i])} × ${number(right[i])}`,
      )
    : products.map(
        (/** @type {number} */ _, /** @type {number} */ i) => `[${places[i]}] ${number(left[i])} × ${number(right[i])}`,
      );
  const terms = [...products];
  if (rest !== null) {
    words.push(`${n - products.length} others`);
    terms.push(rest);
  }
  if (bias !== null) {
    words.push("bias");
    terms.push(bias);
  }
  const kind = names ? "attention weight × value, token by token" : "input × weight";
  return dotProduct({
    title: [`${title}: a sum of ${counted(n, "product")}, ${kind}${shown}`],
    names: words,
    products: terms,
    total,
  });
}
