// The texts of a comparison: a title for each, its tokens (shared ones in grey, with marks where the texts differ), the
// model that reads the second text, and both as a table.

import { make } from "../../lib/dom.mjs";
import { clamp, counted, exact, withSign } from "../../lib/numbers.mjs";
import { baseName, stepOf, visible } from "../../lib/words.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { stepKeys } from "../panels/keyboard.mjs";
import { TextView } from "../panels/text_view.mjs";
import { isBusy, isGiven } from "../state/pointer.mjs";
import { areReadDifferently, changeSentence, nats, tokenChanges } from "./difference.mjs";
import { badge, LETTERS, modelWords } from "./names.mjs";
import { SIDES } from "./pair.mjs";
import { dropdown, rangeInput, setRange } from "../../widgets/controls.mjs";
import { fillTable, makeTable } from "../../widgets/table.mjs";
import { effect, whenever } from "../../lib/reactive.mjs";

/** @import { Pointer } from "../../types.js" */
/** @import { SideName } from "./alignment.mjs" */
/** @import { Pair } from "./pair.mjs" */
/** @import { Texts } from "./texts.mjs" */

const STRONG_CHANGE = 2; // nats: changes this large get the strongest line

export class PairText {
  #marked = "";

  /**
   * @param {Pair} pair
   * @param {SideName} side
   * @param {...HTMLElement} more below the text
   */
  constructor(pair, side, ...more) {
    this.pair = pair;
    this.side = side;
    const store = pair.stores[side];
    this.view = new TextView(store, { label: `Text ${LETTERS[side]}` });
    this.title = make("h2", {});
    this.status = make("p", { class: "hs-status", role: "status" });
    this.problem = make("div", { class: "hs-notices", role: "status" });
    const top = make("div", { class: "hs-top" }, badge(side), this.title, this.status);
    this.element = make("section", { class: `hs-panel hs-pair-text hs-side-${side}` }, top, this.view.element);
    this.change = make("p", { class: "hs-hint hs-pair-change", hidden: true });
    this.change.title = "A token with a line under it is less probable in B, one with a dotted line more probable.";
    this.element.append(this.view.announcement, this.problem, ...more);
    if (side === "a") stepKeys(this.view); // both texts follow
    if (side === "b") this.problem.before(this.change);
    effect(() => this.describe());
    whenever(
      () => pair.progress,
      () => {
        this.view.draw(); // whose tokens are marked
        this.mark();
        if (side === "b") this.markChanges();
      },
    );
  }

  /** @param {string} title */
  name(title) {
    this.title.textContent = title;
    this.title.title = title;
    this.describe();
    this.element.setAttribute("aria-label", title);
  }

  describe() {
    const { pointer, problem, length, playback } = this.pair.stores[this.side];
    const model = modelWords(pointer.model);
    const status = [model === this.title.textContent ? "" : model, progress(pointer, length)];
    this.status.textContent = status.filter(Boolean).join(" · ");
    this.status.title = this.status.textContent;
    const end = playback.isBehind && pointer.state === "done" ? "" : (pointer.why ?? ""); // the end is not shown yet
    const messages = [...pointer.notices, pointer.note, end, problem].filter((message) => message !== "");
    this.problem.replaceChildren(...messages.map((message) => make("p", {}, message)));
  }

