// Parts of rung 8: a picture of the shapes in weight splits, the product of all heads at once, and running times.

import { make, svg } from "../../lib/dom.mjs";
import { milliseconds } from "../../lib/numbers.mjs";
import { dotCell, rowOf as cellsOf } from "../../widgets/arithmetic.mjs";
import { ALL_THREE, Stamp } from "../../widgets/stamp.mjs";
import { ask } from "../server.mjs";
import { bars } from "../widgets/chart.mjs";
import { scrollTo } from "../widgets/diagram.mjs";
import { slider, code, controls, heading, paragraph, rowOf } from "../widgets/elements.mjs";
import { smallButton } from "../../widgets/controls.mjs";

/** @import { Data } from "../data.js" */
/** @import { Arithmetic } from "../../widgets/arithmetic.mjs" */

export const HEADS = [0, 1];
export const FOUR = ["0", "1", "2", "3"]; // numbers of both heads together

const [CELL, ROWS, GAP] = [11, 4, 14]; // size of a cell in pixels, tokens that are drawn, pixels between two heads
const [WIDTH, HEIGHT, MIDDLE] = [800, 172, 66];
const [BOTH, FIRST, SECOND] = ["hl-shape", "hl-shape hl-shape-0", "hl-shape hl-shape-1"];

/** @typedef {{ name: string, shape: string, x: number, grids: string[][], isMasked?: boolean, place: Element }} Step */

