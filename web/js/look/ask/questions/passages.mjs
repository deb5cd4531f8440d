// Where does this head fire? Its strongest passages in a long text, what they share, and a map of all heads.

import { TITLES } from "../../../calls/question_titles.mjs";
import { spokenHead } from "../../../lib/heads.mjs";
import { make, svg } from "../../../lib/dom.mjs";
import { counted, exact, fixed, percent, share, thousands, withoutZero } from "../../../lib/numbers.mjs";
import { onResize } from "../../../lib/reactive.mjs";
import { visible } from "../../../lib/words.mjs";
import { openText } from "../../state/open_text.mjs";
import { headMap } from "./head_map.mjs";
import { threadPaths } from "../../stage/threads.mjs";
import { textChoice } from "./long_text.mjs";
import { bar, tabs } from "../../../widgets/controls.mjs";
import { makeTable } from "../../../widgets/table.mjs";

/** @import { HeadPassages, Passage, PassagesAnswer } from "../../../lens.js" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

const MEASURES = { weight: "by attention weight", norm: "by its output" };
const WHAT = { weight: "largest attention weight on any token but the first", norm: "norm of the head’s output" };

/** @type {Question} */
export const passages = {
  key: "passages",
  title: TITLES.passages,
  hook: "The places in a long text where it is strongest, and what they share.",
  explanation:
    "Finds the passages of a text of up to 1 MB on which each head acts most strongly: by its largest attention " +
    "weight on any token but the first, or by the norm of what it adds to the residual stream.",
  caution:
    "Only the text that was read is searched; in a longer one the head may fire elsewhere, and more strongly. " +
    "The strongest passages show a head at its most extreme, not what it usually does. The counts are compared with " +
    "what the head looks at over the whole text, not with how often such tokens occur in it. " +
    "A large weight adds little if the value behind it is small.",
  defaults: { measure: "weight" },
  build: (context) => new Passages(context),
};

