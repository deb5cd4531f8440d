// Which heads feed this head? Judged by the weights, by cutting paths in this text, and by the effect on its role.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { headEntries, headName, isSamePicture, spokenHead } from "../../../lib/heads.mjs";
import { isClearRole } from "../../../lib/metrics.mjs";
import { fixed, percent, withoutZero } from "../../../lib/numbers.mjs";
import { capitalised } from "../../../lib/words.mjs";
import { apart, distanceField, distanceIn } from "../distance_field.mjs";
import { HeadList } from "../head_list.mjs";
import { headGraph } from "./head_graph.mjs";
import { openHead, textBody, textProblem } from "../subject.mjs";
import { bestRole, ROLES, TrainingTable } from "./feeding_steps.mjs";
import { tabs } from "../../../widgets/controls.mjs";

/** @import { Role } from "./feeding_steps.mjs" */
/** @import { PictureId } from "../../../types.js" */
/** @import { CompositionAnswer, PathsAnswer, RolePathsAnswer } from "../../../lens.js" */
/** @import { HeadRow } from "../head_list.mjs" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

const MIN_DEVIATIONS = 3; // above the same heads rotated at random: the minimum score for an arc
const MAX_ARCS = 8;
const LARGE_SHARE = 0.5; // of the largest effect: the minimum effect for an arc
const CLOSE_MARGIN = 0.1; // of a score: a smaller lead is called "hardly more"
const SLIGHT_EFFECT = 0.02; // of the attention or of a score: a cut with a smaller effect hardly changes anything

const BY = { weights: "weights", cut: "cut in this text", role: "effect on its role" };
export const WAYS = { q: "queries", k: "keys", v: "values" };
const ROUTES = { every: "every path", mlps: "through MLPs", direct: "direct path" };
const HELP = {
  weights:
    "Composition scores, squared (Elhage et al. 2021): how much of what the earlier head can write lies in the " +
    "directions that this head reads. The gain of the norms is folded in, a LayerNorm’s subtraction of the mean is " +
    "not; MLPs in between are not part of the score. Chance is the same two heads, rotated at random against each " +
    "other, which keeps their singular values. Arcs show squared scores more than " +
    `${MIN_DEVIATIONS} standard deviations (SD) above that.`,
  cut:
    "The earlier head’s output is replaced with its mean over the reference set (24 short English passages that come " +
    "with Headscope), but only for this head’s queries, keys or values. Every path: also through the layers in " +
    "between; through MLPs: these are recomputed, and all other heads frozen (Wang et al. 2022); direct path: only " +
    "through the residual stream.",
  role:
    "The same cut on random tokens that are repeated once, with the mean over these tokens. There an induction head " +
    "looks at what came after the same token. If the score falls without an earlier head, this head depends on it.",
};

const NO_PRODUCT =
  "This model normalises each query and key, so no matrix of its weights gives their product. Choose “cut in this " +
  "text” instead.";

/** @type {Question} */
export const feeding = {
  key: "feeding",
  title: TITLES.feeding,
  hook: "Which earlier heads it builds on.",
  explanation: "A head reads what earlier heads wrote into the residual stream. Which heads, and does it matter?",
  caution:
    "A high score by the weights says only that a head could read the other one. Cutting the path shows whether it " +
    "does in a text; if a cut changes little, other heads may compensate.",
  defaults: { by: "weights", way: "k", route: "every", distance: "0" },
  build: (context) => new Feeding(context),
};

