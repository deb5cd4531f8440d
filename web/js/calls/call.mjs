// One request to the server, as programs in several languages write it.

import { python } from "./python.mjs";

/** @typedef {Record<string, any>} Fields of a body, by name */

/**
 * What is sent to a path below the page's address, and the environment variable that a program takes a key from.
 * @typedef {object} Sent
 * @property {Fields} [body] of a POST
 * @property {Record<string, string | undefined>} [query] of a GET
 * @property {boolean} [withKey] whether the server requires a key
 * @property {string} [file] what the answer is saved as; left out if it is text
 */

/** @typedef {(string | number)[]} Path to a part of an answer; -1 is the last one */

const KEY = "HEADSCOPE_API_KEY";

/** An address that ends no string, of a shell or of a program. @param {string} path @param {Sent["query"]} [query] */
export function addressOf(path, query) {
  const words = query ? `?${new URLSearchParams(/** @type {Record<string, string>} */ (query))}` : "";
  return new URL(`${path}${words}`, document.baseURI).href.replaceAll("'", "%27");
}

/** One field on each line. @param {Fields} fields @param {(name: string, value: any) => string} write */
const lines = (fields, write) =>
  `{\n${Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `  ${write(name, value)}`)
    .join(",\n")}\n}`;

/** JSON with a space after each comma, so that lines can break there. @param {any} value @returns {string} */
function json(value) {
  if (Array.isArray(value)) return `[${value.map(json).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${JSON.stringify(name)}: ${json(each)}`)
    .join(", ")}}`;
}

/** For a shell: no quotation mark ends the string that the body is put into. @param {string} path @param {Sent} sent */
export function curl(path, { body, query, withKey, file }) {
  const key = withKey ? `-H "Authorization: Bearer $${KEY}" ` : "";
  const address = query ? `'${addressOf(path, query)}'` : addressOf(path);
  const data = body && lines(body, (name, value) => `"${name}": ${json(value)}`).replaceAll("'", "\\u0027");
  return `curl ${key}${address}${data ? ` -d '${data}'` : ""}${file ? ` -o ${file}` : ""}`;
}

/** Of a part, in Python. @param {Path} part */
const item = (part) => part.map((each) => `[${JSON.stringify(each)}]`).join("");

/**
 * For Python with httpx, which waits as long as a long text takes.
 * @param {string} path
 * @param {Sent} sent
 * @param {Path} part of the answer that is printed; of a file, its names with their shapes
 */
export function httpx(path, { body, query, withKey, file }, part) {
  const reader = file ? "\nfrom safetensors.numpy import load" : "";
  const given = [
    JSON.stringify(addressOf(path, query)),
    body && `json=${indented(lines(body, pythonEntry))}`,
    withKey && `headers={"Authorization": "Bearer " + os.environ["${KEY}"]}`,
    "timeout=None",
  ].filter(Boolean);
  const printed = file
    ? "{name: values.shape for name, values in load(response.content).items()}"
    : `response.json()${item(part)}`;
  return `${withKey ? "import os\n\n" : ""}import httpx${reader}

response = httpx.${body ? "post" : "get"}(
${given.map((each) => `    ${each},\n`).join("")})
response.raise_for_status()
print(${printed})`;
}

/** @param {boolean} [withKey] */
export const openaiClient = (withKey) =>
  `${withKey ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(
    base_url=${JSON.stringify(addressOf("v1"))},
    api_key=${withKey ? `os.environ["${KEY}"]` : '"none"'},
)
`;

/**
 * A route that OpenAI’s client has no method for.
 * @param {string} path
 * @param {Sent} sent
 * @param {Path} part of the answer that is printed
 */
export function openai(path, { body, query, withKey }, part) {
  const route = path.replace("v1", "");
  const options = query ? `options={"params": ${python(query)}}` : `body=${indented(lines(body ?? {}, pythonEntry))}`;
  return `${openaiClient(withKey)}answer = client.${query ? "get" : "post"}(
    "${route}",
    cast_to=object,
    ${options},
)
print(answer${item(part)})`;
}

/** @param {string} name @param {any} value */
const pythonEntry = (name, value) => `  "${name}": ${python(value)}`;

/** @param {string} code */
const indented = (code) => code.replaceAll("\n", "\n    ");

/** @param {Path} part */
const member = (part) =>
  part.map((each) => (typeof each === "string" ? `.${each}` : each < 0 ? `.at(${each})` : `[${each}]`)).join("");

/**
 * For a browser, or for Node as a module.
 * @param {string} path
 * @param {Sent} sent
 * @param {Path} part of the answer that is printed
 */
export function javascript(path, { body, query, withKey, file }, part) {
  const fields = body && lines(body, (name, value) => `${name}: ${json(value)}`).replaceAll("\n", "\n  ");
  const options = [
    body && 'method: "POST"',
    withKey && `headers: { Authorization: \`Bearer \${process.env.${KEY}}\` }`,
    body && `body: JSON.stringify(${fields})`,
  ].filter(Boolean);
  const given = options.length ? `, {\n${options.map((option) => `  ${option},\n`).join("")}}` : "";
  const read = file
    ? `const file = await response.arrayBuffer();
const length = Number(new DataView(file).getBigUint64(0, true));
const names = new TextDecoder().decode(new Uint8Array(file, 8, length));
console.log(JSON.parse(names));`
    : `const answer = await response.json();\nconsole.log(answer${member(part)});`;
  return `const response = await fetch("${addressOf(path, query)}"${given});\n${read}`;
}
