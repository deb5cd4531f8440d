// Show me the arithmetic: every number from one query and key to the logit of the next token.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { headName, spokenHead } from "../../../lib/heads.mjs";
import { exact, fixed, number, share, signed } from "../../../lib/numbers.mjs";
import { capitalised, plainly, spoken, visible } from "../../../lib/words.mjs";
import { dotProduct, exponentialShare, looks } from "../../../widgets/arithmetic.mjs";
import { formula, fraction, row, sub, sum, sup } from "../../../widgets/formula.mjs";
import { Stamp } from "../../../widgets/stamp.mjs";
import { headAndPrediction } from "../subject.mjs";
import { smallButton } from "../../../widgets/controls.mjs";
import { makeTable } from "../../../widgets/table.mjs";

/** @import { LedgerAnswer, LedgerStage } from "../../../lens.js" */
/** @import { AskContext, BuiltQuestion, Question } from "../question.js" */

const TOLERANCE = 1e-3; // of the logit, which is the largest of the numbers

/** @type {Question} */
export const ledger = {
  key: "ledger",
  title: TITLES.ledger,
  hook: "Every number from one cell to the next token’s probability.",
  explanation:
    "One cell of the open head, step by step: from query and key to the attention weight, and on to the logit " +
    "of the next token. Pin another cell to see its arithmetic.",
  caution:
    "These numbers say how the model computes this, not why it learned to. Key and value already contain what " +
    "earlier layers put there.",
  defaults: {},
  build,
};

/** @param {AskContext} context @returns {BuiltQuestion} */
function build({ store, conclude }) {
  /** @type {LedgerAnswer | null} */
  let shown = null;
  const sentence = make("p", { class: "hs-answer" });
  const steps = make("div", { class: "hs-steps" });
  const picture = make("div", { class: "hs-sum-written" });
  const open = smallButton("Open every step", () => {
    for (const details of steps.querySelectorAll("details")) details.open = true;
    for (const more of /** @type {NodeListOf<HTMLElement>} */ (steps.querySelectorAll(".hl-more[aria-expanded=false]")))
      more.click();
  });
  const stamp = new Stamp("the attention weights, the context vector and the logit", true);
  return {
    controls: [],
    picture,
    element: make("div", { class: "hs-answer-part" }, sentence, stamp.element, make("div", {}, open), steps),
    request() {
      const asked = headAndPrediction(store);
      if (typeof asked === "string") return asked;
      const { position: query, ...body } = asked;
      return { route: "ledger", body: { ...body, query, key: store.selection.leading?.key ?? null } };
    },
    /** @param {LedgerAnswer} answer */
    draw(answer) {
      const { tokens, layer, head, position, weights, token, part, logit } = answer;
      const [from, to] = position.map((place) => `${spoken(tokens[place].text)} (position ${place})`);
      const weight = exact(weights[position[1]]);
      sentence.textContent = `In ${spokenHead([layer, head])}, ${from} looks at ${to} with the weight ${weight}.`;
      const name = spokenHead([layer, head]);
      const given = share(weights[position[1]]);
      const [query, key] = position.map((place) => spoken(tokens[place].text));
      conclude(
        `${capitalised(query)} gives ${given} of its attention in ${name} to ${key}. What it takes there ` +
          `adds ${signed(part, 2)} to the score of ${spoken(token.text)}, which is ${fixed(logit, 2)} in all.`,
      );
      stamp.show(largestError(answer), TOLERANCE);
      if (answer !== shown) {
        steps.replaceChildren(...ledgerSteps(answer));
        picture.replaceChildren(...sumAsWritten(answer, (name) => goTo(steps, name)));
      }
      shown = answer;
    },
  };
}

const MAX_SHOWN_PRODUCTS = 6; // products shown until the visitor asks for all

const SCORE = "Score: query times key, scaled";
const SOFTMAX = "Softmax: the attention weight";
const VALUE = "Weight times value";
const WRITES = "Through the output projection into the logit";
const LOGIT = "The logit of the next token";

/** Open a step and show it. @param {HTMLElement} steps @param {string} name */
function goTo(steps, name) {
  const found = [...steps.children].find((each) => each.querySelector("h3")?.textContent === name);
  const fold = steps.closest("details");
  if (fold) fold.open = true;
  found?.scrollIntoView({ block: "start" });
}

/**
 * The sum as it is written, from the score to the probability. Each number leads to the step that computes it.
 * @param {LedgerAnswer} answer
 * @param {(step: string) => void} go
 */