/** @implements {BuiltQuestion} */
class Feeding {
  /** @param {AskContext} context */
  constructor({ store, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    this.by = tabs("Judged by", BY, (value) => choose({ by: value }));
    this.ways = tabs("Into its", WAYS, (way) => choose({ way }));
    this.routes = tabs("Which path", ROUTES, (route) => choose({ route }));
    this.apartness = distanceField(store, (distance) => choose({ distance: String(distance) }));
    this.help = make("p", { class: "hs-hint" });
    this.sentence = make("p", { class: "hs-answer" });
    this.list = new HeadList(store, "Earlier heads by how much they feed the open one");
    this.training = new TrainingTable(store);
    this.graph = headGraph("Earlier heads that feed the open one");
    this.key = make("p", { class: "hs-hint" });
    this.picture = make("div", { class: "hs-patching" }, this.graph.element, this.key);
    this.controls = [this.by.element, this.ways.element, this.routes.element, this.apartness.element];
    this.element = make(
      "div",
      { class: "hs-patching" },
      this.sentence,
      this.list.element,
      this.training.element,
      this.help,
    );
  }

  /** The choices; an unknown value counts as the default. */
  chosen() {
    return {
      by: /** @type {keyof typeof BY} */ (this.choices.by in BY ? this.choices.by : "weights"),
      way: /** @type {Way} */ (
        this.choices.way in WAYS && !(this.choices.by === "role" && this.choices.way === "v") ? this.choices.way : "k"
      ),
      route: /** @type {keyof typeof ROUTES} */ (this.choices.route in ROUTES ? this.choices.route : "every"),
    };
  }

  /** @returns {Asked} */
  request() {
    const { by: measure, way, route } = this.chosen();
    this.by.show(measure);
    this.ways.show(way);
    this.routes.show(route);
    this.routes.element.hidden = measure === "weights";
    const valueButton = /** @type {HTMLButtonElement} */ (this.ways.element.lastElementChild);
    valueButton.disabled = measure === "role"; // what a head looks at does not depend on its values
    this.help.textContent = HELP[measure];
    const { model, qk_norm } = this.store.pointer;
    const distance = distanceIn(this.store, this.choices.distance);
    this.apartness.show(distance, measure === "weights" && way !== "v" && !qk_norm);
    const [layer, head] = this.store.open;
    if (!openHead(this.store)) return "Open a head: the question is about a single one, not a mean or a rollout.";
    if (layer === 0) return "Heads of layer 0 read only the embeddings. Open a head of a later layer.";
    if (measure === "weights") {
      if (qk_norm) return NO_PRODUCT;
      return { route: "composition", query: distance ? { model, distance: String(distance) } : { model } };
    }
    const query = { model, layer: String(layer), head: String(head), way };
    if (measure === "role") return { route: "role-paths", query };
    return textProblem(this.store, 2) || { route: "paths", body: { ...textBody(this.store), layer, head } };
  }

  /** @param {any} answer */
  draw(answer) {
    const { by: measure, way, route } = this.chosen();
    const open = this.store.open;
    const role = measure === "role" ? readRole(answer, route) : null;
    const isRotary = this.store.pointer.rotary ?? false;
    const conclusion =
      role ?? (measure === "cut" ? readCuts(answer, way, route) : readComposition(answer, open, way, isRotary));
    const { rows, title, short, long, ramp, ends } = conclusion;
    this.sentence.textContent = conclusion.sentence;
    this.conclude(conclusion.plain);
    this.list.show(conclusion.column, rows);
    this.drawGraph(conclusion, way);
    void this.training.show(role ? { later: open, earlier: rows[0].picture, way } : null);
    const most = Math.max(...rows.map(({ value }) => Math.abs(value)), 1e-9);
    /** @type {(number | null)[][]} */
    const values = Array.from({ length: this.store.pointer.n_layer }, () =>
      Array.from({ length: this.store.pointer.n_head }, () => null),
    );
    for (const { picture, value } of rows) values[picture[0]][picture[1]] = value;
    const valueOf = (/** @type {PictureId} */ [layer, head]) => values[layer][head] ?? 0;
    const arcs = conclusion.arcs.map((from) => ({ from, to: open, part: Math.max(valueOf(from) / most, 0) }));
    this.overlay({ title, values, most, ramp, short, long, ends, arcs });
  }

  /** The strongest earlier heads, with lines into the open one. @param {Conclusion} conclusion @param {Way} way */
  drawGraph({ rows, arcs, column, long }, way) {
    const { open, view } = this.store;
    const shown = rows.slice(0, MAX_ARCS).filter(({ value }) => value > 0);
    const most = Math.max(...shown.map(({ value }) => value), 1e-9);
    const isStrong = (/** @type {PictureId} */ picture) => arcs.some((arc) => isSamePicture(arc, picture));
    this.graph.show({
      heads: shown.map(({ picture, value }) => ({
        picture,
        note: long(value),
        label: `${capitalised(spokenHead(picture))}, ${column}: ${long(value)}`,
        open: () => view.choose(picture),
      })),
      lines: shown.map(({ picture, value }) => ({
        from: picture,
        to: null,
        part: value / most,
        css: isStrong(picture) ? "" : "hs-faint",
      })),
      end: { text: headName(open), note: WAYS[way] },
    });
    this.key.textContent = `Below each head: ${column}. A wider line is a larger number; pale ones are weak.`;
  }
}

/** @typedef {"q" | "k" | "v"} Way */

/**
 * @typedef {object} Conclusion
 * @property {HeadRow[]} rows the most important first
 * @property {PictureId[]} arcs heads to draw an arc from
 * @property {string} sentence
 * @property {string} plain the conclusion in plain words
 * @property {string} column heading of the list
 * @property {string} title of the legend
 * @property {[string, string]} ends
 * @property {(value: number) => string} short
 * @property {(value: number) => string} long
 * @property {"change" | "looks"} ramp
 */

/**
 * @param {number[][]} values `[layer][head]`
 * @param {(value: number) => string} text
 * @returns {HeadRow[]}
 */
function rowsOf(values, text) {
  const rows = headEntries(values).map((entry) => ({ ...entry, text: text(entry.value) }));
  return rows.sort((a, b) => b.value - a.value);
}

/** @param {HeadRow[]} rows @param {(row: HeadRow) => boolean} counts */
const arcsOf = (rows, counts) =>
  rows
    .filter(counts)
    .slice(0, MAX_ARCS)
    .map(({ picture }) => picture);

/**
 * Composition scores, from the weights alone.
 * @param {Pick<CompositionAnswer, "q" | "k" | "v" | "deviations" | "chance" | "distance">} answer
 * @param {PictureId} open
 * @param {Way} way
 * @param {boolean} [isRotary] whether the model's positions are rotary
 * @returns {Conclusion}
 */
export function readComposition(answer, [layer, head], way, isRotary = false) {
  const { chance, deviations, distance } = answer;
  const place = isRotary && way !== "v" ? `, ${apart(distance)}` : "";
  const above = answer[way][layer][head].map((row) => row.map((score) => score - chance));
  const score = (/** @type {number} */ value) => fixed(value + chance, 3);
  const deviation = (/** @type {PictureId} */ [earlier, other]) => deviations[way][layer][head][earlier][other];
  const rows = rowsOf(above, score).map((row) => ({
    ...row,
    text: `${row.text} (${fixed(deviation(row.picture), 1)} SD)`,
  }));
  const [first, second] = rows;
  const margin = second ? 1 - (second.value + chance) / (first.value + chance) : 0;
  const isClose = second && margin < CLOSE_MARGIN;
  const rival = isClose ? `, but hardly more than ${spokenHead(second.picture)}` : "";
  const runnerUp = second ? `, ${percent(margin)} above ${spokenHead(second.picture)} with ${score(second.value)}` : "";
  const here = spokenHead([layer, head]);
  const isWeak = deviation(first.picture) < MIN_DEVIATIONS;
  const by = fixed(Math.abs(deviation(first.picture)), 1);
  const side = deviation(first.picture) < 0 ? "below" : "above";
  return {
    rows,
    arcs: arcsOf(rows, ({ picture }) => deviation(picture) > MIN_DEVIATIONS),
    sentence:
      `By the weights, the ${WAYS[way]} of ${here} read ${spokenHead(first.picture)} most${place}: ` +
      `${score(first.value)}${runnerUp}. That is ${by} standard deviations ${side} the same two heads rotated at ` +
      "random, whose score is " +
      `${fixed(chance, 3)} on average${isWeak ? ", which is not clear" : ""}.`,
    plain: isWeak
      ? `By its weights, ${here} reads no earlier head clearly.`
      : `By its weights, ${here} could read ${spokenHead(first.picture)} most${rival}. ` +
        "Cutting that path shows whether it does.",
    column: `how much of it the ${WAYS[way]} of ${here} can read (by chance: ${fixed(chance, 3)})`,
    title: `How much of each head its ${WAYS[way]} can read (by chance: ${fixed(chance, 3)})`,
    ends: ["less than by chance", "more than by chance"],
    short: (value) => withoutZero(score(value)),
    long: score,
    ramp: "change",
  };
}

/**
 * How much changes in this text when a path is cut.
 * @param {PathsAnswer} answer
 * @param {Way} way
 * @param {keyof typeof ROUTES} route
 * @returns {Conclusion}
 */
function readCuts(answer, way, route) {
  const moved = way === "v" ? "of its output" : "of its attention to other tokens";
  const rows = rowsOf(answer[route][way], (value) => percent(value, 1));
  const [first] = rows;
  const here = spokenHead([answer.layer, answer.head]);
  return {
    rows,
    arcs: arcsOf(rows, ({ value }) => value > 0.001 && value >= LARGE_SHARE * first.value),
    sentence:
      `Cutting the path from ${spokenHead(first.picture)} into the ${WAYS[way]} of ${here} ` +
      `${way === "v" ? "changes" : "moves"} ${percent(first.value, 1)} ${moved}.`,
    plain:
      first.value < SLIGHT_EFFECT
        ? `In this text, the ${WAYS[way]} of ${here} hardly change if any one earlier head is removed.`
        : `In this text, the ${WAYS[way]} of ${here} depend most on ${spokenHead(first.picture)}.`,
    column: way === "v" ? "change of the output when cut" : "attention that moves when cut",
    title: `Effect of cutting each head’s path into the ${WAYS[way]} of ${here}`,
    ends: ["nothing changes", "most changes"],
    short: (value) => (100 * value).toFixed(value < 0.0995 ? 1 : 0),
    long: (value) => percent(value, 1),
    ramp: "looks",
  };
}

/**
 * How much a head's score for its role falls when a path is cut.
 * @param {RolePathsAnswer} answer
 * @param {keyof typeof ROUTES} route
 * @returns {Conclusion & { role: Role }}
 */
export function readRole(answer, route) {
  const role = bestRole(answer);
  const plain = answer.plain[role];
  const drops = answer[route][role].map((row) => row.map((score) => plain - score));
  const left = (/** @type {number} */ drop) => fixed(plain - drop, 3);
  const rows = rowsOf(drops, (drop) => `${fixed(plain, 3)} → ${left(drop)}`);
  const [first] = rows;
  const here = spokenHead([answer.layer, answer.head]);
  const isClear = isClearRole(plain, answer.uniform);
  const slight = SLIGHT_EFFECT * plain;
  const start = isClear
    ? `On random tokens that are repeated, the ${ROLES[role]} score of ${here} is ${fixed(plain, 3)}`
    : `${capitalised(here)} has no clear role on random tokens; its highest score is ${fixed(plain, 3)}, ` +
      `for ${ROLES[role]}`;
  return {
    rows,
    arcs: isClear ? arcsOf(rows, ({ value }) => value > slight && value >= LARGE_SHARE * first.value) : [],
    sentence:
      `${start} (uniform attention: ${fixed(answer.uniform, 3)}). With the path from ${spokenHead(first.picture)} ` +
      `into its ${WAYS[/** @type {Way} */ (answer.way)]} cut, it is ${left(first.value)}.`,
    plain: !isClear
      ? `On random tokens, ${here} has no clear role to lose.`
      : first.value < slight
        ? `${capitalised(here)} keeps its role (${ROLES[role]}) if any one earlier head is removed.`
        : `${capitalised(here)} needs ${spokenHead(first.picture)} for its role: without it, ` +
          `its ${ROLES[role]} score falls from ${fixed(plain, 2)} to ${left(first.value)}.`,
    column: `${ROLES[role]} score before and after the cut`,
    title: `How much the ${ROLES[role]} score of ${here} falls when each head’s path into it is cut`,
    ends: ["rises when cut", "falls when cut"],
    short: (value) => withoutZero(fixed(value, 2)),
    long: (value) => fixed(value, 3),
    ramp: "change",
    role,
  };
}
