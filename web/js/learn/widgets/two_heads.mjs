// Two heads side by side: two of a trained model that differ, or two with random matrices.

import { make } from "../../lib/dom.mjs";
import { headName } from "../../lib/heads.mjs";
import { fixed, number } from "../../lib/numbers.mjs";
import { visible } from "../../lib/words.mjs";
import { AXES, dotProduct, looks, softmaxCell } from "../../widgets/arithmetic.mjs";
import { Stamp } from "../../widgets/stamp.mjs";
import { choice } from "./elements.mjs";
import { controls, paragraph, rowOf } from "./elements.mjs";
import { dropdown, smallButton } from "../../widgets/controls.mjs";

/** @import { Data } from "../data.js" */
/** @typedef {NonNullable<Data["many-heads"]["trained"]>} Trained */
/** @typedef {Trained["heads"][number]} Head */
/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */
/** @import { Lesson } from "../rung.js" */

const SIDES = [0, 1];
const MAX_SHOWN_TERMS = 8; // terms of a dot product that are shown before the rest is unfolded
const SIDE_NAMES = ["left head", "right head"];

/**
 * @param {Lesson} lesson
 * @param {Arithmetic} arithmetic
 * @param {{ words: string, tables: Element[] }} random two heads with random matrices, and a description
 */
export function twoHeads(lesson, arithmetic, random) {
  /** @type {Trained} */
  let data;
  let hasModel = false;
  /** @type {"trained" | "random"} */
  let shown = lesson.kept.heads;
  const status = make("p", { class: "hl-count", role: "status" });
  const stamp = new Stamp(
    "both heads’ queries and keys through the steps of these lessons, compared with the model",
    true,
  );
  const which = choice({
    label: "two heads",
    options: { trained: "trained", random: "random" },
    value: shown,
    change(key) {
      shown = lesson.kept.heads = key;
      show();
    },
  });
  const tables = SIDES.map((side) =>
    arithmetic.table({
      name: `Trained head, ${["left", "right"][side]}`,
      axes: AXES,
      sums: true,
      explain: (r, c) => explain(data.heads[side], r, c),
    }),
  );
  const captions = SIDES.map(() => make("p", { class: "hl-count" }));
  const pickers = make("div", { class: "hl-controls" });
  const trained = make("div", {});
  trained.append(
    pickers,
    rowOf(...SIDES.map((side) => make("div", {}, tables[side].element, captions[side]))),
    stamp.element,
  );
  const randomRow = make("div", {}, rowOf(...random.tables));

  /** @param {Head} head @param {number} r @param {number} c */
  function explain({ layer, head, weights, scale, query: queries, key: keys, weight_terms: terms }, r, c) {
    const [query, key] = [data.tokens[r], data.tokens[c]].map(visible);
    if (c > r) return [paragraph(...looks(query, key), " comes later: it is masked (rung 7), and has the weight 0.")];
    const [left, right] = [queries[r], keys[c]];
    const products = left.map((/** @type {number} */ value, /** @type {number} */ i) => value * right[i]);
    const total = products.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0);
    const title = [`Score in ${headName([layer, head])}: `, ...looks(query, key)];
    const score = dotProduct({ title, left, right, products, total, few: MAX_SHOWN_TERMS });
    const words = `The score × ${number(scale)} (1 / √${left.length}) goes into the softmax:`;
    return [...score, ...softmaxCell({ terms, r, c, total: weights[r][c], title: [words] })];
  }

  /** @param {Head} head */
  function habitsOf({ habits }) {
    const parts = Object.entries(habits).map(
      ([name, share]) => `${fixed(/** @type {number} */ (share), 2)} to ${name}`,
    );
    return `From the third token on, its average attention weight is ${parts.join(", ")}.`;
  }

  /** @param {number} side @param {string} name such as "4.2" */
  function pick(side, name) {
    const pair = data.heads.map(({ layer, head }) => [layer, head]);
    pair[side] = name.split(".").map(Number);
    lesson.set({ pair });
  }

  function showPickers() {
    const names = Object.fromEntries(
      Array.from({ length: data.n_layer * data.n_head }, (_, i) => {
        const [layer, head] = [Math.floor(i / data.n_head), i % data.n_head];
        return [`${layer}.${head}`, headName([layer, head])];
      }),
    );
    const lists = SIDES.map((side) => {
      const list = dropdown(SIDE_NAMES[side], names, (name) => pick(side, name));
      const { layer, head } = data.heads[side];
      list.value = `${layer}.${head}`;
      return make("label", { class: "hl-choice" }, make("span", {}, SIDE_NAMES[side]), list);
    });
    const again = smallButton("The two that differ most");
    again.addEventListener("click", () => lesson.set({ pair: null }));
    pickers.replaceChildren(...lists, again);
  }

  function show() {
    const isTrained = shown === "trained" && hasModel;
    which.show(shown);
    trained.hidden = !isTrained;
    randomRow.hidden = isTrained;
    status.textContent = random.words;
    if (!isTrained) return;
    const tokens = data.tokens.map(visible);
    const rest = data.n_tokens > tokens.length ? `, the first ${tokens.length} tokens` : "";
    status.textContent =
      `Two heads of ${data.model}, a trained model, on your sentence${rest}. Their rows differ by ` +
      `${fixed(data.difference, 2)} on average: half the sum of |left − right| in a row, which is 0 for equal heads ` +
      "and 1 for heads that never look at the same token. The first row is left out. Weights above the diagonal are " +
      "0 because this model may not look ahead; rung 7 shows how.";
    showPickers();
    data.heads.forEach((head, side) => {
      tables[side].rename(`${headName([head.layer, head.head])} of ${data.model}`);
      tables[side].show({ rows: tokens, columns: tokens, values: head.weights });
      captions[side].textContent = habitsOf(head);
    });
    stamp.show(Math.max(...data.heads.map(({ error }) => error)), 1e-4);
  }

  return {
    elements: [controls(which.element), status, trained, randomRow],
    /** Show the server's answer; null without a model. @param {Trained | null} found */
    update(found) {
      if (found) data = found;
      hasModel = found !== null;
      which.element.hidden = !hasModel;
      show();
    },
  };
}