/** @param {Record<"x" | "wide" | "split" | "weights" | "merged" | "projected", Element>} places */
export function shapesOfHeads(places) {
  const halves = [FIRST, FIRST, SECOND, SECOND];
  const pairs = [
    [FIRST, FIRST],
    [SECOND, SECOND],
  ];
  const squares = pairs.map(([css]) => Array(ROWS).fill(css));
  /** @type {Step[]} */
  const steps = [
    { name: "words", shape: "(T, 3)", x: 40, grids: [[BOTH, BOTH, BOTH]], place: places.x },
    { name: "one projection", shape: "(T, 4)", x: 160, grids: [halves], place: places.wide },
    { name: "split", shape: "(2, T, 2)", x: 285, grids: pairs, place: places.split },
    { name: "weights", shape: "(2, T, T)", x: 400, grids: squares, isMasked: true, place: places.weights },
    { name: "× values", shape: "(2, T, 2)", x: 515, grids: pairs, place: places.merged },
    { name: "side by side", shape: "(T, 4)", x: 630, grids: [halves], place: places.merged },
    { name: "mixed", shape: "(T, 4)", x: 750, grids: [[BOTH, BOTH, BOTH, BOTH]], place: places.projected },
  ];
  const arrows = steps.slice(1).map(({ x }, i) => {
    const [from, to] = [steps[i].x + 34, x - 34];
    return `M${from} ${MIDDLE}H${to}m-6 -4l6 4l-6 4`;
  });
  const links = steps.map((step) => {
    const title = `${step.name}, ${step.shape}: go to its numbers`;
    const text = (/** @type {string} */ words, /** @type {number} */ y, css = "") =>
      svg("text", { x: step.x, y, "text-anchor": "middle", class: css }, words);
    const link = svg(
      "a",
      { href: "#learn/8", "aria-label": title, class: "hl-part" },
      svg("title", {}, title),
      svg("rect", { x: step.x - 45, y: 0, width: 90, height: HEIGHT, class: "hl-hit" }), // gaps are clickable too
      ...gridsOf(step),
      text(step.name, HEIGHT - 24),
      text(step.shape, HEIGHT - 8, "hl-frame-name"),
    );
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      scrollTo(step.place);
    });
    return link;
  });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}` };
  const picture = svg("svg", box, svg("path", { d: arrows.join(""), class: "hl-flow" }), ...links);
  return make(
    "nav",
    { class: "hl-diagram hl-shapes", "aria-label": "The shapes, step by step" },
    make("div", { class: "hl-scroll" }, picture),
  );
}

/** The cells of a step, one grid below the other. @param {Step} step */
function gridsOf({ x, grids, isMasked = false }) {
  const height = grids.length * ROWS * CELL + (grids.length - 1) * GAP;
  return grids.flatMap((columns, g) => {
    const top = MIDDLE - height / 2 + g * (ROWS * CELL + GAP);
    const left = x - (columns.length * CELL) / 2;
    return Array.from({ length: ROWS }, (_, r) =>
      columns.map((css, c) => {
        const isFuture = isMasked && c > r;
        const at = { x: left + c * CELL, y: top + r * CELL, width: CELL - 1, height: CELL - 1 };
        return svg("rect", { ...at, class: isFuture ? BOTH : css });
      }),
    ).flat();
  });
}

// The product of all heads at once, on the numbers that the book prints.

const TOKENS = ["0", "1", "2"];

/** @param {Arithmetic} arithmetic */
export function batchedProduct(arithmetic) {
  /** @type {Data["many-heads"]} */
  let data;
  const batched = new Stamp("a product of all heads at once, and head by head");
  const operands = HEADS.map((head) =>
    arithmetic.table({
      name: `Head ${head}`,
      axes: "3 tokens × 4 numbers",
      explain: (r, c) => [paragraph(`Number ${c} of token ${r} in head ${head}.`)],
    }),
  );
  const products = HEADS.map((head) =>
    arithmetic.table({
      name: `Head ${head} × itself, transposed`,
      axes: "3 × 3 tokens",
      explain: (r, c) => {
        const title = [`Head ${head}: token ${r} · token ${c}`];
        return dotCell({ terms: data.product_terms[head], r, c, total: data.product[head][r][c], title });
      },
      operands: (r, c) => [cellsOf(operands[head], r), cellsOf(operands[head], c)],
    }),
  );
  return {
    elements: [
      heading("All heads in one product"),
      paragraph(
        "A product of tensors ",
        code("(B, n_head, T, head_dim)"),
        " is one matrix product for each head, computed together.",
      ),
      rowOf(...operands.map((table) => table.element)),
      rowOf(...products.map((table) => table.element)),
      batched.element,
    ],
    /** @param {Data["many-heads"]} found */
    update(found) {
      data = found;
      operands.forEach((table, head) => table.show({ rows: TOKENS, columns: FOUR, values: data.heads[head] }));
      products.forEach((table, head) => table.show({ rows: TOKENS, columns: TOKENS, values: data.product[head] }));
      batched.show(data.product_error);
    },
  };
}

// How long each construction takes, measured on the server when the button is pressed.

const N_HEADS = [1, 2, 4, 8, 16, 32];
const N_TOKENS = [16, 64, 128, 256, 512];

/** @param {{ n_head: number, n_tokens: number }} settings the visitor's, which are kept */
export function headTimes(settings) {
  const result = make("div", { class: "hl-row" });
  const status = make("p", { class: "hl-count", role: "status" });
  const stamp = new Stamp("the three constructions on the same random tokens", false, ALL_THREE);
  stamp.element.hidden = true;

  async function run() {
    measure.disabled = true;
    status.textContent = "Measuring…";
    try {
      show(await ask("times", settings));
    } catch (error) {
      status.textContent = /** @type {Error} */ (error).message;
    }
    measure.disabled = false;
  }

  /** @param {Data["times"]} times */
  function show({ constructions, stages, difference, rounds, n_embd, n_head, n_tokens }) {
    status.textContent =
      `${n_head} heads, ${n_embd} numbers per token, ${n_tokens} tokens: the fastest of at least ${rounds} runs, ` +
      "just measured on this server. Times differ from machine to machine, so compare the bars only with each other.";
    result.replaceChildren(
      timeBars("The same attention, built three ways", constructions),
      timeBars("Where weight splits spend their time", stages),
    );
    stamp.element.hidden = false;
    stamp.show(difference);
  }

  const measure = smallButton("Measure now", run, { class: "hs-primary" });
  const heads = slider({
    label: "heads",
    values: N_HEADS,
    value: settings.n_head,
    change: (n_head) => Object.assign(settings, { n_head }),
  });
  const tokens = slider({
    label: "tokens",
    values: N_TOKENS,
    value: settings.n_tokens,
    change: (n_tokens) => Object.assign(settings, { n_tokens }),
  });
  return [
    paragraph(
      "With few tokens, many small products cost more than one large one: stacked heads are the slowest. With many ",
      "tokens the time goes into the attention weights, n_head × T × T numbers that softmax reads and writes several ",
      "times. Then stacked heads can be faster, because the weights of a single head fit into the processor’s cache.",
    ),
    paragraph(
      code("MultiHeadAttention"),
      " is the class that the GPT runs: one fused projection, and a fused softmax that never writes the weights to ",
      "memory.",
    ),
    controls(heads.element, tokens.element, measure),
    status,
    result,
    stamp.element,
  ];
}

/**
 * @param {string} name
 * @param {Record<string, number>} seconds
 */
const timeBars = (name, seconds) => bars(name, seconds, Math.max(...Object.values(seconds)), { format: milliseconds });
