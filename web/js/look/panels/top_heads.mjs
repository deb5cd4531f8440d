// Which heads to look at first: heads with a clear role, and the top heads by the chosen metric.

import { make, steadily } from "../../lib/dom.mjs";
import { isSamePicture } from "../../lib/heads.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { measured } from "../../lib/numbers.mjs";
import { capitalised, pictureName, spokenPicture } from "../../lib/words.mjs";
import { CLEAR, clearRole, copies, COPYING, copyingNumbers, roleOf } from "../roles/head_roles.mjs";
import {
  isAboveChance,
  isClear,
  isTooShort,
  measuredPatterns,
  patternDoes,
  patternName,
  patternOf,
  patternsOf,
} from "../roles/text_patterns.mjs";
import { chipButton } from "../../widgets/controls.mjs";
import { whenever } from "../../lib/reactive.mjs";

/** @import { MetricName, PictureId } from "../../types.js" */
/** @import { Pattern } from "../roles/text_patterns.mjs" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const MAX_CHIPS = 5; // heads that are offered
const MIN_SUGGESTIONS = 3; // if a text has fewer, heads that copy are added

/** For entropy the most focused heads are the interesting ones. @param {MetricName} metric */
const isLowestFirst = (metric) => metric === "entropy";

/** @param {string} label @param {HTMLElement[]} chips */
const labelled = (label, chips) => (chips.length ? [make("span", {}, label), ...chips] : []);

export class TopHeads {
  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.suggested = make("p", {
      class: "hs-chips",
      "aria-label": "Heads with a clear role",
      role: "group",
    });
    this.title = make("span", {});
    this.list = make("span", { class: "hs-chip-list" });
    this.top = make("p", { class: "hs-chips", role: "group", "aria-label": "Top heads" }, this.title, this.list);
    const suggest = steadily(this.suggested, () => this.showSuggested());
    whenever(() => [...this.drawn(), store.roles], suggest);
    whenever(
      () => this.drawn(),
      steadily(this.list, () => this.showTop()),
    );
    this.element = make("div", { class: "hs-top-heads" }, this.suggested, this.top);
  }

  /** @param {PictureId} picture @param {string} text @param {string} explanation */
  chip(picture, text, explanation) {
    const onclick = () => this.store.choosePicture(picture);
    const button = chipButton(text, onclick);
    button.title = explanation;
    if (isSamePicture(picture, this.store.open)) button.setAttribute("aria-current", "true");
    return button;
  }

  showSuggested() {
    const suggestions = suggestionsOf(this.store);
    const copying = copyingHeads(this.store).slice(0, Math.max(MIN_SUGGESTIONS - suggestions.length, 0));
    const inText = suggestions.map(({ head, pattern }) => {
      const name = pictureName(head, this.store.pointer);
      const [score, even] = [pattern.mean.toFixed(2), pattern.even.toFixed(2)];
      const clear = isClear(pattern);
      const text = clear ? capitalised(patternName(pattern)) : `Closest to ${patternName(pattern)}`;
      const explanation =
        `${name} ${patternDoes(pattern)}: ${score} of its attention on average in this text, where uniform ` +
        `attention would give ${even}.${clear ? "" : ` A clear role scores at least ${CLEAR}.`}`;
      return this.chip(head, `${text} ${name} ${score}`, explanation);
    });
    const byWeights = copying.map(({ head, role }) => {
      const name = pictureName(head, this.store.pointer);
      const text = `${capitalised(COPYING.name)} ${name} ${role.scores.copying.toFixed(2)}`;
      return this.chip(head, text, `${name} ${COPYING.does}: ${copyingNumbers(role)}.`);
    });
    this.suggested.replaceChildren(...labelled("In this text", inText), ...labelled("By their weights", byWeights));
    this.suggested.hidden = !this.suggested.children.length;
  }

  showTop() {
    const { metric } = this.store.view.options;
    const { name, index, unit } = METRICS[metric];
    const heads = this.store.data.heads.map((head) => ({ head, value: this.store.data.metric(head, index) }));
    heads.sort((a, b) => (isLowestFirst(metric) ? a.value - b.value : b.value - a.value));
    this.title.textContent = `${isLowestFirst(metric) ? "Lowest" : "Highest"} ${unit ? name : `weight ${name}`}`;
    const chips = heads.slice(0, MAX_CHIPS).map(({ head, value }) => {
      const headName = pictureName(head, this.store.pointer);
      return this.chip(
        head,
        `${headName} ${measured(value, { unit: "" })}`,
        `${headName}, ${name}: ${measured(value, { unit })}`,
      );
    });
    this.list.replaceChildren(...chips);
    this.top.hidden = !this.store.rows;
  }

  drawn() {
    return [this.store.pointer, this.store.rows, this.store.drawing, this.store.view.options, this.store.open];
  }
}

