// The open picture: its three views, and the table of its numbers.

import { isStill, make, PHONE, setHidden, setText } from "../../lib/dom.mjs";
import { Matrix } from "../../lib/drawing/matrix.mjs";
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
import { effect } from "../../vendor/signals.mjs";
import { TableView, TokenRange } from "../../widgets/table_view.mjs";
import { smallButton, tabs } from "../../widgets/controls.mjs";
import { fillTable, makeCell, makeTable, tokenTitle } from "../../widgets/table.mjs";
import { onChange, whenever } from "../../lib/reactive.mjs";

/** @import { ModeName } from "../../types.js" */
/** @import { Store } from "../state/store.mjs" */

const MAX_TOP = 0.7; // of the window's height: if the open head starts lower, it is scrolled into view

/**
 * @param {Store} store
 * @param {HTMLElement[]} actions next to the title
 */
export function headPanel(store, actions) {
  const { view } = store;
  const title = make("h2", {});
  const table = headTable(store);
  /** @type {Record<ModeName, HTMLElement>} */
  const parts = {
    matrix: make("div", {}, new Matrix(store, store.selection).element),
    text: textPart(store),
    lines: new Lines(store).element,
  };
  const modes = tabs("View", MODES, (mode) => view.set({ mode }));
  const close = smallButton(icon("close"), () => lift(false), { class: "hs-close", "aria-label": "Back to the heads" });
  const top = make("div", { class: "hs-top" }, title, ...actions, table.toggle, close);
  const role = make("p", { class: "hs-head-role" });
  const measured = make("p", { class: "hs-head-role hs-role-line" }); // reserves a line, because the words arrive later
  const describe = () => {
    const { pointer, open } = store;
    const group = groupSentence(open, pointer);
    setText(role, `${scaledWords(pointer, open) || describePicture(store, open)} ${group}`);
    region.classList.toggle("hs-removed", pointer.head_mask?.[open[0]]?.[open[1]] === 0);
    setText(measured, shortRole(store, store.open));
    measured.title = roleSentence(store, store.open);
  };
  const text = new SheetText(store);
  const region = make("section", { class: "hs-panel hs-open" }, top, text.element, role, measured);
  region.append(make("div", { class: "hs-controls" }, modes.element), ...Object.values(parts));
  region.append(weightLegend(store), table.element);
  effect(describe);

  const show = () => {
    const { mode } = view.options;
    for (const [name, part] of Object.entries(parts)) setHidden(part, name !== mode);
    modes.show(mode);
    setText(title, store.openName);
    region.setAttribute("aria-label", `Attention weights, ${store.openName}`);
  };
  effect(show);

  // On a phone the open head is below the grid and comes up as a sheet when a head is tapped.
  const lift = (/** @type {boolean} */ isUp) => view.lift(isUp);
  onChange(
    () => [view.isLifted],
    () => {
      region.classList.toggle("hs-sheet", view.isLifted);
      text.show(view.isLifted);
      if (view.isLifted) region.scrollTop = 0;
    },
  );
  closeBySwipe(
    region,
    () => view.isLifted,
    () => lift(false),
    ".hs-board, .hs-lines, .hs-text, input",
  );
  onChange(
    () => [store.clicks],
    () => {
      const isPhone = matchMedia(PHONE).matches;
      lift(isPhone);
      const isBelow = region.getBoundingClientRect().top > MAX_TOP * innerHeight;
      if (isBelow && !isPhone) region.scrollIntoView({ block: "nearest", behavior: isStill() ? "auto" : "smooth" });
    },
  );
  onChange(
    () => [view.options.ask],
    () => lift(false), // the questions need the room
  );
  matchMedia(PHONE).addEventListener("change", () => lift(false));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !region.classList.contains("hs-sheet")) return;
    event.preventDefault();
    lift(false);
  });
  return region;
}

/** @param {Store} store */
function textPart(store) {
  const text = new TextView(store, {
    label: "Text of the open head",
    isShown: () => store.view.options.mode === "text",
  });
  return make("div", { class: "hs-head-text" }, text.element, text.announcement, attentionLegend());
}

/** @param {Store} store */
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

  /** @param {Store} store */
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