export function sumAsWritten(answer, go) {
  const { tokens, position, score, scale, scaled, largest, denominator, weights, mask, part, head_part } = answer;
  const { rest, logit, probability, token } = answer;
  const [from, to] = position.map((place) => spoken(tokens[place].text));
  const key = position[1];
  const link = (/** @type {string} */ text, /** @type {string} */ name) =>
    make("button", { type: "button", title: `Shown under “${name}”`, onclick: () => go(name) }, text);
  /** @param {string} words @param {...Part} parts */
  const line = (words, ...parts) => make("p", {}, make("span", {}, words), make("span", {}, ...parts));
  const weight = () => link(share(weights[key]), SOFTMAX);
  const times = mask === 1 ? [] : [" × ", link(number(mask), VALUE)];
  return [
    line(
      `${capitalised(from)} looks at ${to}`,
      link(fixed(score, 2), SCORE),
      " × ",
      number(scale, 3),
      " = ",
      link(fixed(scaled[key], 2), SCORE),
    ),
    line(
      "of all it looks at",
      make("i", {}, "e"),
      make("sup", {}, fixed(scaled[key], 2), largest >= 0 ? ` − ${fixed(largest, 2)}` : ` + ${fixed(-largest, 2)}`),
      " / ",
      link(fixed(denominator, 2), SOFTMAX),
      " = ",
      weight(),
    ),
    line(
      `what it takes there adds to ${spoken(token.text)}`,
      weight(),
      ...times,
      " × ",
      link("value", VALUE),
      " → ",
      link(signed(part), WRITES),
    ),
    line(
      "with the head’s other words, and the rest of the model",
      link(signed(part), WRITES),
      " ",
      link(term(head_part - part), WRITES),
      " ",
      link(term(rest), LOGIT),
      " = ",
      link(fixed(logit, 2), LOGIT),
    ),
    line(`which makes ${spoken(token.text)} the next token with`, link(share(probability), LOGIT)),
  ];
}

/** A term after the first one of a sum. @param {number} value */
const term = (value) => `${value < 0 ? "−" : "+"} ${fixed(Math.abs(value), 2)}`;

/** @typedef {Node | string} Part */

/** @param {string} name @param {...Part} parts */
const step = (name, ...parts) => make("section", { class: "hs-step" }, make("h3", {}, name), ...parts);

/** Numbers that are folded until asked for. @param {string} summary @param {...Part} parts */
const more = (summary, ...parts) => make("details", {}, make("summary", {}, summary), ...parts);

/** The keys up to the query, with their positions. @param {LedgerAnswer} answer */
const keyNames = ({ tokens, weights }) => weights.map((_, place) => `${visible(tokens[place].text)} ${place}`);

/** All steps. @param {LedgerAnswer} answer */
const ledgerSteps = (answer) => [
  ...answer.stages.map((stage, i) => stageStep(answer, stage, answer.stages[i + 1] ?? answer)),
  scoreStep(answer),
  maskStep(answer),
  softmaxStep(answer),
  valueStep(answer),
  logitStep(answer),
  sumStep(answer),
];

/** @typedef {{ query: number[], key: number[] }} Vectors */

/**
 * How the query and the key are normalised or rotated.
 * @param {LedgerAnswer} answer
 * @param {LedgerStage} stage
 * @param {Vectors} after
 */
function stageStep({ position: [from, to], frequencies }, stage, after) {
  const columns = { query: stage.query, "query after": after.query, key: stage.key, "key after": after.key };
  const table = more("Both vectors, before and after", numberTable(columns));
  if (stage.before === "normalised") {
    const square = stage.query.reduce((total, value) => total + value ** 2, 0);
    const root = Math.sqrt(square / stage.query.length);
    const words =
      `Query and key are divided by the root of the mean of their squares (${fixed(root)} for the query), and each ` +
      "number is multiplied by a learned factor.";
    return step("RMSNorm of query and key", make("p", {}, words), table);
  }
  const n = frequencies?.length ?? 0;
  const [a, b] = [stage.query[0], stage.query[n]];
  const angle = from * (frequencies?.[0] ?? 0);
  const words =
    `Numbers i and i + ${n} are a point in a plane, which position p turns by p × f radians, with a frequency f for ` +
    `each of the ${n} pairs. A score therefore depends on the distance of query and key, here ${from - to}.`;
  const worked =
    `Number 0 of the query, at position ${from} and with f = ${number(frequencies?.[0] ?? 0)}: ` +
    `${fixed(a)} × cos(${fixed(angle)}) − (${fixed(b)}) × sin(${fixed(angle)}) = `;
  return step(
    "Rotation by position",
    formula([
      sub("q′", "i"),
      "=",
      row(sub("q", "i"), "·", "cos", "(", "p", "f", ")", "−", sub("q", `i+${n}`), "·", "sin", "(", "p", "f", ")"),
    ]),
    make("p", {}, words),
    make("p", {}, worked, make("b", {}, fixed(after.query[0]))),
    table,
  );
}

/** @param {LedgerAnswer} answer */
function scoreStep({ tokens, position: [from, to], query, key, products, score, scale, scaled }) {
  const pair = looks(plainly(tokens[from].text), plainly(tokens[to].text));
  const title = [
    ...pair,
    `: the ${query.length} numbers of its query times those of the key add up to ${fixed(score)}.`,
  ];
  return step(
    SCORE,
    formula([sub("s", "k"), "=", row("(", "q", "·", sub("k", "k"), ")", "×", "scale")]),
    ...dotProduct({ title, left: query, right: key, products, total: score, few: MAX_SHOWN_PRODUCTS }),
    make("p", {}, `${fixed(score)} × ${number(scale)} = `, make("b", {}, fixed(scaled[to]))),
  );
}

