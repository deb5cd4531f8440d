// Find the circuit: the heads and edges that carry the difference between pairs of prompts, and how faithful they are.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make } from "../../../lib/dom.mjs";
import { nodeName, spokenHead } from "../../../lib/heads.mjs";
import { counted, fixed, percent } from "../../../lib/numbers.mjs";
import { capitalised, listed, spoken, visible } from "../../../lib/words.mjs";
import { writeChoices } from "../../state/choices.mjs";
import { HeadList } from "../head_list.mjs";
import { changedText, UNCHANGED } from "../prompts/changed_text.mjs";
import { FIRST_SET, SetChooser } from "../prompts/set_chooser.mjs";
import { headGraph } from "./head_graph.mjs";
import { feeding, WAYS } from "./feeding.mjs";
import { smallButton, tabs } from "../../../widgets/controls.mjs";
import { fillRows, makeCell, makeTable } from "../../../widgets/table.mjs";

/** @import { Way } from "./feeding.mjs" */
/** @import { Arc, PictureId } from "../../../types.js" */
/** @import { CircuitAnswer, EdgeInCircuit, HeadInCircuit, MLPInCircuit } from "../../../lens.js" */
/** @import { ChangedPair } from "../prompts/changed_text.mjs" */
/** @import { Graph, GraphNode } from "./head_graph.mjs" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

/** @typedef {HeadInCircuit | (MLPInCircuit & { head: null, reads?: undefined })} NodeInCircuit a head, or an MLP */

/**
 * What is left of a circuit while it is found; `n_edges` is null before edges are measured, of which a few are here.
 * @typedef {object} LeftOfCircuit
 * @property {Pick<NodeInCircuit, "layer" | "head" | "lost">[]} nodes
 * @property {EdgeInCircuit[]} edges
 * @property {number | null} n_edges
 */

const TEXT = "text"; // in place of a set of prompts
const MAX_IN_LAYER = 4; // nodes that are drawn while the circuit is found
const GRAPH_HEIGHT = 60 * MAX_IN_LAYER; // CSS pixels
const MAX_WORDS = 6; // that the graph begins with
const NODES = { heads: "heads", mlps: "heads and MLPs" };
const ABLATIONS = { resample: "the corrupted prompt’s", mean: "its mean", zero: "zeros" };
const ABLATION_HELP = {
  resample: "What an ablated node writes is replaced with what it writes in the corrupted prompt.",
  mean:
    "What an ablated node writes is replaced with its mean over the corrupted prompts, position by position; all " +
    "prompts need the same number of tokens.",
  zero: "What an ablated node writes is replaced with zeros.",
};
const ROUTES = /** @type {Record<string, string>} */ ({
  mlps: "An edge goes through the MLPs between its ends, which are recomputed, and not through other heads.",
  direct: "An edge is the direct path in the residual stream.",
});
const MAX_EXACT_HEADS = 64; // in a model with more, attribution patching chooses the heads that are patched

/** @type {Question} */
export const circuit = {
  key: "circuit",
  title: TITLES.circuit,
  hook: "The few heads, and the edges between them, that are enough for the answer.",
  explanation:
    "Heads or MLPs are ablated, and then edges between them cut, as long as at most a tenth of the effect is lost: " +
    "of the difference between the logits of the answer and of the wrong one (path patching).",
  caution:
    "Pruning is greedy, so other circuits may preserve the effect equally well, and this one holds only for these " +
    "prompts.",
  defaults: { set: FIRST_SET, nodes: "heads", ablation: "resample", ...UNCHANGED },
  build: (context) => new Circuit(context),
};

const LINES = [
  "At the left, how much each head looks at a word of the first prompt. To the right, how much of the effect is lost ",
  "without a line or, below its name, without a head or MLP; dashed lines work against it.",
];

const MINIMALITY =
  "Minimality is the largest change of the share if a node is ablated besides such a subset: near 0, the circuit " +
  "does not need it.";

/** @param {[number, number | null]} node */
const spokenNode = ([layer, head]) => (head === null ? `the MLP of layer ${layer}` : spokenHead([layer, head]));