  /** Grey out the tokens that both texts share, and mark where the texts diverge. */
  mark() {
    const { alignment, stores } = this.pair;
    const divergesAt = alignment.divergesAt(this.side);
    const { length, pointer } = stores[this.side];
    const changes = alignment.changes(this.side, length);
    const marked = [pointer.run, divergesAt, length, alignment.shared, ...changes].join(" ");
    if (marked === this.#marked) return;
    this.#marked = marked;
    this.view.fit(); // the pair is notified of a text before its view is
    this.view.fill();
    if (!stores[this.side].isGrowing) this.view.scrollToStep(); // both show the same step, in whatever order they came
    for (let i = 0; i < length; i++) {
      const span = this.view.span(i);
      span?.classList.toggle("hs-shared", divergesAt !== null && alignment.isShared(this.side, i));
      span?.classList.toggle("hs-divergence", changes.includes(i));
    }
  }

  /** Underline the tokens that are more or less probable in B than in A. */
  markChanges() {
    const { alignment, stores, isComplete } = this.pair;
    const { a, b } = stores;
    const isOther = isComplete && areReadDifferently(a.pointer, b.pointer);
    const changes = isOther ? tokenChanges(alignment, a.tokens, b.tokens) : [];
    const sentence = changeSentence(changes, alignment.divergesAt("b"));
    this.change.textContent = sentence;
    this.change.hidden = !sentence;
    for (let i = 0; i < b.length; i++) {
      const span = this.view.span(i);
      const change = changes[i] ?? null;
      if (!span || span.dataset.change === String(change?.change)) continue;
      span.dataset.change = String(change?.change);
      span.classList.toggle("hs-changed-token", change !== null);
      span.classList.toggle("hs-likelier", (change?.change ?? 0) > 0);
      if (!change) {
        span.removeAttribute("title");
        continue;
      }
      span.style.setProperty("--hs-strength", String(clamp(Math.sqrt(Math.abs(change.change) / STRONG_CHANGE), 0, 1)));
      const [left, right] = [change.a, change.b].map((logprob) => exact(Math.exp(logprob)));
      span.title = `“${visible(b.tokens[i].text)}”: A ${left}, B ${right}, ${nats(change.change)} nats`;
    }
  }
}

/** @param {Readonly<Pointer>} pointer @param {number} length */
function progress({ state, settings }, length) {
  const seed = typeof settings.seed === "number" ? `seed ${settings.seed}` : "";
  const tokens = counted(length, "token");
  return [isBusy(state) ? `writing: ${tokens}` : state === "failed" ? "failed" : tokens, seed]
    .filter(Boolean)
    .join(" · ");
}

export class SecondModel {
  /** @param {Texts} texts */
  constructor(texts) {
    const { pair } = texts;
    this.texts = texts;
    this.pair = pair;
    this.model = dropdown("Model that reads text B", {}, (name) => this.ask(name));
    this.range = rangeInput({ min: 0, step: 1, "aria-label": "Training step of B" });
    this.range.addEventListener("input", () => this.describe());
    this.range.addEventListener("change", () => this.askStep());
    this.step = make("output", {});
    this.training = make("label", { class: "hs-pair-step-slider" }, "training step ", this.range, this.step);
    this.element = make("div", { class: "hs-controls", hidden: true });
    this.element.append(make("label", {}, "read by ", this.model), this.training);
    whenever(
      () => pair.progress,
      () => this.show(),
    );
  }

  /** Offer the models that are served. */
  fill() {
    this.model.replaceChildren(...this.texts.models.map(({ name }) => make("option", { value: name }, name)));
    this.show();
  }

  /** The steps to choose from for B's model: the snapshots, then the model itself. */
  get steps() {
    const base = baseName(this.pair.stores.b.pointer.model);
    return this.texts.models.find(({ name }) => name === base)?.steps ?? [];
  }

  show() {
    const { pointer } = this.pair.stores.b;
    const { steps } = this;
    const isSameText = isGiven(pointer.state) && this.pair.alignment.divergence === null;
    this.element.hidden = !isSameText || !pointer.run || this.pair.isGrowing;
    if (this.element.hidden) return;
    this.model.value = baseName(pointer.model);
    this.training.hidden = !steps.length;
    if (!steps.length) return;
    const step = stepOf(pointer.model);
    const isFollowing = document.activeElement !== this.range || Number(this.range.value) !== steps.length;
    const at = step === null ? steps.length : steps.indexOf(step);
    setRange(this.range, isFollowing ? at : this.range.value, { max: steps.length });
    this.describe();
  }

  describe() {
    const at = Number(this.range.value);
    const text = at >= this.steps.length ? "final weights" : String(this.steps[at]);
    this.step.textContent = text;
    this.range.setAttribute("aria-valuetext", text);
  }

  askStep() {
    const at = Number(this.range.value);
    const base = baseName(this.pair.stores.b.pointer.model);
    this.ask(at >= this.steps.length ? base : `${base}@${this.steps[at]}`);
  }

  /** @param {string} model */
  ask(model) {
    const { n_layer, n_head, head_mask } = this.pair.stores.b.pointer;
    const isSame = baseName(model) === baseName(this.pair.stores.b.pointer.model) && n_layer && n_head;
    void this.texts.rereads.readAgain({ model, head_mask: isSame ? head_mask : null });
  }
}

/** The tokens of both texts, step by step. @param {Pair} pair */
export function textsTable(pair) {
  const table = makeTable({});
  const view = new TableView("Show texts as a table", draw, make("div", {}, table));
  whenever(
    () => pair.progress,
    () => view.refresh(),
  );
  return view;

  function draw() {
    const rows = Array.from({ length: pair.length }, (_, step) => {
      const [left, right] = SIDES.map((side) => pair.tokenOf(side, step));
      const cells = [left, right].flatMap((token) => [
        token ? `“${visible(token.text)}”` : "",
        token?.logprob == null ? "" : exact(Math.exp(token.logprob)),
      ]);
      const change =
        left?.logprob == null || right?.logprob == null ? "" : withSign(right.logprob - left.logprob, exact);
      return [step, ...cells, change];
    });
    const titles = ["step", "A", "probability", "B", "probability", "log-probability, B − A"];
    fillTable(table, { caption: "Tokens of both texts", titles, rows });
  }
}
