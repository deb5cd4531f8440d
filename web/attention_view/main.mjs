// The workspace: text, heads and the open head, three panels over one store.

import { make } from "./dom.mjs";
import { Grid } from "./grid.mjs";
import { Matrix } from "./matrix.mjs";
import { onThemeChange, palette } from "./palette.mjs";
import { Store } from "./store.mjs";
import { Table } from "./table.mjs";
import { TextView } from "./text.mjs";
import { counted, headName } from "./words.mjs";

/** Gradio calls this once, with the element to fill and the component's value in `props.value`. */
export function mount(root, props, watch) {
  const store = new Store();
  const [text, grid, matrix, table] = [TextView, Grid, Matrix, Table].map((Part) => new Part(store));

  const notices = make("div", { class: "hs-notices", role: "status" });
  const status = make("p", { class: "hs-status", role: "status" });
  const title = make("h2", {});
  const region = panel("hs-open", title, table.toggle, matrix.element, scale(), table.element);
  const panels = make(
    "div",
    { class: "hs-panels" },
    panel("hs-writing", make("h2", {}, "Text"), status, text.element, text.spoken, hint()),
    panel("hs-heads", make("h2", {}, "Heads"), quiet("click one to open it"), grid.element),
    region,
  );
  root.replaceChildren(notices, panels);

  store.on("state problem", () => {
    notices.replaceChildren(...messages(store).map((message) => make("p", {}, message)));
    status.textContent = describe(store.pointer);
    root.dataset.state = store.pointer.state;
  });
  store.on("state weights", () => {
    const name = headName(store.open);
    title.textContent = name;
    region.setAttribute("aria-label", `Attention weights, ${name}`);
    panels.hidden = !store.pointer.run; // nothing to see: only what there is to say
  });
  onThemeChange(() => store.emit("thumbnails", "weights", "focus"));

  const follow = () => store.follow(props.value);
  watch("value", follow);
  store.emit("state", "weights");
  follow();
}

function panel(name, heading, aside, ...content) {
  const top = make("div", { class: "hs-top" }, heading, aside);
  return make("section", { class: `hs-panel ${name}`, role: "region" }, top, ...content);
}

const quiet = (text) => make("p", { class: "hs-status" }, text);

function describe({ state, tokens, n_prompt, rate }) {
  const written = counted(tokens - n_prompt, "token");
  const speed = rate ? `, ${Math.round(rate)} tokens/s` : "";
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
function messages({ pointer, problem }) {
  const loading = pointer.state === "loading" ? ["Loading the checkpoints ..."] : [];
  return [...loading, ...(pointer.notices ?? []), pointer.why, problem].filter(Boolean);
}

/** What the colours mean. */
function scale() {
  const canvas = make("canvas", { width: 256, height: 1, "aria-hidden": true });
  const paint = () => {
    const image = new ImageData(256, 1);
    new Uint32Array(image.data.buffer).set(palette().looks.pixels);
    canvas.getContext("2d").putImageData(image, 0, 0);
  };
  paint();
  onThemeChange(paint);
  const ticks = [0, 0.05, 0.25, 0.5, 1].map((weight) => {
    const tick = make("span", {}, String(weight));
    tick.style.left = `${100 * Math.sqrt(weight)}%`;
    return tick;
  });
  const ruler = make("div", { class: "hs-ruler" }, canvas, ...ticks);
  return make("div", { class: "hs-scale" }, make("span", {}, "attention weight"), ruler);
}

function hint() {
  const [looks, seen] = [make("span", { class: "hs-swatch" }), make("span", { class: "hs-swatch" })];
  const paint = () => {
    looks.style.backgroundColor = palette().looks.css[170];
    seen.style.backgroundColor = palette().seen.css[170];
  };
  paint();
  onThemeChange(paint);
  return make(
    "p",
    { class: "hs-hint" },
    looks,
    "where the outlined token looks ",
    seen,
    "who looks at it. Point at a token to see, click to lock it.",
  );
}
