// Copies an answer of Ask: its numbers, or a call that gives them again.

import { curl } from "../../calls/call.mjs";
import { lensCall } from "../../calls/python.mjs";
import { copying } from "../../widgets/copy.mjs";
import { menu } from "../../widgets/menu.mjs";

/** @import { AskRequest } from "../state/ask_server.mjs" */

/** @typedef {{ asked: AskRequest, answer: any }} Answered */

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
    ["The curl call", copyAs(({ asked }) => curl(`v1/lens/${asked.route}`, asked))],
    ["The Python call", copyAs(({ asked }) => lensCall(asked))],
  ]);
  const { said, copy } = copying(button);
  element.append(said);
  return element;
}
