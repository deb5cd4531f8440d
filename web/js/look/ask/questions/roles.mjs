// What is this head for? Its scores for well-known roles, next to those of uniform attention.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { capitalised } from "../../../lib/words.mjs";
import { headEntries } from "../../../lib/heads.mjs";
import { fixed, withoutZero } from "../../../lib/numbers.mjs";
import { HeadList } from "../head_list.mjs";
import { TokenPairs } from "../token_pairs.mjs";
import { CLEAR, CLEAR_COPYING, COPYING, headlineRole, ROLE_NAMES, ROLES } from "../../roles/head_roles.mjs";
import { rolePlain, roleSentence } from "../../roles/role_words.mjs";
import { bar, dropdown } from "../../../widgets/controls.mjs";
import { fillRows, makeCell, makeTable } from "../../../widgets/table.mjs";

/** @import { Overlay, RoleName, Roles } from "../../../types.js" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

/** @typedef {RoleName | "copying"} Score */

const NAMES = /** @type {Record<Score, string>} */ ({
  ...Object.fromEntries(ROLE_NAMES.map((name) => [name, ROLES[name].name])),
  copying: COPYING.name,
});

const OWN_ROLE = "own"; // the role of the open head, or the closest one
const COPYING_BY_CHANCE = 0.5; // how much a head with random weights copies

/** A value, short enough for a tile. @param {number} value */
const short = (value) => withoutZero(fixed(value, 2));

/** @type {Question} */
export const roles = {
  key: "roles",
  title: TITLES.roles,
  hook: "Does it look at the token before, or at the same token earlier? Does it copy what it finds?",
  explanation:
    "Shows how much attention each head pays to the token that a known role would look at, on random tokens that " +
    "are repeated once; ± is the standard error over 16 such texts. " +
    "Copying is computed from the weights: of all other tokens, the share whose logits the head " +
    "raises by less than that of the token it looks at.",
  caution:
    `A head gets a label only if its mean weight there is at least ${CLEAR} and three times the uniform weight, ` +
    `or if its copying score is at least ${CLEAR_COPYING}, which random weights do not reach. Later layers may undo ` +
    "what it copies.",
  defaults: { role: OWN_ROLE },
  build: (context) => new HeadRoles(context),
};

/** @implements {BuiltQuestion} */
class HeadRoles {
  /** @param {AskContext} context */
  constructor({ store, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    this.choice = dropdown("Role", NAMES, (role) => choose({ role }));
    this.sentence = make("p", { class: "hs-answer" });
    const titles = ["pattern", "score", "by\u00a0chance", ""];
    this.table = makeTable({ name: "Scores of the open head", titles });
    this.list = new HeadList(store, "Heads by the score for one role");
    this.pairs = new TokenPairs(store);
    this.controls = [make("label", {}, "role ", this.choice)];
    const key = make("p", { class: "hs-hint" }, "The line across a bar is chance: even attention, or random weights.");
    const bars = make("div", { class: "hs-head-list hs-role-bars" }, this.table);
    this.picture = make("div", { class: "hs-roles" }, bars, key, this.pairs.element);
    this.element = make("div", { class: "hs-roles" }, this.sentence, this.list.element);
  }

  /** @returns {Asked} */
  request() {
    const { run, model } = this.store.pointer;
    return run ? { route: "roles", query: { model } } : "There is no model to ask about yet.";
  }

  /** @param {any} answer */
  draw(answer) {
    /** @type {Roles} */
    const heads = answer.heads;
    const open = heads[this.store.open[0]]?.[this.store.open[1]];
    const own = open ? headlineRole(open) : "previous_token";
    const role = /** @type {Score} */ (this.choices.role in NAMES ? this.choices.role : own);
    this.choice.value = role;
    this.store.setRoles(heads);
    this.showOpen(heads, own);
    void this.pairs.show();
    this.conclude(rolePlain(this.store, this.store.open));
    const values = heads.map((layer) => layer.map(({ scores }) => scores[role]));
    const rows = headEntries(values).map((entry) => ({ ...entry, text: entry.value.toFixed(3) }));
    rows.sort((a, b) => b.value - a.value);
    this.list.show(role === "copying" ? "copying: by its weights" : `${NAMES[role]}: mean weight`, rows);
    this.overlay(role === "copying" ? copyingOverlay(values) : looksOverlay(NAMES[role], values));
  }

  /**
   * The scores of the open head, the one that the sentence names first.
   * @param {Roles} heads
   * @param {Score} own
   */
  showOpen(heads, own) {
    const [layer, column] = this.store.open;
    const head = heads[layer]?.[column];
    this.table.hidden = !head;
    if (!head) {
      const name = capitalised(this.store.openName);
      this.sentence.textContent = `${name} is not a head. Open one in the grid.`;
      return;
    }
    const { scores, errors, baseline } = head;
    this.sentence.textContent =
      `${roleSentence(this.store, this.store.open)} Its attention has an entropy of ` +
      `${scores.entropy.toFixed(2)} bits (uniform attention: ${baseline.entropy.toFixed(2)}).`;
    const names = /** @type {Score[]} */ (Object.keys(NAMES));
    const rows = names
      .sort((a, b) => Number(b === own) - Number(a === own))
      .map((name) => {
        const does = name === "copying" ? COPYING.does : ROLES[name].does;
        const error = name === "copying" ? "" : ` ± ${errors[name].toFixed(3)}`;
        return scoreRow([NAMES[name], does], `${scores[name].toFixed(3)}${error}`, baseline[name].toFixed(3), [
          bar(scores[name], "hs-amount"),
          bar(baseline[name], "hs-chance"),
        ]);
      });
    fillRows(this.table, rows);
  }
}

/** @param {string} name @param {number[][]} values @returns {Overlay} */
const looksOverlay = (name, values) => ({
  title: `Mean attention weight where ${name} heads look`,
  values,
  most: 1,
  ramp: "looks",
  short,
  long: (value) => value.toFixed(3),
  ends: ["never", "always"],
});

/** Chance is in the middle of the ramp. @param {number[][]} scores @returns {Overlay} */
const copyingOverlay = (scores) => ({
  title: "Copying by its weights, from 0 to 1 (by chance .50)",
  values: scores.map((row) => row.map((score) => score - COPYING_BY_CHANCE)),
  most: COPYING_BY_CHANCE,
  ramp: "change",
  short: (value) => short(value + COPYING_BY_CHANCE),
  long: (value) => (value + COPYING_BY_CHANCE).toFixed(3),
  ends: ["speaks against it", "copies it"],
});

/**
 * @param {string[]} title a name, and what it means
 * @param {string} score
 * @param {string} uniform
 * @param {Node[]} amount
 */
const scoreRow = ([name, meaning], score, uniform, amount) => [
  [name, make("small", {}, meaning)],
  ...[score, uniform].map((text) => makeCell(text, { class: "hs-number-cell" })),
  makeCell(amount, { class: "hs-bar-cell" }),
];
