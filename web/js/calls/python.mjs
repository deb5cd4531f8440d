// Calls of the Python library, which needs no server.

/** @typedef {Record<string, any>} Fields of a body or a query, by name */
/** @typedef {{ route: string, body?: Fields, query?: Record<string, string | undefined> }} Asked below `v1/lens/` */

/** A literal: JSON's strings and numbers are Python's too. @param {any} value @returns {string} */
export function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${python(name)}: ${python(each)}`)
    .join(", ")}}`;
}

/** Of `checkpoints/`, or on the Hub. @param {string} model */
const loadCall = (model) => `headscope.load(${python(model.includes("/") ? model : `checkpoints/${model}`)})`;

/** The method of a loaded model that gives the same numbers. @param {Asked} asked */
export function lensCall(asked) {
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

/** Those that are not null; a query has text in place of numbers. @param {Asked} asked @returns {Fields} */
function givenFields({ body, query }) {
  const read = Object.entries(query ?? {}).map(([name, value]) => [
    name,
    name !== "model" && /^(\d+|true|false)$/.test(String(value)) ? JSON.parse(String(value)) : value,
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
  if (positions === "all") options.positions = "all";
  if (method === "attribution") options.exact = false;
  if (method && method !== "exact") options.estimate = true;
  return options;
}

/** A row of prompts. @param {string | Fields} row @param {(text: any) => string} read */
function pythonRow(row, read) {
  if (typeof row === "string") return read(row);
  const texts = ["prompt", "corrupted"];
  const columns = Object.entries(row).map(([name, value]) => {
    return `${python(name)}: ${texts.includes(name) ? read(value) : python(value)}`;
  });
  return `{${columns.join(", ")}}`;
}

/**
 * A program that loads a model first.
 * @param {string} model
 * @param {string[]} lines
 */
export const withModel = (model, ...lines) =>
  ["import headscope", "", `loaded = ${loadCall(model)}`, ...lines].join("\n");

/** The arguments of a call, one on each line. @param {[name: string, value: any][]} given no name for the first */
export const argumentsOf = (given) =>
  given.map(([name, value]) => `\n    ${name ? `${name}=` : ""}${python(value)},`).join("");