/** The end of an edge. @param {EdgeInCircuit} edge */
const receiverName = ({ receiver, way }) =>
  !receiver ? "logits" : way ? `${WAYS[/** @type {Way} */ (way)]} of ${nodeName(receiver)}` : nodeName(receiver);

/** @param {EdgeInCircuit} edge */
const edgeName = (edge) => `${nodeName(edge.sender)} → ${receiverName(edge)}`;

/**
 * What a node does in the first prompt.
 * @param {NodeInCircuit} node
 */
function nodeWords(node) {
  const { layer, head, lost, position, lost_there, promoted } = node;
  const tokens = promoted.slice(0, 3).map(({ text }) => spoken(text));
  const read = node.reads
    ? `it reads ${spoken(node.reads.text)} at position ${node.key} with weight ${fixed(node.weight, 2)}, and `
    : "";
  return (
    `Without ${spokenNode([layer, head])} alone, ${percent(lost)} of the effect is lost. In the first prompt it ` +
    `matters most at position ${position} (${percent(lost_there)}), where ${read}what it writes raises ` +
    `${tokens.join(", ")} most.`
  );
}

/** @param {CircuitAnswer} answer */
const completeWords = ({ incompleteness }) =>
  `Incompleteness is ${percent(incompleteness)}: the largest difference between the shares that the circuit and the ` +
  "whole model keep without a subset of the circuit’s nodes, over none and a few random ones (Wang et al. 2023, " +
  "section 4). Near 0, no node outside the circuit does the same.";

/**
 * The heads of a circuit, and its MLPs.
 * @param {CircuitAnswer} answer
 * @returns {NodeInCircuit[]}
 */
const nodesOf = ({ heads, mlps }) => [...heads, ...mlps.map((mlp) => ({ ...mlp, head: null }))];

/** @implements {BuiltQuestion} */
class Circuit {
  /** @param {AskContext} context */
  constructor({ store, choices, choose, conclude, overlay }) {
    this.store = store;
    this.choices = choices;
    this.conclude = conclude;
    this.overlay = overlay;
    this.set = new SetChooser({ store, choices, choose }, { [TEXT]: "this text, with a word changed" });
    this.twin = changedText({ store, choices, choose });
    this.own = this.twin.form;
    this.nodes = tabs("Nodes", NODES, (nodes) => choose({ nodes }));
    this.ablations = tabs("What replaces what is ablated", ABLATIONS, (ablation) => choose({ ablation }));
    this.help = make("p", { class: "hs-hint" });
    this.sentence = make("p", { class: "hs-answer" });
    this.details = make("p", { class: "hs-answer", role: "status" });
    this.cut = smallButton("");
    this.opened = make("div", { class: "hs-controls" }, this.details, this.cut);
    this.graph = headGraph("Graph of the circuit");
    this.list = new HeadList(store, "Heads of the circuit");
    this.table = makeTable({ name: "Edges of the circuit", titles: ["edge", "lost"] });
    this.criteria = makeTable({ name: "Nodes of the circuit", titles: ["node", "lost alone", "minimality"] });
    this.complete = make("p", { class: "hs-answer" });
    this.height = GRAPH_HEIGHT; // that of the graph while the circuit is found, which it keeps
    /** @type {CircuitAnswer | null} */
    this.shown = null;
    /** @type {() => void} */
    this.ask = () => {};
    this.cut.addEventListener("click", () => this.ask());
    const words = ["over", "nodes", "ablated with"].map((each) => make("span", {}, each));
    const set = [words[0], ...this.set.controls, this.own];
    this.controls = [...set, words[1], this.nodes.element, words[2], this.ablations.element];
    const key = make("p", { class: "hs-hint" }, ...LINES);
    this.picture = make("div", { class: "hs-patching" }, this.graph.element, key, this.opened);
    this.element = make(
      "div",
      { class: "hs-patching" },
      this.sentence,
      make("div", { class: "hs-head-list" }, this.table),
      this.list.element,
      this.complete,
      make("div", { class: "hs-head-list" }, this.criteria),
      make("p", { class: "hs-hint" }, MINIMALITY),
      this.help,
    );
  }