/** @param {LedgerAnswer} answer */
function maskStep({ tokens, position: [from], n_masked, n_before }) {
  const name = spoken(tokens[from].text);
  const later = n_masked === 1 ? "The one token" : `Each of the ${n_masked} tokens`;
  const words = n_masked
    ? `${later} after ${name} has a score of −∞, whose exponential is 0: a query never sees what comes later.`
    : `${capitalised(name)} is the last token, so there is nothing after it to mask.`;
  const before = n_before === 1 ? "So has the first token" : `So have the first ${n_before} tokens`;
  const window = n_before ? `${before}: a query in this layer sees only the ${from + 1 - n_before} up to itself.` : "";
  return step("Mask", make("p", {}, words), ...(window ? [make("p", {}, window)] : []));
}

/** @param {LedgerAnswer} answer */
function softmaxStep(answer) {
  const { scaled, largest, exponentials, denominator, weights } = answer;
  const key = answer.position[1];
  const values = [fixed(exponentials[key]), fixed(denominator), exact(weights[key])];
  const title = ["The exponential of each scaled score minus the row’s largest:"];
  const terms = dotProduct({ title, names: keyNames(answer), products: exponentials, total: denominator });
  const above = sup("e", row(sub("s", "k"), "−", "max"));
  const below = row(sum("j"), sup("e", row(sub("s", "j"), "−", "max")));
  return step(
    SOFTMAX,
    formula([sub("a", "k"), "=", fraction(above, below)]),
    exponentialShare(`${fixed(scaled[key])} − ${fixed(largest)}`, values),
    more(`The denominator: ${exponentials.length} exponentials`, ...terms),
  );
}

/** @param {LedgerAnswer} answer */
function valueStep(answer) {
  const { weights, mask, value, position } = answer;
  const muted = mask === 1 ? "" : ` and by ${number(mask)}, as this head is scaled`;
  const times = `is multiplied by the weight ${exact(weights[position[1]])}${muted}.`;
  return step(
    VALUE,
    make("p", {}, `Each of the ${value.length} numbers of the key’s value ${times}`),
    more("All vectors, number by number", vectorTable(answer)),
  );
}

/** The components of the head's vectors, one row each. @param {LedgerAnswer} answer */
const vectorTable = ({ query, key, products, value, weighted, reading, terms }) =>
  numberTable({ query, key, "q × k": products, value, "× weight": weighted, "to logit": reading, adds: terms });

/** Vectors as columns, one row for each of their numbers. @param {Record<string, number[]>} columns */
function numberTable(columns) {
  const [first] = Object.values(columns);
  const rows = first.map((_, i) => [i, ...Object.values(columns).map((vector) => fixed(vector[i]))]);
  const attributes = { class: "hs-answer-table", "data-table": "vectors" };
  const table = makeTable({ titles: ["place", ...Object.keys(columns)], rows }, attributes);
  return make("div", { class: "hs-answer-scroll" }, table);
}

/** @param {LedgerAnswer} answer */
function logitStep(answer) {
  const { token, weighted, reading, terms, part, parts, head_part } = answer;
  const title = [
    "The head’s rows of the output projection write this into the residual stream. There the final norm and the ",
    `output head read the logit of ${spoken(token.text)}. Together they multiply each component by the second `,
    `factor below: ${signed(part, 4)} in all.`,
  ];
  const others = ["What each key adds to the logit through this head:"];
  return step(
    WRITES,
    formula([row("(", sub("a", "k"), sub("v", "k"), ")", "·", "(", sub("W", "O"), "u", ")")]),
    ...dotProduct({ title, left: weighted, right: reading, products: terms, total: part, few: MAX_SHOWN_PRODUCTS }),
    more(
      `All ${parts.length} keys of this head`,
      ...dotProduct({ title: others, names: keyNames(answer), products: parts, total: head_part }),
    ),
  );
}

/** @param {LedgerAnswer} answer */
function sumStep({ layer, head, position, tokens, token, part, head_part, rest, logit, probability }) {
  const names = [headName([layer, head]), "everything else"];
  const key = capitalised(spoken(tokens[position[1]].text));
  const title = [
    `${key} adds ${signed(part, 4)}, all keys of this head together ${signed(head_part, 4)}. With the other heads, `,
    "the MLPs, the embedding and the biases, this adds up to the logit:",
  ];
  return step(
    LOGIT,
    ...dotProduct({ title, names, products: [head_part, rest], total: logit }),
    make(
      "p",
      {},
      `After the softmax over the vocabulary, ${spoken(token.text)} has probability ${exact(probability)}.`,
    ),
  );
}

/** The largest difference from the model’s own numbers. @param {LedgerAnswer} answer */
const largestError = ({ errors }) => Math.max(...Object.values(errors));
