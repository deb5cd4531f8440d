// What if heads are off? Mute, solo or scale them: the predicted next token changes at once, and both texts
// can be written side by side.

import { TITLES } from "../../../calls/question_titles.mjs";
import { make, setFlag, setHidden } from "../../../lib/dom.mjs";
import { headEntries } from "../../../lib/heads.mjs";
import { exact, share, signed } from "../../../lib/numbers.mjs";
import { logSoftmax, mostProbable } from "../../../lib/sampling.mjs";
import { capitalised, pictureName, spoken, stepOf, visible } from "../../../lib/words.mjs";
import { TableView } from "../../../widgets/table_view.mjs";
import { isFile } from "../../state/prepared.mjs";
import { vocabulary } from "../../state/run_fetcher.mjs";
import { changedHeads, isSameMask, maskWords, only, scaleOf, withScale } from "../../../lib/head_masks.mjs";
import { CLEAR_COPYING } from "../../roles/head_roles.mjs";
import { DEFAULTS, DESK } from "../../state/mixer.mjs";
import { Endings } from "../endings.mjs";
import { scaleWords } from "../mixer_controls.mjs";
import { textProblem, tokenName } from "../subject.mjs";
import { chipButton, smallButton, tabs } from "../../../widgets/controls.mjs";
import { fillTable, makeRow, makeTable } from "../../../widgets/table.mjs";

/** @import { PictureId } from "../../../types.js" */
/** @import { Mask } from "../../../lib/head_masks.mjs" */
/** @import { Shape } from "../../../lib/heads.mjs" */
/** @import { AskContext, Asked, BuiltQuestion, Question } from "../question.js" */

const TAPS = { mute: "mutes its head", open: "opens its head" };
const MAX_CHIPS = 10; // changed heads shown by name
const MAX_LISTED_TOKENS = 12; // tokens in the table

/** @type {Question} */
export const mixingDesk = {
  key: DESK,
  title: TITLES[DESK],
  hook: "Switch heads off with a click, and see at once what would come next.",
  explanation:
    "Mute, solo or scale heads: the next-token bars show at once what the model would predict. A muted head adds " +
    `nothing, not even its average output (for that, see “${TITLES.knockout}”).`,
  caution:
    "Removing a head also removes what later heads read from it, and the model was not trained to work without it. " +
    "The change is the effect of the removal, not the head’s own share of the prediction.",
  defaults: DEFAULTS,
  build: (context) => new MixingDesk(context),
};

/** @implements {BuiltQuestion} */
class MixingDesk {
  /** @param {AskContext} context */
  constructor({ store, mixer, beside, choices, choose, conclude }) {
    this.store = store;
    this.mixer = mixer;
    this.beside = beside;
    this.choices = choices;
    this.conclude = conclude;
    this.taps = tabs("A click on a tile", TAPS, (tap) => choose({ tap }));
    this.chips = make("p", { class: "hs-chips", role: "group", "aria-label": "Presets" });
    this.muted = make("p", { class: "hs-chips", role: "group", "aria-label": "Heads that are muted or scaled" });
    this.sentence = make("p", { class: "hs-answer", role: "status" });
    const writeBoth = () => beside?.writing.writeScaled(mixer.mask);
    this.write = smallButton("Write both, side by side", writeBoth, { class: "hs-primary" });
    this.compare = smallButton("Compare the heads", () => beside?.rereads.withMask(mixer.mask));
    this.why = make("p", { class: "hs-hint" });
    this.table = makeTable({});
    this.view = new TableView("Show next tokens as a table", () => this.drawTable(), make("div", {}, this.table));
    this.endings = new Endings(store);
    const buttons = make("div", { class: "hs-controls" }, this.write, this.compare);
    /** @type {string[]} texts of the vocabulary */
    this.texts = [];
    /** @type {{ logits: Float32Array, before: Float64Array, after: Float64Array } | null} log-probabilities */
    this.prediction = null;
    this.tapping = make("div", { class: "hs-controls" }, make("span", {}, "a click on a tile"), this.taps.element);
    this.controls = [this.tapping];
    this.picture = make("div", { class: "hs-desk" }, this.chips, this.muted, this.endings.element, buttons, this.why);
    this.element = make("div", { class: "hs-desk" }, this.sentence, this.view.toggle, this.view.element);
  }

