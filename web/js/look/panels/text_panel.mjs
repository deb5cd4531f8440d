// The text with its scrubber: what colours its tokens, alternatives to branch from, and a table of probabilities.

import { make, setFlag, setText } from "../../lib/dom.mjs";
import { icon } from "../../lib/icons.mjs";
import { brief, counted, exact, surprise } from "../../lib/numbers.mjs";
import { FocusSentence } from "./focus_sentence.mjs";
import { attentionLegend, surpriseLegend } from "./legend.mjs";
import { isOpenedHere } from "../state/router.mjs";
import { stepKeys } from "./keyboard.mjs";
import { describeToken, Scrubber } from "./scrubber.mjs";
import { TextView } from "./text_view.mjs";
import { nameWithBytes, visible } from "../../lib/words.mjs";
import { TableView } from "../../widgets/table_view.mjs";
import { checkbox, smallButton } from "../../widgets/controls.mjs";
import { makeRow, makeTable } from "../../widgets/table.mjs";
import { effect, whenever } from "../../lib/reactive.mjs";

/** @import { Token } from "../../types.js" */
/** @import { ShownText } from "../state/shown_text.mjs" */
/** @import { Writing } from "../../types.js" */
/** @import { NextToken } from "./next_token.mjs" */

/**
 * @param {ShownText} store
 * @param {NextToken} next
 * @param {{ writing: Writing, menu: HTMLElement } | null} others ways to another text; null in a file
 */
export function textPanel(store, next, others) {
  const { view } = store;
  const text = new TextView(store, { canSurprise: true, hasArcs: true });
  stepKeys(text);
  const status = make("p", { class: "hs-status", role: "status" });
  effect(() => {
    setText(status, describe(store));
    const { rate } = store.pointer;
    status.title = rate ? `The model wrote ${Math.round(rate)} tokens per second.` : "";
  });
  const surpriseBox = checkbox((checked) => view.set({ surprise: checked }));
  const legends = { attention: attentionLegend(), surprise: surpriseLegend() };
  effect(() => {
    surpriseBox.checked = view.options.surprise;
    legends.attention.hidden = view.options.surprise;
    legends.surprise.hidden = !view.options.surprise;
  });
  const another = smallButton("Write another", () => others?.writing.writeAnother());
  another.title = "Write a second text from the same prompt and compare the two";
  const pinSelected = () => store.selection.pinSelected();
  const pin = smallButton(icon("pin"), pinSelected, { "aria-label": "Pin" });
  pin.title = "Keep the selected token highlighted in all views (or shift-click a token)";
  effect(() => {
    another.disabled = !store.pointer.settings.prompt;
    pin.disabled = !store.count;
    setFlag(pin, "aria-pressed", store.selection.locked.length > 0);
  });
  surpriseBox.setAttribute("aria-label", "colour by surprise");
  const surpriseLabel = make("label", { title: "Colour each token by how unexpected it was" }, surpriseBox, "surprise");
  const controls = make("div", { class: "hs-controls" }, surpriseLabel);
  if (others) controls.append(another, others.menu);
  const table = textTable(store);
  const top = make("div", { class: "hs-top" }, make("h2", {}, "Text"), table.toggle);
  const scrubber = new Scrubber(store, store.selection, (step) => describeToken(store.tokens[step], step), pin).element;
  const box = make("div", { class: "hs-text-box" }, text.element);
  scrubber.append(status);
  const instead = alternatives(store, next);
  const focusSentence = new FocusSentence(store, others?.writing ?? null).element;
  const parts = [top, box, text.announcement, table.element, focusSentence, scrubber, instead, controls];
  parts.push(legends.attention, legends.surprise);
  return make("section", { class: "hs-panel hs-written", "aria-label": "Text" }, ...parts);
}

