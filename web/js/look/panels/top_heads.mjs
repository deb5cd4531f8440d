// Which heads to look at first: those with a clear role in this text, and the first ones by the chosen metric.

import { make } from "../../lib/dom.mjs";
import { METRICS } from "../../lib/metrics.mjs";
import { measured } from "../../lib/numbers.mjs";
import { pictureName } from "../../lib/words.mjs";
import { CLEAR, ROLES } from "../ask/roles/head_roles.mjs";

/** @import { FittingHead, MetricName, Place } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const SHOWN = 5;

/** For entropy the most focused heads are the interesting ones. @param {MetricName} metric */
const isLowestFirst = (metric) => metric === "entropy";

/** @param {string} text */
const capitalised = (text) => text[0].toUpperCase() + text.slice(1);

/** @param {Store} store */
export function topHeads(store) {
  const { view } = store;
  const suggested = make("p", {
    class: "hs-chips",
    "aria-label": "Heads with a clear role in this text",
    role: "group",
  });
  const title = make("span", {});
  const list = make("span", { class: "hs-chip-list" });
  const top = make("p", { class: "hs-chips", role: "group", "aria-label": "Top heads" }, title, list);

  /** @param {Place} place @param {string} text @param {string} explanation */
  const chip = (place, text, explanation) => {
    const open = () => {
      view.choose(place);
      store.emit("opened");
    };
    const button = make("button", { type: "button", class: "hs-chip", onclick: open }, text);
    button.title = explanation;
    if (place.join() === store.open.join()) button.setAttribute("aria-current", "true");
    return button;
  };

  const showSuggested = () => {
    const chips = suggestionsOf(store).map(({ role, head, score }) => {
      const name = pictureName(head, store.pointer);
      const { name: roleName, does } = ROLES[role];
      const text = score >= CLEAR ? capitalised(roleName) : `Nearest to ${roleName}`;
      const weak = score >= CLEAR ? "" : `, less than the ${CLEAR} of a clear role`;
      const explanation = `${name} ${does}: ${score.toFixed(2)} of its attention on average in this text${weak}`;
      return chip(head, `${text} ${name} ${score.toFixed(2)}`, explanation);
    });
    suggested.replaceChildren(make("span", {}, "In this text"), ...chips);
    suggested.hidden = !chips.length;
  };

  const showTop = () => {
    const { metric } = view.options;
    const { name, place, unit } = METRICS[metric];
    const heads = store.heads.map((head) => ({ head, value: store.metric(head, place) }));
    heads.sort((a, b) => (isLowestFirst(metric) ? a.value - b.value : b.value - a.value));
    title.textContent = `${isLowestFirst(metric) ? "Lowest" : "Highest"} ${unit ? name : `weight ${name}`}`;
    const chips = heads.slice(0, SHOWN).map(({ head, value }) => {
      const headName = pictureName(head, store.pointer);
      return chip(
        head,
        `${headName} ${measured(value, { unit: "" })}`,
        `${headName}, ${name}: ${measured(value, { unit })}`,
      );
    });
    list.replaceChildren(...chips);
    top.hidden = !store.rows;
  };

  store.on("state thumbnails open", showSuggested);
  store.on("state thumbnails view open", showTop);
  return make("div", { class: "hs-top-heads" }, suggested, top);
}

/**
 * Those the server suggests, else the best for the roles that a text's metrics show.
 * @param {Store} store
 * @returns {FittingHead[]}
 */
function suggestionsOf(store) {
  const { suggested_heads } = store.pointer;
  if (suggested_heads.length || !store.rows) return suggested_heads;
  const roles = /** @type {const} */ ([
    ["previous_token", METRICS.previous.place],
    ["first_token", METRICS.first.place],
  ]);
  return roles.map(([role, place]) => {
    const scores = store.heads.map((head) => ({ role, head, score: store.metric(head, place) }));
    return scores.reduce((best, one) => (one.score > best.score ? one : best));
  });
}

/**
 * Over how many tokens, or letters, a head spreads its attention: 2 to the power of its entropy.
 * @param {Store} store
 * @param {Place} place
 * @param {string} unit
 */
export function spreadOf(store, place, unit) {
  const spread = Math.round(2 ** store.metric(place, METRICS.entropy.place));
  return spread > 1 ? `about ${spread} ${unit}s` : `one ${unit}`;
}

/**
 * What a head does in this text, in one sentence with the model's numbers, short enough for one line.
 * @param {Store} store
 * @param {Place} place
 */
export function describePicture(store, place) {
  const [layer, head] = place;
  const title = pictureName(place, store.pointer);
  const { n_layer, n_head } = store.pointer;
  if (!store.rows || layer >= n_layer) return "";
  if (head === n_head) return "The mean of this layer's heads.";
  if (head > n_head) return "Attention rollout: how much of each token is in each position, through all layers so far.";
  /** @param {MetricName} metric */
  const value = (metric) => store.metric(place, METRICS[metric].place);
  const roles = /** @type {const} */ ([
    ["previous", ROLES.previous_token.does],
    ["first", ROLES.first_token.does],
  ]);
  const [metric, does] = value("previous") >= value("first") ? roles[0] : roles[1];
  if (value(metric) >= CLEAR) return `${title} ${does}: ${value(metric).toFixed(2)} on average.`;
  const [back, weight] = place.join() === store.open.join() ? store.weights.steadiest() : [0, 0];
  if (weight >= CLEAR) return `${title} looks ${back} tokens back: ${weight.toFixed(2)} on average.`;
  return `${title}: no single pattern; its attention spreads over ${spreadOf(store, place, "token")}.`;
}
