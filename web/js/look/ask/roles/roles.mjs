// What is this head for? Its scores for well-known roles, beside those of uniform attention.

import { dropdown, make } from "../../../lib/dom.mjs";
import { pictureName } from "../../../lib/words.mjs";
import { HeadList } from "../head_list.mjs";
import { CLEAR, ROLE_NAMES, rolePlain, roleSentence, ROLES } from "./head_roles.mjs";

/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */
/** @import { HeadRole, RoleName } from "./head_roles.mjs" */

const NAMES = /** @type {Record<RoleName, string>} */ (
  Object.fromEntries(ROLE_NAMES.map((name) => [name, ROLES[name].name]))
);

/** Two decimals, without the leading zero. @param {number} value */
const short = (value) => value.toFixed(2).replace(/^0/, "");

/** @type {Question} */
export const roles = {
  key: "roles",
  title: "What is this head for?",
  hook: "Does it look at the token before, at the same token earlier, or at none of these?",
  explanation: "How much each head looks where known roles would, on random tokens that are repeated once.",
  caution:
    `A head has a label only if its mean weight there is at least ${CLEAR} and three times that of even attention. ` +
    "It shows where a head looks, not what it does with what it finds; most heads have roles that nobody has named.",
  defaults: { role: "previous_token" },
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, choices, choose, conclude, overlay }) {
  const choice = dropdown("Role", NAMES, (role) => choose({ role }));
  const sentence = make("p", { class: "hs-answer" });
  const body = make("tbody", {});
  const titles = ["looks at", "score", "uniform", ""].map((title) => make("th", { scope: "col" }, title));
  const caption = make("caption", { class: "hs-hidden" }, "Scores of the open head");
  const table = make("table", {}, caption, make("thead", {}, make("tr", {}, ...titles)), body);
  const list = new HeadList(store, "Heads by the score for one role");

  return {
    controls: [make("label", {}, "role ", choice)],
    element: make("div", { class: "hs-roles" }, sentence, make("div", { class: "hs-head-list" }, table), list.element),
    request() {
      choice.value = choices.role;
      const { run, model } = store.pointer;
      return run ? { route: "roles", query: { model } } : "There is no model to ask about yet.";
    },
    draw(answer) {
      /** @type {HeadRole[][]} */
      const heads = answer.heads;
      const role = /** @type {RoleName} */ (choices.role in ROLES ? choices.role : "previous_token");
      store.setRoles(heads);
      showOpen(heads);
      conclude(rolePlain(store, store.open));
      const values = heads.map((layer) => layer.map(({ scores }) => scores[role]));
      const rows = values.flatMap((scores, layer) =>
        scores.map((value, head) => ({
          place: /** @type {[number, number]} */ ([layer, head]),
          value,
          text: value.toFixed(3),
        })),
      );
      rows.sort((a, b) => b.value - a.value);
      list.show(`${ROLES[role].name}: mean weight`, rows);
      overlay({
        title: `Mean weight where a ${ROLES[role].name} head looks`,
        values,
        most: 1,
        ramp: "looks",
        short,
        long: (value) => value.toFixed(3),
        ends: ["never", "always"],
      });
    },
  };

  /** The scores of the open head. @param {HeadRole[][]} heads */
  function showOpen(heads) {
    const [layer, column] = store.open;
    const head = heads[layer]?.[column];
    table.hidden = !head;
    if (!head) {
      sentence.textContent = `${pictureName(store.open, store.pointer)} is not a head. Open one in the grid.`;
      return;
    }
    sentence.textContent = roleSentence(store, store.open);
    const { scores, baseline } = head;
    const rows = ROLE_NAMES.map((name) => {
      const bar = make("span", { class: "hs-amount", "aria-hidden": "true" });
      bar.style.setProperty("--part", String(scores[name]));
      return scoreRow(ROLES[name].name, scores[name].toFixed(3), baseline[name].toFixed(3), bar);
    });
    rows.push(scoreRow("entropy (bits)", scores.entropy.toFixed(2), baseline.entropy.toFixed(2)));
    body.replaceChildren(...rows);
  }
}

/** @param {string} name @param {string} score @param {string} uniform @param {Node | string} bar */
function scoreRow(name, score, uniform, bar = "") {
  const numbers = [score, uniform].map((text) => make("td", { class: "hs-number-cell" }, text));
  return make("tr", {}, make("th", { scope: "row" }, name), ...numbers, make("td", { class: "hs-bar-cell" }, bar));
}
