// The text as flowing tokens, coloured by where the chosen token looks (before it) and by who looks at it (after it).

import { make } from "./dom.mjs";
import { palette, step } from "./palette.mjs";
import { sentence } from "./words.mjs";

export class TextView {
  constructor(store) {
    this.store = store;
    this.spans = [];
    this.element = make("div", { class: "hs-text", tabindex: 0, role: "group", "aria-label": "Text" });
    this.spoken = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.element.addEventListener("pointerover", (event) => this.point(event.target));
    this.element.addEventListener("pointerleave", () => store.point(null));
    this.element.addEventListener("click", (event) => this.lock(event.target));
    this.element.addEventListener("keydown", (event) => this.move(event));
    store.on("state", () => this.fit());
    store.on("tokens", () => this.fill());
    store.on("focus", () => this.colour());
  }

  /** Drop the spans of a run that is no longer shown. */
  fit() {
    this.element.classList.toggle("hs-growing", ["waiting", "writing"].includes(this.store.pointer.state));
    if (this.store.tokens.length >= this.spans.length) return;
    this.element.replaceChildren();
    this.spans = [];
  }

  fill() {
    const { element, store } = this;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
    for (let i = this.spans.length; i < store.tokens.length; i++) {
      const { text } = store.tokens[i];
      const kind = i < store.pointer.n_prompt ? "hs-token hs-prompted" : "hs-token";
      const span = make("span", { class: text === " " ? `${kind} hs-space` : kind, "data-i": i });
      // A line end is shown and broken; a lone space gets its dot from the style sheet; the text itself stays true.
      if (text.includes("\n")) span.classList.add("hs-line");
      span.textContent = text;
      this.spans.push(span);
      element.append(span);
    }
    if (atEnd) element.scrollTop = element.scrollHeight;
  }

  colour() {
    const { store } = this;
    const focus = store.focus;
    const { looks, seen } = palette();
    const rows = store.weights.rows;
    for (const [i, span] of this.spans.entries()) {
      span.classList.toggle("hs-query", focus?.query === i);
      span.classList.toggle("hs-key", focus?.key === i);
      span.classList.toggle("hs-unread", i >= rows);
      if (!focus || focus.key === null || i >= rows) {
        span.style.background = span.style.color = "";
        continue;
      }
      const ramp = i <= focus.query ? looks : seen;
      const weight = i <= focus.query ? store.weights.at(focus.query, i) : store.weights.at(i, focus.query);
      const strength = step(weight);
      span.style.backgroundColor = strength > 12 ? ramp.css[strength] : "";
      span.style.color = strength > 12 ? ramp.ink[strength] : "";
    }
  }

  position(target) {
    const span = target.closest?.(".hs-token");
    return span ? Number(span.dataset.i) : null;
  }

  point(target) {
    const query = this.position(target);
    if (query !== null) this.store.point({ query });
  }

  lock(target) {
    const query = this.position(target);
    if (query !== null) this.store.lock({ query });
  }

  move(event) {
    const { store } = this;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") store.lock(null);
    else if (by && store.focus) {
      const query = Math.min(Math.max(store.focus.query + by, 0), store.weights.rows - 1);
      store.point(null);
      store.locked = { query };
      store.emit("focus");
      const { key } = store.focus;
      this.spoken.textContent = sentence(store.tokens, query, key, store.weights.at(query, key));
    } else return;
    event.preventDefault();
  }
}
