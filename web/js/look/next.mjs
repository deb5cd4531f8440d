// The next token: what it is drawn from at the step that is looked at. The bars follow the sliders without the server.

import { make } from "./dom.mjs";
import { Latest, pauseOf } from "./latest.mjs";
import { mostProbable, probabilities, softmax } from "./sampling.mjs";
import { vocabulary } from "./vocabulary.mjs";
import { exact, visible } from "./words.mjs";

const SHOWN = 20; // tokens, and the one that was written

/** The sliders' values, which Gradio keeps there; a field that is being typed into may have none for a moment. */
function samplingSettings() {
  const given = Object.entries(window.headscopeSampling ?? {});
  return Object.fromEntries(given.filter(([, value]) => Number.isFinite(value)));
}

export class NextToken {
  /** `branch(id)` writes another text with this token at the step that is looked at. */
  constructor(store, branch) {
    Object.assign(this, { store, branch });
    this.rows = [];
    this.caption = make("caption", {});
    this.body = make("tbody", {});
    const titles = ["token", "drawn with", "model’s"].map((title) => make("th", { scope: "col" }, title));
    titles[1].title = "The probability after temperature, top-k, top-p and min-p";
    titles[2].title = "The model’s own probability, before sampling settings";
    this.table = make("table", {}, this.caption, make("thead", {}, make("tr", {}, ...titles)), this.body);
    this.rest = make("tr", { class: "hs-rest" });
    this.element = make("div", { class: "hs-bars" }, this.table);
    this.latest = new Latest({
      load: (fetcher, position) => this.load(fetcher, position),
      show: (found, position) => this.show(found, position),
      report: (error) => store.report(`Could not fetch the logits: ${error.message}`),
    });
    store.on("state tokens step", () => this.want());
    window.addEventListener("headscope-sampling", () => this.found && this.draw());
  }

  want() {
    const { store } = this;
    const { run, state } = store.pointer;
    const { tokens } = store;
    const chosen = store.chosen;
    const busy = ["waiting", "writing"].includes(state);
    // Where nothing was written yet the last token's logits say what may come.
    const position = chosen !== null ? chosen - 1 : busy ? null : tokens.length - 1;
    this.element.hidden = !run || position === null || position < 0;
    const same = this.shownFor === store.fetcher && this.position === position;
    this.table.setAttribute("aria-busy", !same);
    this.latest.want(store.fetcher, this.element.hidden ? null : position, pauseOf(store.pointer));
  }

  async load(fetcher, position) {
    const [logits, texts] = await Promise.all([fetcher.logits(position), vocabulary(this.store.pointer.sha256)]);
    return { logits, texts, own: softmax(logits), most: mostProbable(logits, SHOWN) };
  }

  show(found, position) {
    const changed = found !== this.found;
    Object.assign(this, { found, position, shownFor: this.store.fetcher });
    this.table.setAttribute("aria-busy", "false");
    if (changed || this.written !== this.writtenAt()) this.draw();
  }

  /** The id of the token that was written after `position`; null before there is one. */
  writtenAt() {
    return this.store.tokens[this.position + 1]?.id ?? null;
  }

  draw() {
    const { store, found, position } = this;
    const { logits, own, most } = found;
    const drawn = probabilities(logits, samplingSettings());
    this.written = this.writtenAt();
    const ids = this.written === null || most.includes(this.written) ? most : [...most, this.written];
    const before = visible(store.tokens[position]?.text ?? "");
    this.caption.textContent = `Token ${position + 1}, after “${before}”`;
    while (this.rows.length < ids.length) this.rows.push(this.row());
    const rows = this.rows.slice(0, ids.length);
    rows.forEach((row, i) => row.fill(ids[i], drawn[ids[i]], own[ids[i]]));
    const others = logits.length - ids.length;
    const left = (all) => Math.max(0, 1 - ids.reduce((sum, id) => sum + all[id], 0));
    const name = make("th", { scope: "row" }, `${others.toLocaleString("en")} others`);
    this.rest.replaceChildren(name, ...this.numbers(left(drawn), left(own)));
    const shown = others ? [...rows.map((row) => row.element), this.rest] : rows.map((row) => row.element);
    // Only what is not there yet, so that a button that has the focus keeps it.
    if (this.body.children.length !== shown.length) this.body.replaceChildren(...shown);
  }

  numbers(drawn, own) {
    const bar = make("span", { class: "hs-amount", "aria-hidden": "true" });
    bar.style.setProperty("--part", drawn);
    const part = make("div", {}, bar, make("span", {}, exact(drawn)));
    return [make("td", { class: "hs-drawn" }, part), make("td", {}, exact(own))];
  }

  /** A row that is filled again and again. */
  row() {
    const button = make("button", { type: "button", class: "hs-alternative" });
    const mark = make("span", { class: "hs-mark" }, "written");
    const [drawnCell, ownCell] = this.numbers(0, 0);
    const [bar, number] = drawnCell.firstChild.children;
    const element = make("tr", {}, make("th", { scope: "row" }, button, mark), drawnCell, ownCell);
    let token = null;
    button.addEventListener("click", () => this.branch(token, this.position + 1));
    const fill = (id, drawn, own) => {
      token = id;
      const text = visible(this.found.texts[id] ?? "");
      const written = id === this.written;
      const fits = this.position + 2 <= this.store.pointer.context_length;
      button.textContent = text;
      button.disabled = written || !fits;
      button.setAttribute("aria-label", written ? `“${text}”` : `Branch here with “${text}”`);
      button.title = written ? "" : fits ? `Write another text with “${text}” here` : "The context is full";
      mark.hidden = !written;
      element.classList.toggle("hs-is-written", written);
      element.dataset.id = id;
      bar.style.setProperty("--part", drawn);
      number.textContent = exact(drawn);
      ownCell.textContent = exact(own);
    };
    return { element, fill };
  }
}