  /** @returns {Asked} */
  request() {
    this.taps.show(this.choices.tap);
    setHidden(this.tapping, !this.store.view.options.details); // the stage has no room for an open head beside this
    return textProblem(this.store) || null;
  }

  draw() {
    this.drawPresets();
    this.drawMuted();
    const { isChanged } = this.mixer;
    const reason = this.writingProblem();
    setHidden(this.write, !isChanged || reason !== "" || !this.beside);
    setHidden(this.compare, !isChanged || !this.beside);
    const { details } = this.store.view.options;
    const shown = "The tiles and the open head show the attention of the text as it was read, without the change.";
    const ways = "Click tiles, press M on one, choose a preset, or scale the open head.";
    this.why.textContent = isChanged ? reason || (details ? shown : "") : details ? ways : "";
    void this.showPrediction();
  }

  /** Why the two texts cannot be written; "" if they can. */
  writingProblem() {
    const isStep = stepOf(this.store.pointer.model) !== null;
    return isStep ? "The weights of a training step can read texts, but not write them." : "";
  }

  drawPresets() {
    const offered = presets({
      shape: this.store.pointer,
      roles: this.store.roles,
      layer: this.store.open[0],
      mask: this.mixer.mask,
    });
    // What this model or this text has no heads for is left out; what undoes all keeps its place.
    const shown = offered.filter(({ key, reason }) => !reason || key === "all");
    const presetChips = shown.map(({ key, name, mask, help, reason }) => {
      const chip = chipButton(name, null, { "data-preset": key });
      chip.disabled = reason !== "";
      chip.title = reason || help;
      const isOn = !chip.disabled && isSameMask(mask, this.mixer.mask);
      if (key !== "all") setFlag(chip, "aria-pressed", isOn);
      chip.addEventListener("click", () => this.mixer.set(isOn ? null : mask));
      return chip;
    });
    refill(this.chips, presetChips);
  }

  drawMuted() {
    const pictures = changedHeads(this.mixer.mask);
    const headChips = pictures.slice(0, MAX_CHIPS).map((picture) => {
      const name = pictureName(picture, this.store.pointer);
      const scale = scaleOf(this.mixer.mask, picture);
      const text = scale === 0 ? `× ${name}` : `${name} × ${Number(scale.toFixed(2))}`;
      const chip = chipButton(text, null, { "aria-label": `Restore ${name}` });
      chip.title = `${name} is ${scaleWords(scale)}: click to restore it`;
      chip.addEventListener("click", () => this.mixer.scale(picture, 1));
      return chip;
    });
    const more = pictures.length - headChips.length;
    const rest = more > 0 ? [make("span", {}, `and ${more} more`)] : [];
    refill(this.muted, pictures.length ? [make("span", {}, "Changed"), ...headChips, ...rest] : []);
    this.muted.hidden = !pictures.length;
  }

