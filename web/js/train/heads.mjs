// All heads on one fixed sentence at each snapshot, and one of them enlarged.

import { mouseOrTouch, make, setFlag } from "../lib/dom.mjs";
import { canvasOf, context2d } from "../lib/drawing/canvas.mjs";
import { ThumbnailPainter, weightOf } from "../lib/drawing/images.mjs";
import { onThemeChange, palette } from "../lib/drawing/palette.mjs";
import { Scale } from "../lib/drawing/scale.mjs";
import { allHeads, headAt, headName, strongestHead } from "../lib/heads.mjs";
import { CLEAR_ROLE } from "../lib/metrics.mjs";
import { fromBase64 } from "../lib/bytes.mjs";
import { Thumbnails } from "../lib/drawing/thumbnails.mjs";
import { visible } from "../lib/words.mjs";
import { aboutRoles, bestFor, roleWords } from "./words.mjs";
import { legend, TimeChart } from "./time_chart.mjs";
import { StepSlider } from "./step_slider.mjs";

/** @import { SnapshotEvent, StartEvent, TrainEvent } from "./types.js" */

const SCALE = new Scale({ scale: "sqrt", threshold: 0, hideFirst: false });
const CELL = 12; // pixels of a cell of the large picture

/** The index of the head that looks back most clearly. @param {NonNullable<SnapshotEvent["heads"]>} heads */
function clearest(heads) {
  const scores = heads.roles.flatMap((row, layer) =>
    row.map((has, head) => {
      const highest = Math.max(...ROLE_ENTRIES.map(([role]) => heads[role][layer][head]));
      return highest + (has && has[0] in ROLES ? 1 : 0); // a clear role comes first
    }),
  );
  return scores.indexOf(Math.max(...scores));
}

/** @typedef {{ step: number, event: SnapshotEvent, thumbnails: Thumbnails }} Snapshot */

export class HeadsPanel {
  /** @type {StartEvent | null} */
  #start = null;
  /** @type {{ button: HTMLButtonElement, canvas: HTMLCanvasElement }[]} */
  #tiles = [];
  #open = 0; // the head that is shown large
  #isChosen = false; // by the visitor; until then it is the one with the clearest role

