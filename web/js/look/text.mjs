// The text as flowing tokens, coloured by where the chosen tokens look (before them) and by who looks at them (after),
// or by how surprising each token was.

import { make } from "./dom.mjs";
import { palette } from "./palette.mjs";
import { Scale } from "./scale.mjs";
import { walk } from "./walk.mjs";
import { visible } from "./words.mjs";

export const MOST_BITS = 8; // of surprise: the end of its ramp
const FAINT = 12; // steps below which a token keeps the page's own colours
const MARKS = ["hs-query", "hs-key", "hs-unread", "hs-later", "hs-chosen"];

// The style sheet gives them a sign: a line end is shown and broken, and the text itself stays true.
const SPACES = { " ": "hs-space", "\n": "hs-line", "\t": "hs-tab" };
const shownSpaces = (text) => text.split(/([ \n\t])/).map((part) => (SPACES[part] ? make("span", { class: SPACES[part] }, part) : part));

/** How surprising a token was, in bits; null where it was not predicted. */
export const bits = (token) => (token.logprob == null ? null : -token.logprob / Math.LN2);

export class TextView {
  /** `canSurprise`: whether it follows the choice to colour by surprise. */
  constructor(store, { canSurprise = false, label = "Text" } = {}) {
    this.store = store;
    this.canSurprise = canSurprise;
    this.spans = [];
    this.looks = []; // of each span, so that only what changes is touched
    this.element = make("div", { class: "hs-text", tabindex: 0, role: "group", "aria-label": label });
    this.earlier = make("span", { class: "hs-earlier", title: "No longer in the context" });
    this.element.append(this.earlier);
    this.spoken = make("p", { class: "hs-hidden", "aria-live": "polite" });
    this.element.addEventListener("pointerover", (event) => this.point(event.target));
    this.element.addEventListener("pointerleave", () => store.point(null));
    this.element.addEventListener("click", (event) => this.lock(event));
    // With shift a browser would select the text up to there.
    this.element.addEventListener("mousedown", (event) => {
      if (!event.shiftKey) return;
      event.preventDefault();
      this.element.focus({ preventScroll: true });
    });
    this.element.addEventListener("keydown", (event) => walk(store, event, "ArrowLeft", "ArrowRight", this.spoken));
    this.element.addEventListener("blur", () => store.point(null));
    store.on("state", () => this.fit());
    store.on("tokens", () => this.fill());
    store.on("tokens focus view step", () => this.colour());
    store.on("step", () => this.reach());
  }

  /** Drop the spans of a run that is no longer shown. */
  fit() {
    const { element, store, atEnd } = this;
    element.classList.toggle("hs-growing", ["waiting", "writing"].includes(store.pointer.state));
    const earlier = this.canSurprise ? (store.pointer.earlier ?? "") : ""; // beside a head it has no colour
    if (this.earlier.textContent !== earlier) this.earlier.textContent = earlier;
    if (store.tokens.length >= this.spans.length) return;
    element.replaceChildren(this.earlier);
    this.spans = [];
    this.looks = [];
    if (earlier && atEnd) element.scrollTop = element.scrollHeight;
  }

  get atEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.element;
    return scrollHeight - scrollTop - clientHeight < 40;
  }

  fill() {
    const { element, store, atEnd } = this;
    for (let i = this.spans.length; i < store.tokens.length; i++) {
      const { text } = store.tokens[i];
      const span = make("span", { class: i < store.pointer.n_prompt ? "hs-token hs-prompted" : "hs-token", "data-i": i });
      // Most tokens of a model of characters need no more than themselves.
      if (SPACES[text]) span.classList.add(SPACES[text]);
      span.append(...(text.length > 1 ? shownSpaces(text) : [text]));
      this.spans.push(span);
      element.append(span);
    }
    // Those of the prompt are known once it was read.
    if (this.canSurprise) this.spans.forEach((span, i) => (span.title ||= this.said(store.tokens[i])));
    if (atEnd) element.scrollTop = element.scrollHeight;
  }

  /** Scroll to the token whose writing is looked at, without moving the page. */
  reach() {
    const { element, store } = this;
    const span = store.step === null ? null : this.spans[store.step];
    if (!span) return;
    const [box, room] = [span.getBoundingClientRect(), element.getBoundingClientRect()];
    if (box.top < room.top) element.scrollTop += box.top - room.top;
    else if (box.bottom > room.bottom) element.scrollTop += box.bottom - room.bottom;
  }

  colour() {
    if (!this.element.isConnected || this.element.closest("[hidden]")) return;
    const { store } = this;
    const { focus, queries } = store;
    const locked = new Set(queries);
    const surprise = this.canSurprise && store.view.options.surprise;
    const paint = surprise ? this.surprised() : this.attended(queries);
    const end = store.step ?? Infinity;
    for (const [i, span] of this.spans.entries()) {
      const [ramp, step] = paint(i);
      const marks = [locked.has(i), focus?.key === i, i >= store.count, i > end, i === end];
      const look = `${marks.map(Number).join("")}${step > FAINT ? ramp.css[step] : ""}`;
      if (look === this.looks[i]) continue; // most tokens stay as they are from one hover to the next
      this.looks[i] = look;
      MARKS.forEach((name, which) => span.classList.toggle(name, marks[which]));
      span.style.backgroundColor = step > FAINT ? ramp.css[step] : "";
      span.style.color = step > FAINT ? ramp.ink[step] : "";
    }
  }

  /** The ramp and step of a token by attention: the strongest, where several are locked. */
  attended(queries) {
    const { store } = this;
    const { looks, seen } = palette();
    const scale = new Scale(store.view.options);
    const largest = new Map(queries.map((query) => [query, scale.largest(store.row(query), 0, query + 1)]));
    return (i) => {
      if (i >= store.count) return [looks, 0];
      let [ramp, step] = [looks, 0];
      for (const query of queries) {
        const back = i <= query;
        const weight = back ? store.weights.at(query, i) : store.weights.at(i, query);
        // Who looks at the first token is hidden with it.
        const most = back ? largest.get(query) : scale.perRow ? scale.largest(store.row(i), 0, i + 1) : 1;
        const found = scale.step(weight, back ? i : query, most);
        if (found > step) [ramp, step] = [back ? looks : seen, found];
      }
      return [ramp, step];
    };
  }

  surprised() {
    const { surprise } = palette();
    return (i) => {
      const value = bits(this.store.tokens[i]);
      return [surprise, value === null ? 0 : Math.min(255, Math.round((255 * value) / MOST_BITS))];
    };
  }

  said(token) {
    const value = bits(token);
    return value === null ? "" : `“${visible(token.text)}”: probability ${(2 ** -value).toFixed(4)}, ${value.toFixed(2)} bits`;
  }

  position(target) {
    const span = target.closest?.(".hs-token");
    return span ? Number(span.dataset.i) : null;
  }

  point(target) {
    const query = this.position(target);
    if (query !== null) this.store.point({ query });
  }

  lock(event) {
    const query = this.position(event.target);
    if (query !== null) this.store.lock({ query }, event.shiftKey);
  }
}