  /** The next token before and after, in a sentence. */
  async showPrediction() {
    const position = this.store.selection.predictor;
    const changed = position < 0 ? null : this.mixer.logitsAt(position);
    if (!changed) {
      this.prediction = null;
      if (!this.mixer.isChanged) this.endings.hide();
      this.conclude(
        this.mixer.isChanged
          ? "Reading the text with these changes…"
          : `Nothing is switched off yet${this.mixer.tapsMute ? ": click tiles to mute their heads" : ""}.`,
      );
      this.sentence.textContent = "";
      this.view.refresh();
      return;
    }
    const { fetcher } = this.store;
    const [logits, names] = await Promise.all([fetcher.logits(position), vocabulary(this.store.pointer.sha256)]);
    if (fetcher !== this.store.fetcher || changed !== this.mixer.logitsAt(this.store.selection.predictor)) return;
    this.texts = names;
    const [before, after] = [logSoftmax(logits), logSoftmax(changed)];
    const [plainBest] = mostProbable(logits, 1);
    const [changedBest] = mostProbable(changed, 1);
    /** @param {number} id */
    const moved = (id) =>
      `${spoken(this.texts[id] ?? "")} ${exact(Math.exp(before[id]))} → ${exact(Math.exp(after[id]))} ` +
      `(${signed(after[id] - before[id], 3)} nats)`;
    const parts = [`After ${tokenName(this.store, position)}: ${moved(plainBest)}`];
    if (changedBest !== plainBest) parts.push(`now the most probable token is ${moved(changedBest)}`);
    const written = this.store.tokens[position + 1]?.id;
    if (written !== undefined && written !== plainBest && written !== changedBest) {
      parts.push(`the written token was ${moved(written)}`);
    }
    this.sentence.textContent = `${parts.join("; ")}.`;
    if (!this.writingProblem() && !isFile()) void this.endings.show(this.mixer.mask, position);
    const what = maskWords(this.mixer.mask) || "With all heads";
    const next = [plainBest, changedBest].map((id) => ({
      id,
      name: spoken(this.texts[id] ?? ""),
      before: Math.exp(before[id]),
      after: Math.exp(after[id]),
    }));
    this.conclude(nextWords(capitalised(what), next[0], next[1]), reachWords(this.store.pointer, this.mixer.mask));
    this.prediction = { logits: changed, before, after };
    this.view.refresh();
  }

  drawTable() {
    this.table.replaceChildren();
    if (!this.prediction) return;
    const { logits, before, after } = this.prediction;
    const rows = mostProbable(logits, MAX_LISTED_TOKENS).map((id) => {
      const numbers = [exact(Math.exp(before[id])), exact(Math.exp(after[id])), signed(after[id] - before[id], 3)];
      return makeRow([`“${visible(this.texts[id] ?? "")}”`, ...numbers], { "data-id": id });
    });
    const last = tokenName(this.store, this.store.selection.predictor);
    const caption = `What may follow ${last}: the model’s own probabilities`;
    fillTable(this.table, { caption, titles: ["token", "before", "with the change", "Δ nats"], rows });
  }
}

/**
 * A token with its probability before the change and after it.
 * @typedef {{ id: number, name: string, before: number, after: number }} NextToken
 */

/**
 * What the change does to the most probable next token.
 * @param {string} what the change
 * @param {NextToken} plain the most probable one before
 * @param {NextToken} changed the most probable one after
 */
export function nextWords(what, plain, changed) {
  if (changed.id !== plain.id) {
    return (
      `${what}, the most probable next token is ${changed.name} (${share(changed.after)}) instead of ${plain.name} ` +
      `(${share(plain.before)}).`
    );
  }
  const number = share(plain.before) === share(plain.after) ? exact : share;
  const [before, after] = [plain.before, plain.after].map(number);
  const chance =
    before === after ? `its probability stays ${after}` : `its probability goes from ${before} to ${after}`;
  return `${what}, ${plain.name} stays the most probable next token: ${chance}.`;
}

/**
 * What a change of heads can reach: the attention of later layers, which read what these heads write, and the list of
 * next tokens.
 * @param {Shape & { head_mask: Mask }} pointer with the mask that the text was read with
 * @param {Mask} mask the changed one
 */
export function reachWords({ n_layer, n_head, head_mask }, mask) {
  const heads = Array.from({ length: n_head }, (_, head) => head);
  const scaleIn = (/** @type {Mask} */ of, /** @type {number} */ layer) =>
    heads.map((head) => scaleOf(of, [layer, head]));
  const layers = Array.from({ length: n_layer }, (_, layer) => layer);
  const first = layers.find((layer) => String(scaleIn(mask, layer)) !== String(scaleIn(head_mask, layer)));
  if (first === undefined) return "";
  if (first === n_layer - 1) {
    return "Only the next tokens can change: no head comes after the last layer, so every head looks where it did.";
  }
  const [from, to] = [first + 1, n_layer - 1];
  const later = from === to ? `layer ${to}` : `layers ${from} to ${to}`;
  return `Besides the next tokens, only where heads of ${later} look can change: they read what is changed here.`;
}