/** @implements {BuiltQuestion} */
class Passages {
  /** @param {AskContext} context */
  constructor({ store, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    this.measures = tabs("Strongest", MEASURES, (measure) => choose({ measure }));
    this.source = textChoice(store, () => store.redraw());
    this.sentence = make("p", { class: "hs-answer" });
    this.list = make("ol", { class: "hs-passages" });
    this.rest = make("ol", { class: "hs-passages" });
    onResize(() => drawThreads(this.list), this.list);
    this.shares = make("ul", { class: "hs-shares" });
    this.bars = make("div", {});
    this.map = headMap(store);
    this.controls = [this.measures.element, this.source.element];
    const key = make("p", { class: "hs-hint" }, "A thread leads from the framed word to the word that it looks at.");
    this.picture = make("div", { class: "hs-patching" }, this.list, key);
    this.element = make(
      "div",
      { class: "hs-patching" },
      this.sentence,
      this.rest,
      this.shares,
      this.bars,
      this.map.element,
    );
  }

  measure() {
    return /** @type {Measure} */ (this.choices.measure in MEASURES ? this.choices.measure : "weight");
  }

  /** @returns {Asked} */
  request() {
    this.measures.show(this.measure());
    const { run, model } = this.store.pointer;
    if (!run) return "There is no text yet.";
    const { text } = this.source;
    return text ? { route: "passages", body: { model, text } } : "Reading the texts that come with Headscope.";
  }

  /** @param {PassagesAnswer} answer */
  draw(answer) {
    const by = this.measure();
    const [layer, head] = this.store.open;
    const ofHead = answer.heads[layer]?.[head];
    const name = this.store.openName;
    this.map.show(answer.map);
    const values = answer.heads.map((row) => row.map((each) => each[by].passages[0]?.value ?? 0));
    this.overlay({
      title: `Each head’s ${WHAT[by]}, where it is strongest`,
      values,
      most: Math.max(...values.flat(), 1e-9),
      ramp: "looks",
      short: (value) => withoutZero(fixed(value, value < 9.95 ? 2 : 0)),
      long: exact,
      ends: ["weak", "strong"],
    });
    for (const part of [this.picture, this.rest, this.shares, this.bars]) part.hidden = !ofHead;
    const text = `${counted(answer.n_tokens, "token")} of ${this.source.name}`;
    if (!ofHead) {
      this.conclude("");
      this.sentence.textContent = `Read ${text}. Open a head: means and rollouts have no passages.`;
      return;
    }
    const top = ofHead[by].passages;
    this.sentence.textContent = `Where ${name} fires most strongly in ${text}, by the ${WHAT[by]}:`;
    const open = (/** @type {Passage} */ passage) => this.openPassage(answer, passage);
    const entries = top.map((passage) => passageEntry(passage, answer, open));
    this.list.replaceChildren(...entries.slice(0, MAX_DRAWN));
    this.rest.replaceChildren(...entries.slice(MAX_DRAWN));
    drawThreads(this.list);
    const shared = sharedRows(answer, ofHead, by);
    this.conclude(sharedPlain(spokenHead(this.store.open), shared), `Searched: ${text}.`);
    const rows = shared.map(({ name: pattern, count, n, everywhere }) =>
      make(
        "li",
        {},
        make("b", {}, `${count} of ${n}`),
        `: the looked-at token ${pattern} `,
        make("span", {}, `(${percent(everywhere)} over the whole text)`),
      ),
    );
    this.shares.replaceChildren(...rows);
    this.bars.replaceChildren(histogram(ofHead[by].histogram, answer.bins[by], WHAT[by]));
  }

  /** @param {PassagesAnswer} answer @param {Passage} passage */
  openPassage(answer, { query, key, window }) {
    const { start, tokens } = answer.windows[window];
    openText(this.store, {
      ids: tokens,
      n_prompt: tokens.length,
      locked: [{ query: query - start, key: key - start }],
    });
  }
}

const TOKENS_BEFORE = 12; // tokens shown before the query, and around a key that is further away
const TOKENS_AFTER = 4;
const TOKENS_AROUND_KEY = 3;
const MAX_DRAWN = 5; // passages in the picture; the others are among the numbers
const THREAD = 2.5; // CSS pixels: its width
const LETTERS = 1.02; // of the size of the letters: the height that a thread must not cross
const MIN_PASSAGES = 8; // with fewer, a shared pattern may be due to chance

/**
 * The patterns of model/lens/passages.py in words: each completes "the token it looks at ...".
 * @type {Record<string, string>}
 */
const PATTERNS = {
  itself: "is the query token itself",
  previous_token: "is the previous token",
  same_token: "is an earlier occurrence of the same token",
  after_same_token: "follows an earlier occurrence of the same token",
  same_word: "is in the same word",
  previous_word: "is in the previous word",
  line_start: "begins a line",
  line_break: "is a line break",
  quote: "is a quotation mark",
  capital: "begins with a capital letter",
  punctuation: "is punctuation",
  from_line_start: "is looked at from the beginning of a line",
};

/** @typedef {"weight" | "norm"} Measure */

/**
 * @param {Passage} passage
 * @param {PassagesAnswer} answer
 * @param {(passage: Passage) => void} open
 */
function passageEntry(passage, answer, open) {
  const { start, tokens } = answer.windows[passage.window];
  const [query, key] = [passage.query - start, passage.key - start];
  const last = Math.min(query + TOKENS_AFTER, tokens.length - 1);
  const first = Math.max(query - TOKENS_BEFORE, 0);
  const parts = [];
  const word = (/** @type {number} */ at) => {
    const whole = visible(answer.texts[tokens[at]]).replaceAll("·", " ");
    const text = whole.trimStart();
    const tag = at === query ? "b" : at === key ? "mark" : "span";
    const title = at === query ? "looks from here" : at === key ? "looks at this" : null;
    const css = at === query ? "hs-query" : null;
    return [whole.slice(0, whole.length - text.length), make(tag, { class: css, title, "data-at": at }, text)];
  };
  const span = (/** @type {number} */ from, /** @type {number} */ to) => {
    for (let at = Math.max(from, 0); at <= to; at++) parts.push(...word(at));
  };
  if (key < first) {
    span(key - TOKENS_AROUND_KEY, Math.min(key + TOKENS_AROUND_KEY, first - 1));
    if (key + TOKENS_AROUND_KEY < first - 1)
      parts.push(make("i", {}, ` … ${first - key - TOKENS_AROUND_KEY - 1} tokens … `));
  }
  span(first, last);
  const button = make("button", { type: "button" }, make("span", { class: "hs-mono" }, exact(passage.value)));
  const attributes = { class: "hs-snippet", "data-query": query, "data-key": key };
  button.append(make("span", attributes, ...parts));
  button.title = "Open this passage";
  button.addEventListener("click", () => open(passage));
  return make("li", {}, button);
}

/** Draw the thread of each passage, where its words are now. @param {HTMLElement} list */
function drawThreads(list) {
  for (const snippet of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll(".hs-snippet"))) {
    snippet.querySelector("svg")?.remove();
    const words = /** @type {HTMLElement[]} */ ([...snippet.querySelectorAll("[data-at]")]);
    const placeOf = (/** @type {string | undefined} */ at) => words.findIndex(({ dataset }) => dataset.at === at);
    const [query, key] = [placeOf(snippet.dataset.query), placeOf(snippet.dataset.key)];
    if (query < 0 || key < 0 || !snippet.clientWidth) continue;
    const style = getComputedStyle(snippet);
    const letters = LETTERS * parseFloat(style.fontSize);
    const boxes = words.map(({ offsetLeft, offsetTop, offsetWidth, offsetHeight }) => {
      const top = offsetTop + (offsetHeight - letters) / 2;
      return { left: offsetLeft, right: offsetLeft + offsetWidth, top, bottom: top + letters };
    });
    const room = { width: snippet.clientWidth, gutter: THREAD, street: parseFloat(style.lineHeight) - letters };
    const [d] = threadPaths(boxes, query, [{ head: 0, key, width: THREAD, matters: true }], room);
    snippet.append(svg("svg", { "aria-hidden": "true" }, svg("path", { d, "stroke-width": THREAD })));
  }
}