/** The progress of a text, in words. @param {ShownText} store */
function describe(store) {
  const { state, tokens, n_prompt, settings, written = tokens - n_prompt } = store.pointer;
  const shown = Math.max(written - (tokens - store.length), 0);
  const all = counted(store.length, "token");
  const done = `${counted(shown, "token")} written`;
  const most = typeof settings.max_new_tokens === "number" ? settings.max_new_tokens : written;
  const isOver = state === "stopped" || store.playback.hasHalted;
  if (isOver && !store.isGrowing) return `stopped after ${counted(shown, "token")}`;
  const descriptions = {
    none: "",
    linked: `${all}, ${isOpenedHere() ? "opened by Ask" : "opened from a link"}`,
    saved: all,
    snapshot: `${all}, read with this step’s weights`,
    read: `${all}, read again`,
    opening: all,
    loading: "loading…",
    waiting: "waiting…",
    writing: `writing ${shown} of ${most}`,
    done: store.isGrowing ? `writing ${shown} of ${Math.min(most, written)}` : done,
    stopped: `writing ${shown} of ${Math.min(most, written)}`,
    failed: "failed",
  };
  return descriptions[state];
}

const MAX_ALTERNATIVES = 4;

/**
 * @param {ShownText} store
 * @param {NextToken} next
 */
function alternatives(store, next) {
  const element = make("div", { class: "hs-alternatives", role: "group", "aria-label": "Alternatives" });
  let shown = ""; // the drawn state; an unchanged one is not redrawn, so that a button keeps the focus

  const draw = () => {
    const at = store.selection.chosen;
    const found = next.alternatives(MAX_ALTERNATIVES);
    const tokens = found && found.at === at && !store.isGrowing ? found.tokens : [];
    const drawn = tokens.length ? `${store.pointer.run} ${at} ${tokens.map(({ id }) => id).join(" ")}` : "";
    if (drawn === shown) return;
    shown = drawn;
    if (!tokens.length || at === null || store.view.isLookOnly) {
      element.replaceChildren();
      return;
    }
    element.setAttribute("aria-label", `Alternatives to “${visible(store.tokens[at].text)}”`);
    const buttons = tokens.map(({ id, text, probability }) => {
      const label = `Branch here with “${text}”, probability ${brief(probability)}`;
      const button = smallButton("", () => next.branch(id, at), { "aria-label": label, title: label });
      button.append(make("span", {}, text), make("small", {}, brief(probability)));
      return button;
    });
    element.replaceChildren(make("span", {}, "instead"), ...buttons);
  };
  next.onShown(draw);
  whenever(() => [store.pointer, store.isGrowing, store.selection.selected], draw);
  return element;
}

/** @param {ShownText} store */
function textTable(store) {
  /** @type {Token[]} */
  const shown = []; // the token of each row
  const titles = ["position", "token", "probability", "bits"];
  const table = makeTable({ caption: "Tokens and their probabilities", titles });
  const [body] = table.tBodies;
  const box = make("div", { tabindex: 0, role: "group", "aria-label": "Table of tokens" }, table);
  const view = new TableView("Show text as a table", draw, box);
  whenever(
    () => store.progress,
    () => view.refresh(),
  );
  return view;

  /** Replace only the rows whose token has changed: a long text grows by a few tokens at a time. */
  function draw() {
    const { tokens } = store;
    shown.length = Math.min(shown.length, tokens.length);
    while (body.children.length > tokens.length) body.lastChild?.remove();
    tokens.forEach((token, i) => {
      if (shown[i] === token) return;
      shown[i] = token;
      const row = tokenRow(token, i);
      if (body.children[i]) body.children[i].replaceWith(row);
      else body.append(row);
    });
  }
}

/**
 * @param {Token} token
 * @param {number} position
 */
function tokenRow(token, position) {
  const bits = surprise(token);
  const numbers = bits === null ? ["given", ""] : [exact(2 ** -bits), bits.toFixed(2)];
  return makeRow([position, nameWithBytes(token), ...numbers]);
}