/**
 * For each pattern, the head that follows it most, if that is more than uniform attention would give: clear patterns,
 * and the closest head for each of the named roles.
 * @param {ShownText} store
 * @returns {{ head: PictureId, pattern: Pattern }[]}
 */
function suggestionsOf(store) {
  if (!store.rows) return [];
  /** @type {Map<string, { head: PictureId, pattern: Pattern }>} */
  const best = new Map();
  for (const head of store.data.heads) {
    for (const pattern of measuredPatterns(store, head)) {
      const name = patternName(pattern);
      if (pattern.mean > (best.get(name)?.pattern.mean ?? 0)) best.set(name, { head, pattern });
    }
  }
  // The score for induction is known only for texts that the server has read before.
  const induction = store.pointer.suggested_heads.find(({ role }) => role === "induction");
  if (induction && !store.isGrowing) {
    const nowhere = { at: () => 0 };
    const even = patternsOf(nowhere, store.ids, store.rows).find(({ name }) => name === "induction");
    if (even) best.set("induction", { head: induction.head, pattern: { ...even, mean: induction.score } });
  }
  const clear = [...best.values()].filter(
    ({ pattern }) => isClear(pattern) || (pattern.name !== "back" && isAboveChance(pattern)),
  );
  return clear.sort((a, b) => b.pattern.mean - a.pattern.mean).slice(0, MAX_CHIPS);
}

/** Heads whose weights copy what they look at, the clearest first. @param {ShownText} store */
function copyingHeads(store) {
  if (!store.rows) return [];
  return store.data.heads
    .flatMap((head) => {
      const role = roleOf(store, head);
      return role && copies(role) && !patternOf(store, head) ? [{ head, role }] : [];
    })
    .sort((a, b) => b.role.scores.copying - a.role.scores.copying);
}

/**
 * Over how many tokens, or letters, a head spreads its attention, in words: 2 to the power of its entropy.
 * @param {ShownText} store
 * @param {PictureId} picture
 * @param {string} unit
 */
function spreadWords(store, picture, unit) {
  const spread = Math.round(2 ** store.data.metric(picture, METRICS.entropy.index));
  return spread > 1
    ? `its attention spreads over about ${spread} ${unit}s`
    : `nearly all of its attention goes to one ${unit} at a time`;
}

/**
 * What a head does in this text, in one sentence with the model's numbers.
 * @param {ShownText} store
 * @param {PictureId} picture
 */
export function describePicture(store, picture) {
  const [layer, head] = picture;
  const title = spokenPicture(picture, store.pointer);
  const { n_layer, n_head } = store.pointer;
  if (!store.rows || layer >= n_layer) return "";
  if (head === n_head) return "The mean of this layer’s heads.";
  if (head > n_head)
    return "Attention rollout: how much of each token is in each position after all layers up to this one.";
  const pattern = patternOf(store, picture);
  if (pattern) return `${capitalised(title)} ${patternDoes(pattern)}: ${pattern.mean.toFixed(2)} on average.`;
  const spread = spreadWords(store, picture, "token");
  const role = clearRole(store, picture);
  if (role?.name === COPYING.name) return `${capitalised(title)} ${COPYING.does}; ${spread}.`;
  const here = isTooShort(store) ? "this text is too short for a pattern" : "it follows no simple rule in this text";
  if (!role) return `${capitalised(title)}: ${here}; ${spread}.`;
  return `On random tokens ${title} ${role.does}: ${role.score.toFixed(2)}. Here: ${here}; ${spread}.`;
}