  /** The choices that are not the default ones, as fields of the body. */
  chosen() {
    /** @type {{ mlps?: boolean, ablation?: "mean" | "zero" }} */
    const fields = {};
    const { nodes, ablation } = this.choices;
    if (nodes === "mlps") fields.mlps = true;
    if (ablation === "mean" || ablation === "zero") fields.ablation = ablation;
    return fields;
  }

  /** Open the head of a node. @param {Pick<NodeInCircuit, "layer" | "head">} node */
  choose({ layer, head }) {
    if (head !== null) this.store.view.choose([layer, head]);
  }

  /** @param {NodeInCircuit} node */
  openNode(node) {
    this.graph.mark(null);
    this.choose(node);
    this.details.textContent = nodeWords(node);
    this.cut.hidden = true;
    this.opened.hidden = false;
  }

  /** @param {EdgeInCircuit} edge */
  openEdge(edge) {
    const isSender = (/** @type {NodeInCircuit} */ { layer, head }) => String([layer, head]) === String(edge.sender);
    const sender = this.shown && nodesOf(this.shown).find(isSender);
    this.graph.mark(edgeName(edge));
    const words = `if this edge alone is cut from the circuit, ${percent(edge.lost)} of the effect is lost.`;
    this.details.textContent = `${edgeName(edge)}: ${words} ${sender ? nodeWords(sender) : ""}`;
    const receiver = headOf(edge.receiver);
    const { way } = edge;
    this.cut.hidden = !receiver;
    if (receiver && way) {
      this.cut.textContent = `Which heads feed the ${WAYS[/** @type {Way} */ (way)]} of ${spokenHead(receiver)}?`;
      this.ask = () => {
        this.store.view.choose(receiver);
        this.store.view.set({ ask: feeding.key, askWith: writeChoices({ by: "cut", way }, feeding.defaults) });
      };
    }
    this.opened.hidden = false;
  }

  /** @param {CircuitAnswer} answer @returns {Graph} */
  graphOf(answer) {
    const { heads, edges, pairs } = answer;
    const words = wordsRead(heads);
    const reads = heads.map(({ layer, head, key, weight }) => ({
      from: words.findIndex((word) => word.key === key),
      to: /** @type {PictureId} */ ([layer, head]),
      part: weight,
      css: "hs-reads",
    }));
    const writes = edges.map((edge) => ({ ...lineOf(edge, edges), open: () => this.openEdge(edge) }));
    const nodes = nodesOf(answer).map((node) => ({ ...headOfGraph(node), open: () => this.openNode(node) }));
    const end = pairs.length ? { text: pairs[0].answer.text, note: "next" } : null;
    return { heads: nodes, lines: [...reads, ...writes], words, end };
  }

  /** @returns {Asked} */
  request() {
    const { model, n_layer, n_head } = this.store.pointer;
    const { mlps, ablation = "resample" } = this.chosen();
    this.nodes.show(mlps ? "mlps" : "heads");
    this.ablations.show(ablation);
    const isText = this.choices.set === TEXT;
    this.own.hidden = !isText;
    const chosen = isText ? this.twin.pair() : this.set.rows();
    this.set.show();
    if (typeof chosen === "string") return chosen;
    const { rows: prompts, set: about } = "rows" in chosen ? chosen : { rows: [rowOf(chosen)], set: undefined };
    const method = n_layer * n_head > MAX_EXACT_HEADS ? "attribution" : "exact";
    return { route: "circuit", body: { model, prompts, method, ...this.chosen() }, set: about };
  }

  /** What is left of the circuit while it is found. @param {LeftOfCircuit | null} left */
  grow(left) {
    if (left) this.conclude(...leftPlain(left));
    else this.height = GRAPH_HEIGHT;
    const { nodes, edges } = left ?? { nodes: [], edges: [] };
    const drawn = mainNodes(nodes);
    this.opened.hidden = true;
    this.shown = null;
    const heads = drawn.map((node) => ({ ...headOfGraph(node), open: () => this.choose(node) }));
    const lines = edges.map((edge) => lineOf(edge, edges));
    this.height = this.graph.show({ heads, lines, end: null }, this.height);
  }

