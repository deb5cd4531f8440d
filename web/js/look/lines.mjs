// Two columns of tokens: lines lead from each chosen token (query) to those it looks at (key), as strong as the weight;
// where none is chosen and there is a threshold, from every token.

import { make, sharpContext } from "./dom.mjs";
import { label } from "./axes.mjs";
import { palette } from "./palette.mjs";
import { Scale } from "./scale.mjs";
import { walk } from "./walk.mjs";
import { exact } from "./words.mjs";

const ROW = 17; // CSS pixels of a token
const FAINT = 6; // steps below which no line is drawn
const FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
const EDGE = 0.34; // of the width, for the tokens of either side

export class Lines {
  constructor(store) {
    this.store = store;
    this.canvas = make("canvas", { "aria-hidden": true });
    this.spoken = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.element = make("div", { class: "hs-lines", tabindex: 0, role: "application" }, this.canvas);
    const names = ["this token (query)", "looks at that token (key)"].map((name) => make("span", {}, name));
    const how = "Point at a token or lock it to see its lines only. Without one, “weight at least” shows all lines above it.";
    this.whole = make("div", {}, make("p", { class: "hs-columns" }, ...names), this.element, this.spoken);
    this.whole.append(make("p", { class: "hs-hint" }, how));
    this.element.addEventListener("pointermove", (event) => store.point(this.tokenAt(event)));
    this.element.addEventListener("pointerleave", () => store.point(null));
    this.element.addEventListener("click", (event) => this.lock(event));
    this.element.addEventListener("keydown", (event) => this.move(event));
    this.element.addEventListener("blur", () => store.point(null));
    store.on("open weights tokens view focus", () => this.draw());
    store.on("view step", () => this.reach()); // once they are on the screen, or another token is looked at
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.element.addEventListener("scroll", () => this.draw());
  }

  draw() {
    const { store, element } = this;
    const hint = "Left: this token (query), right: that token (key). Arrow keys move, Enter locks, Escape lets go.";
    element.setAttribute("aria-label", `Lines of ${store.openName}. ${hint}`);
    const [width, height] = [element.clientWidth, element.clientHeight];
    if (!width || element.closest("[hidden]")) return;
    // Only what is in view is drawn: a text of a thousand tokens scrolls under a canvas of the panel's size.
    const context = sharpContext(this.canvas, width, height);
    this.canvas.style.top = `${element.scrollTop}px`;
    const atEnd = this.floor && element.scrollTop + height >= this.floor.offsetHeight - ROW;
    this.spread(store.count * ROW);
    if (atEnd && store.focus?.query === store.count - 1) element.scrollTop = store.count * ROW; // follows the writing
    const { focus } = store;
    const queries = new Set(store.queries);
    this.drawLines(context, width, height);
    const colours = getComputedStyle(element);
    context.font = FONT;
    context.textBaseline = "middle";
    const first = Math.max(0, Math.floor(element.scrollTop / ROW) - 1);
    const last = Math.min(store.count, first + Math.ceil(height / ROW) + 2);
    for (let i = first; i < last; i++) {
      const y = (i + 0.5) * ROW - element.scrollTop;
      for (const [x, align, marked] of [
        [EDGE * width - 8, "right", queries.has(i)],
        [(1 - EDGE) * width + 8, "left", focus?.key === i],
      ]) {
        context.textAlign = align;
        context.fillStyle = marked ? colours.getPropertyValue("--hs-mark") : colours.color;
        const text = `${label(store.tokens[i].text)}`;
        context.fillText(align === "left" ? `${text}  ${this.weightTo(i)}` : `${i}  ${text}`, x, y);
      }
    }
  }

  /** What the token that is spoken of gives to this one. */
  weightTo(key) {
    const { focus, weights } = this.store;
    return focus && focus.key !== null && key <= focus.query ? exact(weights.at(focus.query, key)) : "";
  }

  /** The tokens whose lines are drawn: those that are chosen, or all that were there at the step that is looked at. */
  get sources() {
    const { store } = this;
    if (store.hover || store.locked.length || !store.view.options.threshold) return store.queries;
    return Array.from({ length: Math.min(store.count, store.step ?? Infinity) }, (_, query) => query);
  }

  drawLines(context, width, height) {
    const { store, element } = this;
    const scale = new Scale(store.view.options);
    const ramp = palette().looks;
    const [from, to] = [EDGE * width, (1 - EDGE) * width];
    const y = (i) => (i + 0.5) * ROW - element.scrollTop;
    context.lineWidth = 2;
    // A key is never below its query, so a line from above the view is not in it, and neither is one to below it.
    const [first, last] = [element.scrollTop / ROW - 1, (element.scrollTop + height) / ROW];
    for (const query of this.sources) {
      if (query < first) continue;
      const row = store.row(query);
      const largest = scale.largest(row, 0, query + 1);
      for (let key = 0; key <= query && key <= last; key++) {
        const step = scale.step(row[key], key, largest);
        if (step < FAINT) continue;
        context.globalAlpha = step / 255;
        context.strokeStyle = ramp.css[190];
        context.beginPath();
        context.moveTo(from, y(query));
        context.bezierCurveTo((from + to) / 2, y(query), (from + to) / 2, y(key), to, y(key));
        context.stroke();
      }
    }
    context.globalAlpha = 1;
  }

  /** Make room to scroll for the whole text. */
  spread(height) {
    this.floor ??= this.element.appendChild(make("div", { class: "hs-floor" }));
    this.floor.style.height = `${height}px`;
  }

  tokenAt(event) {
    const box = this.element.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top + this.element.scrollTop) / ROW);
    if (i < 0 || i >= this.store.count) return null;
    const right = event.clientX - box.left > box.width / 2;
    const query = this.store.locked.at(-1)?.query ?? this.store.focus?.query;
    // On the right one points at what the chosen token looks at, on the left one chooses the token.
    if (right) return query !== undefined && i <= query ? { query, key: i } : null;
    return { query: i };
  }

  lock(event) {
    const cell = this.tokenAt(event);
    if (cell) this.store.lock({ query: cell.query }, event.shiftKey);
  }

  move(event) {
    const query = walk(this.store, event, "ArrowUp", "ArrowDown", this.spoken);
    if (query !== null) this.show(query);
  }

  /** Bring the token that is spoken of into view. */
  reach() {
    const { focus } = this.store;
    if (focus && this.element.clientHeight) this.show(focus.query);
  }

  /** Scroll so that this token is in view. */
  show(query) {
    const { element } = this;
    const y = query * ROW;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + ROW > element.scrollTop + element.clientHeight) element.scrollTop = y + ROW - element.clientHeight;
  }
}
