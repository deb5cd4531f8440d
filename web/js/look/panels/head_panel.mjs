// The open picture: its three views, and the table of its numbers.

import { isStill, make, PHONE, setHidden, setText } from "../../lib/dom.mjs";
import { capitalised } from "../../lib/words.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
import { scaleOf } from "../../lib/head_masks.mjs";
import { groupSentence } from "../../lib/heads.mjs";
import { icon } from "../../lib/icons.mjs";
import { closeBySwipe } from "../../lib/swipe.mjs";
import { MODES } from "../../lib/options.mjs";
import { roleSentence, scaledWords, shortRole } from "../roles/role_words.mjs";
import { attentionLegend, weightLegend } from "./legend.mjs";
import { Lines } from "./lines.mjs";
import { TextView } from "./text_view.mjs";
import { describePicture } from "./top_heads.mjs";
import { weightText } from "../../lib/numbers.mjs";
import { TableView, TokenRange } from "../../widgets/table_view.mjs";
import { smallButton, tabs } from "../../widgets/controls.mjs";
import { fillTable, makeCell, makeTable, tokenTitle } from "../../widgets/table.mjs";
import { effect, listen, onChange, whenever } from "../../lib/reactive.mjs";

/** @import { ModeName } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */

const MAX_TOP = 0.7; // of the window's height: if the open head starts lower, it is scrolled into view

export class HeadPanel {
  /**
   * @param {ShownText} store
   * @param {HTMLElement[]} actions next to the title
   */
  constructor(store, actions) {
    this.store = store;
    const { view } = store;
    this.view = view;
    this.title = make("h2", {});
    const table = headTable(store);
    /** @type {Record<ModeName, HTMLElement>} */
    this.parts = {
      matrix: make("div", {}, new Matrix(store, store.selection).element),
      text: textPart(store),
      lines: new Lines(store).element,
    };
    this.modes = tabs("View", MODES, (mode) => this.view.set({ mode }));
    const close = smallButton(icon("close"), () => this.lift(false), {
      class: "hs-close",
      "aria-label": "Back to the heads",
    });
    const top = make("div", { class: "hs-top" }, this.title, ...actions, table.toggle, close);
    this.role = make("p", { class: "hs-head-role" });
    // It reserves a line, because its words arrive later.
    this.measured = make("p", { class: "hs-head-role hs-role-line" });
    const text = new SheetText(store);
    this.element = make("section", { class: "hs-panel hs-open" }, top, text.element, this.role, this.measured);
    this.element.append(make("div", { class: "hs-controls" }, this.modes.element), ...Object.values(this.parts));
    this.element.append(weightLegend(store), table.element);
    effect(() => this.describe());
    effect(() => this.show());
    this.#liftOnPhones(text);
  }

  /**
   * On a phone the open head is below the grid and comes up as a sheet when a head is tapped.
   * @param {SheetText} text
   */
  #liftOnPhones(text) {
    const { store } = this;
    onChange(
      () => [this.view.isLifted],
      () => {
        this.element.classList.toggle("hs-sheet", this.view.isLifted);
        text.show(this.view.isLifted);
        if (this.view.isLifted) this.element.scrollTop = 0;
      },
    );
    closeBySwipe(
      this.element,
      () => this.view.isLifted,
      () => this.lift(false),
      ".hs-board, .hs-lines, .hs-text, input",
    );
    onChange(
      () => [store.clicks],
      () => {
        const isPhone = matchMedia(PHONE).matches;
        this.lift(isPhone);
        const isBelow = this.element.getBoundingClientRect().top > MAX_TOP * innerHeight;
        if (isBelow && !isPhone)
          this.element.scrollIntoView({ block: "nearest", behavior: isStill() ? "auto" : "smooth" });
      },
    );
    onChange(
      () => [this.view.options.ask],
      () => this.lift(false), // the questions need the room
    );
    listen(matchMedia(PHONE), "change", () => this.lift(false));
    listen(document, "keydown", (event) => {
      if (event.key !== "Escape" || !this.element.classList.contains("hs-sheet")) return;
      event.preventDefault();
      this.lift(false);
    });
  }

  describe() {
    const { pointer, open } = this.store;
    const group = groupSentence(open, pointer);
    setText(this.role, `${scaledWords(pointer, open) || describePicture(this.store, open)} ${group}`);
    this.element.classList.toggle("hs-removed", scaleOf(pointer.head_mask, open) === 0);
    setText(this.measured, shortRole(this.store, this.store.open));
    this.measured.title = roleSentence(this.store, this.store.open);
  }

  show() {
    const { mode } = this.view.options;
    for (const [name, part] of Object.entries(this.parts)) setHidden(part, name !== mode);
    this.modes.show(mode);
    setText(this.title, capitalised(this.store.openName));
    this.element.setAttribute("aria-label", `Attention weights, ${this.store.openName}`);
  }

  /** @param {boolean} isUp */
  lift(isUp) {
    this.view.lift(isUp);
  }
}

/** @param {ShownText} store */
function textPart(store) {
  const text = new TextView(store, {
    label: "Text of the open head",
    isShown: () => store.view.options.mode === "text",
  });
  return make("div", { class: "hs-head-text" }, text.element, text.announcement, attentionLegend());
}

/** @param {ShownText} store */
function headTable(store) {
  const table = makeTable({});
  const [queries, keys] = ["queries from", "keys from"].map((label) => new TokenRange(label, () => view.refresh()));
  const fields = make("p", { class: "hs-window" }, queries.element, keys.element);
  const view = new TableView("Show as a table", draw, fields, make("div", {}, table));
  whenever(
    () => [store.open, store.count, store.drawing],
    () => view.refresh(),
  );
  return view;

  function draw() {
    const { tokens, weights, count: n } = store;
    const columns = keys.positions(n);
    fillTable(table, {
      caption: `Attention weights, ${store.openName}`,
      titles: [makeCell("query ↓ key →"), ...columns.map((key) => tokenTitle(tokens, key))],
      rows: queries
        .positions(n)
        .map((query) => [
          tokenTitle(tokens, query),
          ...columns.map((key) => (weights.sees(query, key) ? weightText(weights.at(query, key)) : "")),
        ]),
    });
  }
}

class SheetText {
  /** @type {TextView | null} made when it is first needed */
  #view = null;

  /** @param {ShownText} store */
  constructor(store) {
    this.store = store;
    this.element = make("div", { class: "hs-sheet-text", hidden: true });
    onChange(
      () => [store.selection.focus?.query, store.length],
      () => this.follow(),
    );
  }

  /** @param {boolean} isShown */
  show(isShown) {
    setHidden(this.element, !isShown);
    if (!isShown) return;
    if (!this.#view) {
      this.#view = new TextView(this.store, { label: "Text around the selected token" });
      this.element.append(this.#view.element, this.#view.announcement);
    }
    this.#view.fit();
    this.#view.fill();
    this.#view.colour();
    this.follow();
  }

  /** Scroll the selected token to the middle; a token under the pointer is already in view. */
  follow() {
    const { focus, hover } = this.store.selection;
    if (this.element.hidden || !this.#view || !focus || hover) return;
    const { element } = this.#view;
    const span = this.#view.span(focus.query);
    if (!span) return;
    const [box, room] = [span.getBoundingClientRect(), element.getBoundingClientRect()];
    element.scrollTop += box.top + box.height / 2 - room.top - room.height / 2;
  }
}