  /** @param {CircuitAnswer} answer */
  draw(answer) {
    const { pairs, left_out } = answer;
    this.conclude(circuitPlain(answer, this.choices.set === TEXT ? this.twin.words() : null));
    if (answer === this.shown) return;
    this.shown = answer;
    this.opened.hidden = true;
    const mean = (/** @type {"clean" | "corrupted"} */ name) =>
      fixed(pairs.reduce((sum, pair) => sum + pair[name], 0) / pairs.length, 2);
    const range = pairs.map((pair) => pair.kept);
    const [least, most] = [Math.min(...range), Math.max(...range)].map(percent);
    const byPair = pairs.length > 1 ? `; for single pairs, the circuit keeps ${least} to ${most}` : "";
    const without = left_out.length ? ` Left out: ${counted(left_out.length, "pair")} without an effect.` : "";
    const means = `${mean("clean")} in the prompts, ${mean("corrupted")} in the corrupted ones`;
    this.sentence.textContent = `The effect is the mean difference of the two logits: ${means}${byPair}.${without}`;
    this.help.textContent = `${ROUTES[answer.route]} ${ABLATION_HELP[this.chosen().ablation ?? "resample"]}`;
    this.graph.show(this.graphOf(answer), this.height);
    this.complete.textContent = completeWords(answer);
    const nodes = nodesOf(answer).sort((a, b) => b.minimality - a.minimality);
    fillRows(
      this.criteria,
      nodes.map((node) => [
        smallButton(nodeName([node.layer, node.head]), () => this.openNode(node)),
        ...[node.lost, node.minimality].map((each) => makeCell(percent(each), { class: "hs-number-cell" })),
      ]),
    );
    this.drawParts(answer);
  }

  /** The heads and the edges, also on the tiles. @param {CircuitAnswer} answer */
  drawParts({ heads, edges }) {
    fillRows(
      this.table,
      [...edges]
        .sort((a, b) => Math.abs(b.lost) - Math.abs(a.lost))
        .map((edge) => [
          smallButton(edgeName(edge), () => this.openEdge(edge)),
          makeCell(percent(edge.lost), { class: "hs-number-cell" }),
        ]),
    );
    const rows = heads.map(({ layer, head, lost, reads, promoted }) => ({
      picture: /** @type {PictureId} */ ([layer, head]),
      value: lost,
      text: `${percent(lost)}: “${visible(reads.text)}” → “${visible(promoted[0]?.text ?? "")}”`,
    }));
    rows.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    this.list.show("lost without it, and what it reads and writes in the first prompt", rows);
    const { n_layer, n_head } = this.store.pointer;
    const values = Array.from({ length: n_layer }, () => /** @type {(number | null)[]} */ (Array(n_head).fill(null)));
    for (const { layer, head, lost } of heads) values[layer][head] = lost;
    this.overlay({
      title: "Share of the effect that is lost without each head of the circuit",
      values,
      most: Math.max(...rows.map(({ value }) => Math.abs(value)), 1e-6),
      ramp: "change",
      short: (value) => percent(value).replace("%", ""),
      long: percent,
      ends: ["works against the effect", "needed for the effect"],
      arcs: arcsOf(edges),
    });
  }
}

/** @param {EdgeInCircuit} edge @param {EdgeInCircuit[]} edges among which it is drawn */
const lineOf = (edge, edges) => ({
  from: edge.sender,
  to: edge.receiver,
  part: Math.abs(edge.lost) / Math.max(...edges.map(({ lost }) => Math.abs(lost)), 1e-9),
  css: edge.lost < 0 ? "hs-less" : "",
  label: `${edgeName(edge)}: ${percent(edge.lost)} lost without it`,
  key: edgeName(edge),
});

/** @param {Pick<NodeInCircuit, "layer" | "head" | "lost">} node */
const headOfGraph = ({ layer, head, lost }) => ({
  picture: /** @type {GraphNode} */ ([layer, head]),
  note: percent(lost),
  label: `${capitalised(spokenNode([layer, head]))}: ${percent(lost)} lost without it`,
});

/** The nodes that matter most in each layer. @param {LeftOfCircuit["nodes"]} nodes */
function mainNodes(nodes) {
  const sorted = [...nodes].sort((a, b) => Math.abs(b.lost) - Math.abs(a.lost));
  const place = (/** @type {LeftOfCircuit["nodes"][0]} */ node) =>
    sorted.filter(({ layer }) => layer === node.layer).indexOf(node);
  return nodes.filter((node) => place(node) < MAX_IN_LAYER);
}

