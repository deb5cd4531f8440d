// One text with all that is seen of it: the panels over one store.

import { copyLink } from "./copy_link.mjs";
import { make } from "./dom.mjs";
import { Grid } from "./grid.mjs";
import { gridControls } from "./grid_controls.mjs";
import { gridTable } from "./grid_table.mjs";
import { headPanel } from "./head.mjs";
import { attentionLegend, surpriseLegend } from "./legend.mjs";
import { NextToken } from "./next.mjs";
import { onThemeChange } from "./palette.mjs";
import { saveGrid, saveHead } from "./save_menu.mjs";
import { StepRows } from "./rows.mjs";
import { Scrubber } from "./scrubber.mjs";
import { Store } from "./store.mjs";
import { TextView } from "./text.mjs";
import { textTable } from "./text_table.mjs";
import { HEADS } from "./view.mjs";
import { counted } from "./words.mjs";

export class Workspace {
  /** `actions`: `branch(data)`, and `close()` and `keep()` of a workspace that stands on the right. */
  constructor(view, actions) {
    const store = (this.store = new Store(view));
    this.notices = make("div", { class: "hs-notices", role: "status" });
    const writing = make("div", { class: "hs-writing" }, textPanel(store), nextPanel(store, actions));
    this.panels = make("div", { class: "hs-panels" }, writing, gridPanel(store));
    this.panels.append(headPanel(store, saveHead(store), copyLink(store)));
    this.title = make("h2", {});
    this.choices = make(
      "span",
      {},
      make("button", { type: "button", class: "hs-small", onclick: actions.keep }, "Keep only this"),
      make("button", { type: "button", class: "hs-small", onclick: actions.close }, "Close branch"),
    );
    this.side = make("div", { class: "hs-side", hidden: true }, this.title, this.choices);
    this.element = make("div", { class: "hs-workspace" }, this.side, this.notices, this.panels);
    store.on("state problem thumbnails", () => this.tell());
    onThemeChange(() => store.emit("thumbnails", "weights", "focus", "view"));
    this.tell();
  }

  /** Say which of two texts this is; "" for the only one. The one on the right can be closed or kept. */
  name(title, right) {
    this.title.textContent = title;
    this.side.hidden = !title;
    this.choices.hidden = !right;
    if (title) this.element.setAttribute("role", "region");
    else this.element.removeAttribute("role");
    this.element.setAttribute("aria-label", title);
  }

  tell() {
    const { store } = this;
    const said = messages(store);
    if (said.join("\n") !== this.said) this.notices.replaceChildren(...said.map((message) => make("p", {}, message)));
    this.said = said.join("\n");
    this.element.dataset.state = store.pointer.state;
    this.panels.hidden = !store.pointer.run; // nothing to see: only what there is to say
  }
}

function textPanel(store) {
  const { view } = store;
  const text = new TextView(store, { canSurprise: true });
  const status = make("p", { class: "hs-status", role: "status" });
  store.on("state", () => (status.textContent = describe(store.pointer)));
  const surprise = make("input", { type: "checkbox" });
  surprise.addEventListener("change", () => view.set({ surprise: surprise.checked }));
  const legends = [attentionLegend(), surpriseLegend()];
  const show = () => {
    surprise.checked = view.options.surprise;
    legends[0].hidden = view.options.surprise;
    legends[1].hidden = !view.options.surprise;
  };
  view.on(show);
  show();
  const controls = make("div", { class: "hs-controls" }, make("label", {}, surprise, " colour by surprise"));
  const table = textTable(store);
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Text"), status, table.toggle);
  const scrubber = new Scrubber(store).element;
  const parts = [top, text.element, text.spoken, table.element, scrubber, controls, ...legends];
  return make("section", { class: "hs-panel hs-written", "aria-label": "Text" }, ...parts);
}

function nextPanel(store, actions) {
  const branch = (token, at) => {
    const { run, model, sha256, n_prompt } = store.pointer;
    const ids = [...store.tokens.slice(0, at).map(({ id }) => id), token];
    actions.branch({ of: run, model, sha256, n_prompt, ids, instead: store.tokens[at]?.id ?? null });
  };
  const hint = make("p", { class: "hs-status" }, "click one to branch the text");
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Next token"), hint);
  return make("section", { class: "hs-panel hs-next", "aria-label": "Next token" }, top, new NextToken(store, branch).element);
}

function gridPanel(store) {
  const { view } = store;
  const grid = new Grid(store);
  const rows = new StepRows(store);
  const table = gridTable(store, grid);
  const parts = {
    whole: make("div", { class: "hs-whole" }, gridControls(store, grid), make("div", { class: "hs-scroll" }, grid.element), table.element),
    step: rows.element,
  };
  // What belongs to one of the two is not there with the other.
  const actions = { whole: [saveGrid(store, grid), table.toggle], step: [rows.twin.toggle] };
  const tabs = Object.entries(HEADS).map(([heads, name]) => {
    const button = make("button", { type: "button", class: "hs-small" }, name);
    button.addEventListener("click", () => view.set({ heads }));
    return [heads, button];
  });
  const show = () => {
    for (const [heads, button] of tabs) {
      button.setAttribute("aria-pressed", heads === view.options.heads);
      for (const part of [parts[heads], ...actions[heads]]) part.hidden = heads !== view.options.heads;
    }
  };
  show();
  store.listeners.view.unshift(show); // before the parts draw themselves: what is hidden has no size
  const choice = make("div", { class: "hs-tabs", role: "group", "aria-label": "Heads" }, ...tabs.map(([, button]) => button));
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Heads"), choice, ...actions.whole, ...actions.step);
  return make("section", { class: "hs-panel hs-heads", "aria-label": "Heads" }, top, parts.whole, parts.step);
}

function describe({ state, tokens, n_prompt, written: n_written = tokens - n_prompt, rate }) {
  const written = counted(n_written, "token");
  const speed = rate ? `, ${Math.round(rate)} tokens/s` : "";
  if (state === "linked") return `${counted(tokens, "token")}, from a link`;
  if (state === "opening") return `${written}, written at the start`;
  if (state === "loading") return "loading ...";
  if (state === "waiting") return "waiting ...";
  if (state === "writing") return `writing: ${written}${speed}`;
  if (state === "done") return `${written} written${speed}`;
  if (state === "stopped") return `stopped after ${written}${speed}`;
  if (state === "failed") return "failed";
  return "";
}

/** What a visitor must know: checkpoints that failed, why a text ended, what could not be fetched. */
function messages({ pointer, problem, untrained }) {
  const loading = pointer.state === "loading" ? ["Loading the checkpoints ..."] : [];
  const flat = untrained
    ? ["Every head looks almost everywhere alike. This model looks untrained, or its weights were not loaded as they should."]
    : [];
  return [...loading, ...(pointer.notices ?? []), pointer.why, problem, ...flat].filter(Boolean);
}