  constructor() {
    this.sentence = make("p", { class: "ht-sentence" });
    this.grid = make("div", { class: "ht-tiles", role: "group", "aria-label": "All heads: rows are layers" });
    this.large = make("canvas", { class: "ht-large", role: "img" });
    this.name = make("b", {});
    this.readout = make("p", { class: "hs-hint ht-readout" });
    this.large.addEventListener("pointermove", (event) => this.#point(event));
    this.large.addEventListener("pointerleave", () => this.#point(null));
    /** @type {StepSlider<Snapshot>} */
    this.slider = new StepSlider("Snapshot", (snapshot) => this.#draw(snapshot));
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Heads"), this.slider.words);
    const one = make("div", { class: "ht-one" }, this.name, this.large, this.readout);
    const both = make("div", { class: "ht-both" }, this.grid, one);
    const label = { class: "hs-panel ht-heads", "aria-label": "Heads" };
    this.element = make("section", label, top, this.sentence, both, this.slider.range);
    onThemeChange(() => this.slider.draw());
  }

  reset() {
    this.#start = null;
    this.#tiles = [];
    this.#open = 0;
    this.#isChosen = false;
    this.slider.clear();
    this.grid.replaceChildren();
    for (const element of [this.sentence, this.name, this.readout]) element.textContent = "";
  }

  /** @param {TrainEvent} event */
  receive(event) {
    if (event.kind === "start") this.#build(event);
    else if (event.kind === "snapshot" && this.#start) {
      const thumbnails = new Thumbnails(this.#tiles.length);
      const cells = fromBase64(event.cells);
      thumbnails.merge({ rows: this.#start.tokens.length, factor: 1, first: 0 }, cells);
      this.slider.add({ step: event.step, event, thumbnails });
    } else if (event.kind === "end") this.slider.seek(event.kept);
  }

  /** @param {StartEvent} start */
  #build(start) {
    this.#start = start;
    const text = start.tokens.map(visible).join("");
    this.sentence.textContent = `“… ${text} …”, ${start.tokens.length} characters of the held-out text`;
    this.grid.style.setProperty("--ht-columns", String(start.n_head));
    this.#tiles = allHeads(start).map((picture, i) => {
      const canvas = make("canvas");
      const name = headName(picture);
      const button = make("button", { type: "button", title: name }, canvas, make("span", {}, name));
      button.addEventListener("click", () => {
        this.#open = i;
        this.#isChosen = true;
        this.slider.draw();
      });
      return { button, canvas };
    });
    this.grid.replaceChildren(...this.#tiles.map(({ button }) => button));
  }

  /** @param {Snapshot} snapshot */
  #draw({ thumbnails, event }) {
    if (!this.#isChosen && event.heads) this.#open = clearest(event.heads);
    const painter = new ThumbnailPainter(thumbnails, SCALE, palette().looks.pixels, Infinity);
    this.#tiles.forEach(({ button, canvas }, i) => {
      canvas.width = canvas.height = painter.side;
      context2d(canvas).putImageData(painter.paint(i), 0, 0);
      setFlag(button, "aria-pressed", i === this.#open);
    });
    this.#drawLarge(painter);
    this.#point(null);
  }

  /** @param {ThumbnailPainter} painter */
  #drawLarge(painter) {
    const { side } = painter;
    this.large.width = this.large.height = side * CELL;
    const context = context2d(this.large);
    context.imageSmoothingEnabled = false;
    context.drawImage(canvasOf(painter.paint(this.#open)), 0, 0, side * CELL, side * CELL);
    const name = this.#tiles[this.#open].button.title;
    this.name.textContent = name + this.#role();
    this.large.setAttribute("aria-label", `Attention weights of ${name}: rows are queries, columns keys`);
  }

  /** The role that the open head fits best, if it is clear. */
  #role() {
    const heads = this.slider.shown?.event.heads;
    if (!heads || !this.#start) return "";
    const [layer, head] = headAt(this.#open, this.#start);
    return `: ${roleWords(heads.roles[layer][head])}`;
  }

  /** The strongest weight under the pointer, or what the picture shows. @param {PointerEvent | null} event */
  #point(event) {
    const tokens = this.#start?.tokens ?? [];
    const { shown } = this.slider;
    if (!event || !shown) {
      this.readout.textContent =
        "Each row is a character (query), each column one that it looks at (key): " +
        `${mouseOrTouch("point at", "tap")} a cell.`;
      return;
    }
    const { left, top, width } = this.large.getBoundingClientRect();
    const key = Math.floor(((event.clientX - left) / width) * tokens.length);
    const query = Math.floor(((event.clientY - top) / width) * tokens.length);
    if (key > query || !(query in tokens) || !(key in tokens)) return;
    const { thumbnails } = shown;
    const byte = thumbnails.pooled(this.#open, 1, thumbnails.side)[query * thumbnails.side + key];
    this.readout.textContent =
      `“${visible(tokens[query])}” at position ${query} (query) looks at “${visible(tokens[key])}” at ${key} (key): ` +
      `about ${weightOf(byte).toFixed(2)}`;
  }
}

// The roles of heads over the training: for each role the score of the head that fits it best, at each snapshot.

const ROLES = /** @type {const} */ ({
  previous_token: { name: "previous token", css: "ht-role-1", help: "looks at the previous character" },
  duplicate_token: { name: "duplicate token", css: "ht-role-2", help: "looks at the same character, further back" },
  induction: { name: "induction", css: "ht-role-3", help: "looks at what followed the same character, further back" },
});
const ROLE_ENTRIES = /** @type {[keyof typeof ROLES, (typeof ROLES)[keyof typeof ROLES]][]} */ (Object.entries(ROLES));
const UNIFORM_ENTRY = { name: "attention spread evenly", css: "ht-uniform" };

export class ScoresPanel {
  /** @type {SnapshotEvent[]} */
  #snapshots = [];
  #kept = -1; // the step whose weights are kept, once the training has ended
  /** @type {StartEvent | null} */
  #start = null;

  constructor() {
    this.chart = new TimeChart("Highest score of any head for each role");
    this.best = make("ul", { class: "ht-best" });
    const lesson = make("a", { href: "#learn/11" }, "See how one is born");
    const born = "No induction head yet: it takes far more training than this. ";
    this.none = make("p", { hidden: true }, born, lesson, ", in lesson 11.");
    const top = make("div", { class: "hs-top" }, make("h2", {}, "Roles of heads"));
    this.element = make("section", { class: "hs-panel ht-scores", "aria-label": "Roles of heads" }, top);
    this.element.append(
      this.chart.element,
      legend([...ROLE_ENTRIES.map(([, role]) => role), UNIFORM_ENTRY]),
      this.best,
      this.none,
    );
    const about = make("p", { class: "hs-hint" }, aboutRoles(CLEAR_ROLE));
    this.element.append(make("details", {}, make("summary", {}, "How a role is measured"), about));
    new ResizeObserver(() => this.#draw()).observe(this.chart.element);
  }

  reset() {
    this.#snapshots = [];
    this.#kept = -1;
    this.#start = null;
    this.chart.element.replaceChildren();
    this.best.replaceChildren();
    this.none.hidden = true;
  }

  /** @param {TrainEvent} event */
  receive(event) {
    if (event.kind === "start") this.#start = event;
    else if (event.kind === "snapshot" && event.heads) {
      this.#snapshots.push(event);
      this.#draw();
    } else if (event.kind === "end") {
      this.#kept = event.kept;
      this.#draw();
    }
  }

  #draw() {
    const last = this.#snapshots.find(({ step }) => step === this.#kept) ?? this.#snapshots.at(-1);
    if (!this.#start || !last?.heads) return;
    const inTime = [...this.#snapshots].sort((a, b) => a.seconds - b.seconds); // the last may be an earlier one, kept
    const lines = ROLE_ENTRIES.map(([role, { name, css }]) => ({
      name,
      css,
      points: inTime.flatMap((snapshot) =>
        snapshot.heads
          ? [/** @type {[number, number]} */ ([snapshot.seconds, strongestHead(snapshot.heads[role]).value])]
          : [],
      ),
    }));
    const highest = Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => value)));
    const { heads } = last;
    const { uniform } = heads;
    this.none.hidden = this.#kept < 0 || bestFor("induction", heads).isClear;
    const levels = [{ name: "", css: "ht-uniform", value: uniform }];
    const range = {
      last: Math.max(this.#start.seconds, inTime[inTime.length - 1].seconds),
      low: 0,
      high: Math.max(0.2, highest * 1.15),
    };
    this.chart.draw(lines, levels, range);
    const rows = ROLE_ENTRIES.map(([role, { name, help }]) => {
      const { picture, value, isClear } = bestFor(role, heads);
      const score = value.toFixed(2);
      const words = isClear ? `${headName(picture)}, ${score}` : `none yet; ${headName(picture)} scores ${score}`;
      return make("li", {}, make("b", {}, name), ` (${help}): ${words}`);
    });
    this.best.replaceChildren(...rows);
  }
}
