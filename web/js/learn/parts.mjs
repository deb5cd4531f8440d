// The small pieces that every lesson is made of.

import { make } from "../look/dom.mjs";
import { address } from "./ask.mjs";
import { highlight } from "./code.mjs";

export const paragraph = (...parts) => make("p", {}, ...parts);
export const code = (text) => make("code", {}, text);
export const term = (text) => make("dfn", {}, text);
export const heading = (text) => make("h3", {}, text);

/** Tables side by side where there is room. */
export const rowOf = (...children) => make("div", { class: "hl-row" }, ...children);

/** Two ways to the same numbers, and how far they are apart. */
export class Stamp {
  constructor(what) {
    this.what = what;
    this.element = make("p", { class: "hl-stamp", role: "status" });
  }

  show(error, most = 1e-5) {
    const equal = error !== null && error <= most;
    this.element.classList.toggle("hl-differs", !equal);
    const shown = error === 0 ? "0" : error === null ? "not a number" : error.toExponential(2).replace("-", "−");
    this.element.replaceChildren(make("b", {}, `recomputed ${equal ? "=" : "≠"} model`), `, max error ${shown}`, make("small", {}, ` · ${this.what}`));
  }
}

let made = 0;

/** A labelled slider that tells its value while it moves; `values` makes it step through a list. */
export function slider({ label, min = 0, max, step = 1, value, values = null, say = String, change }) {
  const id = `hl-slider-${(made += 1)}`;
  const input = make("input", {
    id,
    type: "range",
    min: values ? 0 : min,
    max: values ? values.length - 1 : max,
    step: values ? 1 : step,
    value: values ? values.indexOf(value) : value,
  });
  const read = () => (values ? values[Number(input.value)] : Number(input.value));
  const shown = make("output", { for: id });
  const tell = () => {
    shown.textContent = say(read());
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  input.addEventListener("input", () => {
    tell();
    change(read());
  });
  tell();
  const element = make("div", { class: "hl-slider" }, make("label", { for: id }, label), input, shown);
  /** Take another value or range from the server's answer. */
  const update = (next, most = null) => {
    if (most !== null) input.max = most;
    input.value = values ? values.indexOf(next) : next;
    tell();
  };
  return { element, input, update };
}

/** One of a few: {value: words}. */
export function choice({ label, options, value, change }) {
  const buttons = Object.entries(options).map(([key, words]) =>
    make("button", { type: "button", class: "hs-small", "aria-pressed": String(key === value), onclick: () => take(key) }, words),
  );
  const show = (taken) =>
    Object.keys(options).forEach((key, i) => buttons[i].setAttribute("aria-pressed", String(key === taken)));
  const take = (key) => {
    show(key);
    change(key);
  };
  const group = make("div", { class: "hs-tabs", role: "group", "aria-label": label }, ...buttons);
  return { element: make("div", { class: "hl-choice" }, make("span", {}, label), group), show };
}

export const controls = (...children) => make("div", { class: "hl-controls" }, ...children);

/** Something to guess before the answer is told. `answer(chosen)` is called once. */
export function question({ ask, options, right, why }, chosen, answer) {
  const told = make("p", { class: "hl-why", role: "status" });
  const buttons = options.map((text, i) => make("button", { type: "button", class: "hs-small", onclick: () => take(i) }, text));
  const show = (taken) => {
    buttons.forEach((button, i) => {
      button.disabled = true;
      if (i === right) button.classList.add("hl-right");
      else if (i === taken) button.classList.add("hl-wrong");
      button.setAttribute("aria-pressed", String(i === taken));
    });
    told.replaceChildren(make("b", {}, taken === right ? "Yes. " : `No: ${options[right]}. `), why);
  };
  const take = (i) => {
    show(i);
    answer(i);
  };
  if (Number.isInteger(chosen) && chosen >= 0 && chosen < options.length) show(chosen);
  const element = make("section", { class: "hl-question", "aria-label": "Question" }, make("h3", {}, "Before you go on: predict"));
  element.append(make("p", {}, ask), make("div", { class: "hl-options" }, ...buttons), told);
  return element;
}

/** The lines of the ladder behind a rung, fetched when they are wanted. */
export function sourceLines(rung) {
  const box = make("div", { class: "hl-sources" });
  const element = make("details", { class: "hl-source" }, make("summary", {}, "The lines that compute this"), box);
  element.addEventListener("toggle", async () => {
    if (!element.open || box.childNodes.length) return;
    try {
      const { sources } = await (await fetch(address(`sources/${rung}.json`))).json();
      box.replaceChildren(
        ...sources.flatMap(({ name, file, line, code }) => [
          make("h4", {}, name, make("small", {}, ` ${file}, line ${line}`)),
          make("pre", { tabindex: 0, "aria-label": `Source of ${name}` }, make("code", {}, ...highlight(code))),
        ]),
      );
    } catch (error) {
      box.textContent = `The source could not be fetched: ${error.message}`;
    }
  });
  return element;
}
