// A link back to a view: the model, the text as token ids, and every option that differs from its default. The server
// reads the text and its settings (web/page/link.py) and recomputes the run; the browser reads the rest.

import { toBase64Url } from "./bytes.mjs";
import { SCALES } from "./drawing/scale.mjs";
import { encodeMask } from "./head_masks.mjs";
import { isSamePicture } from "./heads.mjs";
import { DEFAULTS, HEADS, MODES, ORDERS } from "./options.mjs";
import { METRICS } from "./metrics.mjs";
import { textOf } from "./words.mjs";

/** @import { ChatMessage, Control, LinkedMessage, LinkedText, LinkedView, LinkState } from "../types.js" */
/** @import { Options, PictureId, Pointer, Token } from "../types.js" */

const HASH_DIGITS = 16; // of the checkpoint's sha256
const MAX_LOCKED = 32;

/**
 * How a value is written to a link and read back; undefined if it cannot be read.
 * @typedef {{ write: (value: any) => string, read: (text: string) => unknown }} Codec
 */

/** @type {Codec} */
const flag = { write: () => "1", read: (text) => (text === "1" ? true : undefined) };

/** @param {object} names @returns {Codec} */
const oneOf = (names) => ({ write: String, read: (text) => (Object.hasOwn(names, text) ? text : undefined) });

/** Letters, digits and . ~ - only; the reader of the option checks the meaning. @type {Codec} */
const plain = { write: String, read: (text) => (/^[\w.~-]{1,4000}$/.test(text) ? text : undefined) };

/** The names that questions of Ask had in earlier links. */
const FORMER_QUESTIONS = new Map([
  ["why", "attribution"],
  ["arithmetic", "ledger"],
  ["layers", "logit-lens"],
  ["patching", "patch"],
]);
/** @type {Codec} */
const question = { write: String, read: (text) => FORMER_QUESTIONS.get(text) ?? plain.read(text) };