/**
 * How far the search is.
 * @param {LeftOfCircuit} left
 * @returns {[string, string]}
 */
export function leftPlain({ nodes, edges, n_edges }) {
  const mlps = nodes.filter(({ head }) => head === null).length;
  const names = [counted(nodes.length - mlps, "head"), ...(mlps ? [counted(mlps, "MLP")] : [])];
  const few = mainNodes(nodes).length < nodes.length ? ` Up to ${MAX_IN_LAYER} of each layer are drawn.` : "";
  if (n_edges === null)
    return [`Left so far: ${listed(names)}.`, `They are enough; next, each edge between them is cut in turn.${few}`];
  const shown = edges.length < n_edges ? ` The ${edges.length} that matter most are drawn.` : "";
  const next = `Edges are cut as long as most of the effect stays.${shown}${few}`;
  return [`Left so far: ${listed([...names, counted(n_edges, "edge")])}.`, next];
}

/**
 * How faithful the circuit is, and over what, in one sentence.
 * @param {Pick<CircuitAnswer, "kept" | "heads" | "mlps" | "edges" | "pairs" | "route">} answer
 * @param {string | null} [change] how the text on the page was changed; null where the prompts are others
 */
export function circuitPlain({ kept, heads, mlps, edges, pairs, route }, change = null) {
  const nodes = counted(heads.length, "head") + (route === "direct" ? `, ${counted(mlps.length, "MLP")}` : "");
  const parts = `${nodes} and ${counted(edges.length, "edge")}`;
  const answers = new Set(pairs.map(({ answer }) => answer.id));
  const named = answers.size === 1 ? spoken(pairs[0].answer.text) : "the answers";
  // In a pair the corrupted prompt may favour the answer more.
  const way = pairs.reduce((sum, { clean, corrupted }) => sum + clean - corrupted, 0) < 0 ? "away from" : "towards";
  const over = change === null ? `Over ${counted(pairs.length, "other prompt")}` : `In this text, ${change}`;
  const left = `${percent(kept)} of the pull ${way} ${named} is left`;
  return `${over}, ${parts} are enough: with everything else silenced, ${left}.`;
}

/**
 * The positions of the first prompt that heads look at most, in their order.
 * @param {Pick<HeadInCircuit, "key" | "reads" | "weight">[]} heads
 */
export function wordsRead(heads) {
  /** @type {Map<number, { key: number, text: string, weight: number }>} */
  const found = new Map();
  for (const { key, reads, weight } of heads) {
    const word = found.get(key) ?? { key, text: reads.text, weight: 0 };
    word.weight += weight;
    found.set(key, word);
  }
  const most = [...found.values()].sort((a, b) => b.weight - a.weight).slice(0, MAX_WORDS);
  return most.sort((a, b) => a.key - b.key).map((word) => ({ ...word, note: `position ${word.key}` }));
}

/** A pair as a row. @param {ChangedPair} pair */
const rowOf = ({ tokens: prompt, ...columns }) => ({ prompt, ...columns });

/**
 * A node as a head; null for an MLP and for the logits.
 * @param {EdgeInCircuit["receiver"]} node
 * @returns {PictureId | null}
 */
const headOf = (node) => (node === null || node[1] === null ? null : [node[0], node[1]]);

/** One arc for each pair of heads, as strong as the strongest edge between them. @param {EdgeInCircuit[]} edges */
export function arcsOf(edges) {
  const most = Math.max(...edges.map(({ lost }) => Math.abs(lost)), 1e-9);
  /** @type {Map<string, Arc>} */
  const arcs = new Map();
  for (const { sender, receiver, lost } of edges) {
    const [from, to] = [headOf(sender), headOf(receiver)];
    if (!from || !to) continue;
    const key = `${from} ${to}`;
    const part = Math.max(Math.abs(lost) / most, arcs.get(key)?.part ?? 0);
    arcs.set(key, { from, to, part });
  }
  return [...arcs.values()];
}