/**
 * The patterns that many passages share, and how often each holds over the whole text for the most attended token.
 * @param {PassagesAnswer} answer
 * @param {HeadPassages} head
 * @param {Measure} measure
 */
function sharedRows(answer, head, measure) {
  const n = head[measure].passages.length;
  return answer.patterns
    .map((name, i) => ({
      name: PATTERNS[name] ?? name,
      count: head[measure].share[i],
      n,
      everywhere: head.everywhere[i],
    }))
    .filter(({ count }) => count * 4 >= n)
    .sort((a, b) => b.count - a.count);
}

/**
 * The pattern that most distinguishes a head's passages from the rest of the text, in plain words.
 * @param {string} name of the head
 * @param {{ name: string, count: number, n: number, everywhere: number }[]} rows
 */
export function sharedPlain(name, rows) {
  const apart = (/** @type {typeof rows[0]} */ { count, n, everywhere }) => count / n - everywhere;
  const [most] = [...rows].sort((a, b) => apart(b) - apart(a));
  if (!most || apart(most) <= 0)
    return `The strongest passages of ${name} share none of the patterns that are counted here.`;
  const against = `compared with ${share(most.everywhere)} over the whole text`;
  if (most.n < MIN_PASSAGES) {
    if (most.n === 1) return `Only one passage was found where ${name} fires, too few to conclude anything.`;
    const tooFew = `Only ${most.n} passages were found, too few to conclude much`;
    return `${tooFew}: in ${most.count} of them, the token ${name} looks at ${most.name}, ${against}.`;
  }
  const often = `${most.count} of ${most.n} passages, ${against}`;
  return `Where ${name} fires most, the token it looks at ${most.name} (${often}).`;
}

/**
 * A histogram of the queries, as bars and as a table.
 * @param {number[]} counts
 * @param {number[]} edges
 * @param {string} what
 */
function histogram(counts, edges, what) {
  const used = counts.flatMap((count, i) => (count ? [i] : []));
  const [first, last] = [used[0] ?? 0, used.at(-1) ?? 0];
  const most = Math.max(...counts.map(Math.sqrt), 1);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const bars = make("div", { class: "hs-histogram", "aria-hidden": "true" });
  /** @type {[range: string, count: string][]} */
  const rows = [];
  for (let i = first; i <= last; i++) {
    const range = `${fixed(edges[i], 3)} to ${fixed(edges[i + 1], 3)}`;
    const count = counts[i].toLocaleString("en");
    const amount = bar(Math.sqrt(counts[i]) / most);
    amount.title = `${range}: ${count} of ${thousands(total)}`;
    bars.append(amount);
    rows.push([range, count]);
  }
  const ends = make("div", { class: "hs-overlay-ends hs-histogram-ends" }, make("span", {}, fixed(edges[first], 2)));
  ends.append(make("span", {}, fixed(edges[last + 1], 2)));
  const title = make(
    "p",
    { class: "hs-hint" },
    `All tokens by the ${what}; the height of a bar is the square root of its count.`,
  );
  const table = make("details", {}, make("summary", {}, "As a table"), makeTable({ rows }));
  return make("div", {}, title, bars, ends, table);
}