/** A number from 0 to 1. @type {Codec} */
const fraction = {
  write: String,
  read: (text) => (/^\d(\.\d+)?(e-\d+)?$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
};

/** @type {Record<keyof Options, [word: string, codec: Codec]>} */
const OPTIONS = {
  heads: ["heads", oneOf(HEADS)],
  mode: ["mode", oneOf(MODES)],
  scale: ["scale", oneOf(SCALES)],
  hideFirst: ["hide_first", flag],
  threshold: ["threshold", fraction],
  metric: ["metric", oneOf(METRICS)],
  sorted: ["sorted", oneOf(ORDERS)],
  least: ["least", fraction],
  most: ["most", fraction],
  ask: ["ask", question],
  askWith: ["ask_with", plain],
  summaries: ["means", flag],
  surprise: ["surprise", flag],
  off: ["off", plain],
  details: ["details", flag],
};
const OPTION_ENTRIES = /** @type {[keyof Options, [string, Codec]][]} */ (Object.entries(OPTIONS));

/**
 * Token ids as base64url of little-endian base-128 numbers.
 * @param {number[]} ids
 */
export function encodeIds(ids) {
  const bytes = [];
  for (let id of ids) {
    for (; id > 127; id = Math.floor(id / 128)) bytes.push(128 + (id % 128));
    bytes.push(id);
  }
  return toBase64Url(bytes);
}

/**
 * The messages of a conversation, as web/page/chat.py reads them.
 * @param {readonly ChatMessage[]} chat
 * @param {readonly Token[]} tokens
 * @returns {LinkedMessage[]}
 */
export const linkedChat = (chat, tokens) =>
  chat.map(({ role, content, start, end }) => {
    const read = textOf(tokens.slice(start ?? 0, end ?? 0));
    return read === content ? [role, start, end] : [role, start, end, content];
  });

/**
 * The parameters in which a second text differs from the first, each prefixed with "b_".
 * @param {LinkedText} first
 * @param {LinkedText} second
 * @param {Pick<Control, "name" | "word">[]} controls
 */
function secondWords(first, second, controls) {
  /** @type {Record<string, string>} */
  const words = { b_sha256: second.sha256.slice(0, HASH_DIGITS) };
  if (second.model !== first.model) words.b_model = second.model;
  if (second.ids.join() !== first.ids.join()) words.b_ids = encodeIds(second.ids);
  if (second.n_prompt !== first.n_prompt) words.b_prompt = String(second.n_prompt);
  if (second.head_mask) words.b_mask = encodeMask(second.head_mask);
  if (!isSamePicture(second.open, first.open)) words.b_open = second.open.join(".");
  const isWritten = typeof second.settings.seed === "number";
  for (const { name, word } of isWritten ? controls : []) {
    const value = second.settings[name];
    if (value != null && (name === "seed" || value !== first.settings[name])) words[`b_${word}`] = String(value);
  }
  return words;
}

/**
 * The address of a view.
 * @param {LinkState} state
 * @param {Pick<Control, "name" | "word">[]} controls the settings that a link holds, with their parameter names
 * @param {string} page the address of the page
 */
export function makeLink(state, controls, page) {
  const query = new URLSearchParams({
    model: state.model,
    sha256: state.sha256.slice(0, HASH_DIGITS),
    ids: encodeIds(state.ids),
    prompt: String(state.n_prompt),
  });
  for (const { name, word } of controls) {
    const value = state.settings[name];
    if (value !== undefined && value !== null) query.set(word, String(value));
  }
  if (state.chat) query.set("chat", JSON.stringify(state.chat));
  if (state.head_mask) query.set("mask", encodeMask(state.head_mask));
  const words = state.second ? secondWords(state, state.second, controls) : {};
  for (const [word, text] of Object.entries(words)) query.set(word, text);
  query.set("open", state.open.join("."));
  if (state.locked.length) {
    const cells = state.locked.slice(-MAX_LOCKED);
    query.set("locked", cells.map((cell) => (cell.key == null ? cell.query : `${cell.query}.${cell.key}`)).join("_"));
  }
  if (state.step !== null) query.set("step", String(state.step));
  for (const [name, [word, codec]] of OPTION_ENTRIES) {
    const value = state.options[name];
    if (value !== DEFAULTS[name]) query.set(word, codec.write(value));
  }
  const address = new URL(page);
  address.search = query.toString();
  address.hash = "";
  return address.href;
}

/**
 * The browser's part of a link.
 * @param {string} search the query of the page's address
 * @param {Pick<Pointer, "n_layer" | "n_head" | "tokens">} the text that the link led to
 * @param {Pick<Pointer, "n_layer" | "n_head"> | null} [second] the text it is compared with
 * @returns {LinkedView}
 */
export function readLink(search, { n_layer, n_head, tokens }, second = null) {
  const query = new URLSearchParams(search);
  /** @type {LinkedView} */
  const view = { options: {}, open: null, openSecond: null, locked: [], step: null, unreadable: [] };

  /**
   * @param {string} word
   * @param {(text: string) => unknown} decode
   */
  const read = (word, decode) => {
    const text = query.get(word);
    if (text !== null && decode(text) === undefined) view.unreadable.push(word);
  };
  for (const [name, [word, codec]] of OPTION_ENTRIES) {
    read(word, (text) => {
      const value = codec.read(text);
      if (value !== undefined) Object.assign(view.options, { [name]: value });
      return value;
    });
  }
  read("open", (text) => {
    const picture = readPicture(text, { n_layer, n_head });
    if (picture) view.open = picture;
    return picture;
  });
  read("b_open", (text) => {
    const picture = second ? readPicture(text, second) : text;
    if (second && picture) view.openSecond = /** @type {PictureId} */ (picture);
    return picture;
  });
  read("locked", (text) => {
    const cells = text.split("_", MAX_LOCKED + 1).map((cell) => wholeNumbers(cell, 1) ?? wholeNumbers(cell, 2));
    if (cells.length > MAX_LOCKED) return undefined;
    const valid = cells.flatMap((cell) => (cell && cell[0] < tokens && (cell[1] ?? 0) <= cell[0] ? [cell] : []));
    if (valid.length < cells.length) return undefined;
    return (view.locked = valid.map(([at, key]) => (key === undefined ? { query: at } : { query: at, key })));
  });
  read("step", (text) => {
    const [step] = wholeNumbers(text, 1) ?? [];
    return step >= 1 && step < tokens ? (view.step = step) : undefined;
  });
  return view;
}

/**
 * A picture of a model; undefined if the parameter names none.
 * @param {string} text
 * @param {Pick<Pointer, "n_layer" | "n_head">} shape
 * @returns {PictureId | undefined}
 */
function readPicture(text, { n_layer, n_head }) {
  const [layer, column] = wholeNumbers(text, 2) ?? [];
  const isMeanOfAll = layer === n_layer && column === n_head;
  return isMeanOfAll || (layer < n_layer && column < n_head + 2) ? [layer, column] : undefined;
}

/**
 * Exactly `count` whole numbers separated by dots; null for any other text.
 * @param {string} text
 * @param {number} count
 */
function wholeNumbers(text, count) {
  const isList = /^\d{1,7}(\.\d{1,7})*$/.test(text);
  const numbers = text.split(".").map(Number);
  return isList && numbers.length === count ? numbers : null;
}
