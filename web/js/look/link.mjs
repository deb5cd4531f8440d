// A link that leads back to this view: the model, the text as token ids, and what differs from how the page opens.
// The server reads the first part (web/page/link.py) and recomputes the text; the browser reads the second.

import { SCALES } from "./scale.mjs";
import { DEFAULTS, HEADS, METRICS, MODES, ORDERS } from "./view.mjs";

const HASH = 16; // hex digits of the checkpoint's sha256
const MOST_LOCKED = 32;
const SETTINGS = { seed: "seed", temperature: "temperature", top_k: "top_k", top_p: "top_p", min_p: "min_p", max_new_tokens: "length" };

const flag = { write: () => "1", read: (text) => (text === "1" ? true : undefined) };
const oneOf = (names) => ({ write: String, read: (text) => (Object.hasOwn(names, text) ? text : undefined) });
const share = {
  write: String,
  read: (text) => (/^\d(\.\d+)?(e-\d+)?$/.test(text) && Number(text) <= 1 ? Number(text) : undefined),
};
const OPTIONS = {
  heads: ["heads", oneOf(HEADS)],
  mode: ["mode", oneOf(MODES)],
  scale: ["scale", oneOf(SCALES)],
  hideFirst: ["hide_first", flag],
  threshold: ["threshold", share],
  metric: ["metric", oneOf(METRICS)],
  sorted: ["sorted", oneOf(ORDERS)],
  least: ["least", share],
  most: ["most", share],
  surprise: ["surprise", flag],
};

/** Token ids as base64url of little-endian base-128 numbers. */
export function encodeIds(ids) {
  const bytes = [];
  for (let id of ids) {
    for (; id > 127; id = Math.floor(id / 128)) bytes.push(128 + (id % 128));
    bytes.push(id);
  }
  return btoa(bytes.map((byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The address of what `store` shows now. */
export function makeLink(store, page = location.href) {
  const { pointer, tokens, view } = store;
  const query = new URLSearchParams({
    model: pointer.model,
    sha256: pointer.sha256.slice(0, HASH),
    ids: encodeIds(tokens.map((token) => token.id)),
    prompt: pointer.n_prompt,
  });
  for (const [name, value] of Object.entries(pointer.settings ?? {})) {
    if (SETTINGS[name] && value !== null) query.set(SETTINGS[name], value);
  }
  query.set("open", store.open.join("."));
  if (store.locked.length) {
    const cells = store.locked.slice(-MOST_LOCKED);
    query.set("locked", cells.map(({ query, key }) => (key == null ? query : `${query}.${key}`)).join("_"));
  }
  if (store.step !== null) query.set("step", store.step);
  for (const [name, [word, kind]] of Object.entries(OPTIONS)) {
    const value = view.options[name];
    if (value !== DEFAULTS[name]) query.set(word, kind.write(value));
  }
  const address = new URL(page);
  address.search = query;
  address.hash = "";
  return address.href;
}

/** The browser's part of a link to a text of this shape: {options, open, locked, step}, and the words it could not read. */
export function readView(search, { n_layer, n_head, n_prompt, tokens }) {
  const query = new URLSearchParams(search);
  const view = { options: {}, open: null, locked: [], step: null, wrong: [] };
  const take = (word, read) => {
    if (!query.has(word)) return;
    if (read(query.get(word)) === undefined) view.wrong.push(word);
  };
  for (const [name, [word, kind]] of Object.entries(OPTIONS)) {
    take(word, (text) => {
      const value = kind.read(text);
      if (value !== undefined) view.options[name] = value;
      return value;
    });
  }
  take("open", (text) => {
    const [layer, column] = numbers(text, 2) ?? [];
    const whole = layer === n_layer && column === n_head;
    if (!whole && !(layer < n_layer && column < n_head + 2)) return undefined;
    return (view.open = [layer, column]);
  });
  take("locked", (text) => {
    const cells = text.split("_", MOST_LOCKED + 1).map((cell) => numbers(cell, 1) ?? numbers(cell, 2));
    const fits = (cell) => cell && cell[0] < tokens && (cell[1] ?? 0) <= cell[0];
    if (cells.length > MOST_LOCKED || !cells.every(fits)) return undefined;
    return (view.locked = cells.map(([query, key]) => (key === undefined ? { query } : { query, key })));
  });
  take("step", (text) => {
    const [step] = numbers(text, 1) ?? [];
    return step >= Math.max(n_prompt, 1) && step < tokens ? (view.step = step) : undefined;
  });
  return view;
}

/** So many whole numbers with points between them. */
const numbers = (text, count) =>
  /^\d{1,7}(\.\d{1,7})*$/.test(text) && text.split(".").length === count ? text.split(".").map(Number) : null;

/** Look at the text that a link led to as it says. */
export function restoreView(store, search = location.search) {
  const { options, open, locked, step, wrong } = readView(search, store.pointer);
  if (wrong.length) {
    const notice = `The link is damaged: its text is here, but ${wrong.join(", ")} cannot be read.`;
    store.pointer.notices = [...(store.pointer.notices ?? []), notice];
  }
  store.view.set({ ...DEFAULTS, ...options });
  if (open) store.view.choose(open);
  store.locked = locked;
  store.step = step;
  store.emit("state", "focus", "step", "thumbnails");
}
