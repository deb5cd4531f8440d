// Copies an answer of Ask: its numbers, or a call that gives them again.

import { copying } from "../../widgets/copy.mjs";
import { menu } from "../../widgets/menu.mjs";

/** @import { AskRequest } from "../state/ask_server.mjs" */

/** @typedef {{ asked: AskRequest, answer: any }} Answered */

/** The address of a question. @param {AskRequest} asked */
const addressOf = ({ route, query }) =>
  new URL(`v1/lens/${route}${query ? `?${new URLSearchParams(query)}` : ""}`, document.baseURI).href;

/** A command for a shell: no quotation mark ends the string that it is put into. @param {AskRequest} asked */
function curlCall(asked) {
  const address = `curl '${addressOf(asked).replaceAll("'", "%27")}'`;
  return asked.body ? `${address} -d '${JSON.stringify(asked.body).replaceAll("'", "\\u0027")}'` : address;
}

/** @typedef {Record<string, any>} Fields of a body or a query, by name */

/** The method of a loaded model that gives the same numbers. @param {AskRequest} asked */
export function pythonCall(asked) {
  const { model, tokens, prompt = tokens, text, prompts, head_mask, ...fields } = givenFields(asked);
  // A head mask also applies to every other text.
  const read = (/** @type {any} */ one) =>
    head_mask ? `loaded.trace(${python(one)}, head_mask=head_mask)` : python(one);
  const rows = prompts?.map((/** @type {any} */ row) => pythonRow(row, read)).join(", ");
  const [method, options] = methodOf(asked.route, fields);
  const isOverPrompts = asked.route.endsWith("/prompts");
  const values = [
    isOverPrompts && python(method),
    rows ? `[${rows}]` : text ? python(text) : prompt && read(prompt),
    ...Object.entries(options).map(([name, value]) => {
      const isText = name === "corrupted" || name === "other";
      return `${name}=${isText ? read(value) : name === "other_model" ? loadCall(value) : python(value)}`;
    }),
  ];
  return [
    "import headscope",
    ...(head_mask ? ["import torch", "", `head_mask = torch.tensor(${python(head_mask)})`] : [""]),
    `loaded = ${loadCall(model)}`,
    `answer = loaded.${isOverPrompts ? "over_prompts" : method}(${values.filter(Boolean).join(", ")}).to_dict()`,
    "",
  ].join("\n");
}

/** Those that are not null; a query has text in place of numbers. @param {AskRequest} asked @returns {Fields} */
function givenFields({ body, query }) {
  const read = Object.entries(query ?? {}).map(([name, value]) => [
    name,
    name !== "model" && /^(\d+|true|false)$/.test(value) ? JSON.parse(value) : value,
  ]);
  return Object.fromEntries([...Object.entries(body ?? {}), ...read].filter(([, value]) => value !== null));
}

/**
 * The method for a route, and its arguments.
 * @param {string} route
 * @param {Fields} fields
 * @returns {[string, Fields]}
 */
function methodOf(route, { per_token: _, corrupted_tokens, other_tokens, earlier_layer, earlier_head, ...fields }) {
  const name = route.replace("/prompts", "").replaceAll("-", "_");
  if (corrupted_tokens) fields.corrupted = corrupted_tokens;
  if (other_tokens) fields.other = other_tokens;
  if (earlier_head !== undefined) fields.earlier = [earlier_layer, earlier_head];
  if (name === "patch" && route !== name && !fields.heads) fields.site ??= "z";
  if (name === "paths" && (fields.corrupted || route !== name)) return ["patch_paths", fields];
  return name === "patch" && fields.site ? ["patch_site", siteOptions(fields)] : [name, fields];
}

/** The arguments of `patch_site`. @param {Fields} fields of `/v1/lens/patch` */
function siteOptions({ positions, method, heads: _heads, grid: _grid, ...options }) {
  if (positions === "all") options.each_position = false;
  if (method === "attribution") options.exact = false;
  if (method && method !== "exact") options.estimate = true;
  return options;
}

/** Of `checkpoints/`, or on the Hub. @param {string} model */
const loadCall = (model) => `headscope.load(${python(model.includes("/") ? model : `checkpoints/${model}`)})`;

/** A row of prompts. @param {string | Fields} row @param {(text: any) => string} read */
function pythonRow(row, read) {
  if (typeof row === "string") return read(row);
  const texts = ["prompt", "corrupted"];
  const columns = Object.entries(row).map(([name, value]) => {
    return `${python(name)}: ${texts.includes(name) ? read(value) : python(value)}`;
  });
  return `{${columns.join(", ")}}`;
}

/** A literal: JSON's strings and numbers are Python's too. @param {any} value @returns {string} */
function python(value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  return Array.isArray(value) ? `[${value.map(python).join(", ")}]` : JSON.stringify(value);
}

/** One line for each number or text, with the path to it in the JSON. @param {unknown} answer */
function asCsv(answer) {
  const lines = ["path,value"];
  /** @param {unknown} value @param {string} path */
  const add = (value, path) => {
    if (value !== null && typeof value === "object") {
      for (const [name, each] of Object.entries(value)) add(each, path ? `${path}.${name}` : name);
    } else lines.push(`${quoted(path)},${value === null ? "" : quoted(String(value))}`);
  };
  add(answer, "");
  return `${lines.join("\n")}\n`;
}

/** A field of CSV. @param {string} text */
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** @param {() => Answered | null} shown the answer that is shown */
export function copyMenu(shown) {
  /** @param {(answered: Answered) => string} write */
  const copyAs = (write) => () => {
    const answered = shown();
    if (answered) void copy(write(answered));
  };
  const { element, button } = menu("Copy", "Copy the answer", [
    ["As JSON", copyAs(({ answer }) => JSON.stringify(answer, null, 1))],
    ["As CSV", copyAs(({ answer }) => asCsv(answer))],
    ["The curl call", copyAs(({ asked }) => curlCall(asked))],
    ["The Python call", copyAs(({ asked }) => pythonCall(asked))],
  ]);
  const { said, copy } = copying(button);
  element.append(said);
  return element;
}
