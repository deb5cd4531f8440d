// One text with all that is seen of it: the panels over one store.

import { copyLink } from "./copy_link.mjs";
import { make } from "./dom.mjs";
import { Grid } from "./grid.mjs";
import { gridControls } from "./grid_controls.mjs";
import { GridTable } from "./grid_table.mjs";
import { headPanel } from "./head.mjs";
import { attentionLegend, surpriseLegend } from "./legend.mjs";
import { onThemeChange } from "./palette.mjs";
import { saveGrid, saveHead } from "./save_menu.mjs";
import { Store } from "./store.mjs";
import { TextView } from "./text.mjs";
import { counted } from "./words.mjs";

export class Workspace {
  constructor(view) {
    const store = (this.store = new Store(view));
    this.notices = make("div", { class: "hs-notices", role: "status" });
    this.panels = make("div", { class: "hs-panels" }, textPanel(store), gridPanel(store));
    this.panels.append(headPanel(store, saveHead(store), copyLink(store)));
    this.element = make("div", { class: "hs-workspace" }, this.notices, this.panels);
    store.on("state problem thumbnails", () => this.tell());
    onThemeChange(() => store.emit("thumbnails", "weights", "focus", "view"));
    this.tell();
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
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Text"), status);
  return make("section", { class: "hs-panel hs-writing", role: "region" }, top, text.element, text.spoken, controls, ...legends);
}

function gridPanel(store) {
  const grid = new Grid(store);
  const table = new GridTable(store, grid);
  const hint = make("p", { class: "hs-status" }, "click one to open it");
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Heads"), hint, saveGrid(store, grid), table.toggle);
  const scroll = make("div", { class: "hs-scroll" }, grid.element);
  return make("section", { class: "hs-panel hs-heads", role: "region" }, top, gridControls(store, grid), scroll, table.element);
}

function describe({ state, tokens, n_prompt, rate }) {
  const written = counted(tokens - n_prompt, "token");
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