/**
 * Replace a row of buttons, and keep the focus on the button with the same text.
 * @param {HTMLElement} row
 * @param {HTMLElement[]} children
 */
function refill(row, children) {
  const hadFocus = row.contains(document.activeElement) ? document.activeElement?.textContent : null;
  row.replaceChildren(...children);
  if (hadFocus === null) return;
  const buttons = children.filter((child) => child instanceof HTMLButtonElement && !child.disabled);
  (buttons.find(({ textContent }) => textContent === hadFocus) ?? buttons[0])?.focus();
}

/** @typedef {{ label: string, scores: { copying: number } }[][]} Roles of each head, `[layer][head]` */

/**
 * A named mask; `reason` says why it cannot be chosen, and is "" if it can.
 * @typedef {{ key: string, name: string, mask: Mask, help: string, reason: string }} Preset
 */

const ROLES = { induction: "induction", previous: "previous token", copying: "copying" };
const MAX_NAMED_HEADS = 3; // heads that a preset names

/**
 * @param {object} known
 * @param {Shape} known.shape
 * @param {Roles | null} known.roles null until they are known
 * @param {number} known.layer the open layer, whose heads one preset keeps
 * @param {Mask} known.mask the current choice
 * @returns {Preset[]}
 */
export function presets({ shape, roles, layer, mask }) {
  const isLayer = layer < shape.n_layer;
  const row = Array.from({ length: shape.n_head }, (_, head) => /** @type {PictureId} */ ([layer, head]));
  const alone = isLayer ? only(shape, row) : null;
  return [
    withoutRole("induction", shape, roles),
    withoutRole("previous", shape, roles),
    withoutRole("copying", shape, roles),
    {
      key: "layer",
      name: isLayer ? `only layer ${layer}’s heads` : "only one layer’s heads",
      mask: alone,
      help: "Mutes the heads of all other layers. Every layer’s MLP is kept.",
      reason: !isLayer
        ? "Open a head in the layer to keep."
        : shape.n_layer === 1
          ? "This model has no other layer."
          : "",
    },
    {
      key: "all",
      name: "restore all",
      mask: null,
      help: "Undoes all changes to the heads",
      reason: isSameMask(mask, null) ? "No head is muted or scaled." : "",
    },
  ];
}

/**
 * @param {keyof typeof ROLES} key
 * @param {Shape} shape
 * @param {Roles | null} roles
 * @returns {Preset}
 */
function withoutRole(key, shape, roles) {
  const role = ROLES[key];
  const name = `without ${role.replace(" ", "-")} heads`;
  const pictures = headEntries(roles ?? [])
    .filter(({ value: { label, scores } }) => (key === "copying" ? scores.copying >= CLEAR_COPYING : label === role))
    .map(({ picture }) => picture);
  const mask = withScale(null, shape, pictures, 0);
  const reason = !roles
    ? "The roles of this checkpoint’s heads are not known yet."
    : pictures.length
      ? ""
      : `No head of this checkpoint is clearly ${role === "induction" ? "an" : "a"} ${role} head.`;
  const muted = mask ? `${name} (${headNames(mask, shape)})` : name;
  return { key, name: muted, mask, help: `Mutes ${headNames(mask, shape, pictures.length)}.`, reason };
}

/** The heads that a mask changes, by name. @param {Mask} mask @param {Shape} shape @param {number} [most] */
function headNames(mask, shape, most = MAX_NAMED_HEADS) {
  const names = changedHeads(mask).map((picture) => pictureName(picture, shape));
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(", ")} and ${more} more` : names.join(", ");
}
