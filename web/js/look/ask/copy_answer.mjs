// Copies an answer of Ask: its numbers, or a call that gives them again.

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

/** Python that needs nothing but its standard library. @param {AskRequest} asked */
function pythonCall(asked) {
  const body = asked.body ? `json.loads(${JSON.stringify(JSON.stringify(asked.body))})` : "None";
  return [
    "import json",
    "from urllib.request import urlopen",
    "",
    `body = ${body}`,
    `with urlopen(${JSON.stringify(addressOf(asked))}, body and json.dumps(body).encode()) as response:`,
    "    answer = json.load(response)",
    "",
  ].join("\n");
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
  const copy = (write) => () => {
    const answered = shown();
    if (answered) void navigator.clipboard.writeText(write(answered));
  };
  return menu("Copy", "Copy the answer", [
    ["As JSON", copy(({ answer }) => JSON.stringify(answer, null, 1))],
    ["As CSV", copy(({ answer }) => asCsv(answer))],
    ["The curl call", copy(({ asked }) => curlCall(asked))],
    ["The Python call", copy(({ asked }) => pythonCall(asked))],
  ]);
}
