import { thousands } from "../../../lib/numbers.mjs";
// Rows of prompts, from JSON, JSON lines or CSV.

/**
 * A prompt; for a pair also the corrupted prompt, the answer to the first and the answer to the second.
 * @typedef {{ prompt: string, corrupted?: string, answer?: string | number, wrong?: string | number }} PromptRow
 */

const COLUMNS = /** @type {const} */ (["prompt", "corrupted", "answer", "wrong"]);
const MAX_ROWS = 1000;
export const MAX_BYTES = 2_000_000;

/**
 * The rows of a text, and the line on which each begins. Throws an `Error` that names the line of a bad row.
 * @param {string} text
 * @returns {{ rows: PromptRow[], lines: number[] }}
 */
export function parseRows(text) {
  if (new TextEncoder().encode(text).length > MAX_BYTES) throw new Error("The prompts are larger than 2 MB.");
  const first = text.trimStart()[0];
  const read = first === "[" ? fromJson(text) : first === "{" || first === '"' ? fromLines(text) : fromCsv(text);
  if (!read.rows.length) throw new Error("There are no prompts yet.");
  if (read.rows.length > MAX_ROWS)
    throw new Error(`${thousands(read.rows.length)} rows were given; at most 1,000 are read.`);
  return read;
}

/** @param {unknown} value @param {string} where @returns {PromptRow} */
function checked(value, where) {
  if (typeof value === "string" && value) return { prompt: value };
  const row = /** @type {Record<string, unknown>} */ (value);
  if (!row || typeof row !== "object" || typeof row.prompt !== "string" || !row.prompt)
    throw new Error(`${where}: a row must be a text or an object with a prompt.`);
  for (const [name, content] of Object.entries(row)) {
    const known = /** @type {readonly string[]} */ (COLUMNS).includes(name);
    if (!known) throw new Error(`${where}: there is no column “${name}”, only ${COLUMNS.join(", ")}.`);
    const isToken = name === "answer" || name === "wrong";
    if (typeof content !== "string" && !(isToken && Number.isInteger(content)))
      throw new Error(`${where}: ${name} must be text.`);
  }
  return /** @type {PromptRow} */ (/** @type {unknown} */ (row));
}

/** @param {string} text */
function fromJson(text) {
  /** @type {unknown} */
  let all;
  try {
    all = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not valid JSON: ${/** @type {Error} */ (error).message}`, { cause: error });
  }
  const rows = /** @type {unknown[]} */ (all).map((value, at) => checked(value, `Row ${at + 1}`));
  return { rows, lines: rows.map((_, at) => at + 1) };
}

/** @param {string} text */
function fromLines(text) {
  const [rows, lines] = [/** @type {PromptRow[]} */ ([]), /** @type {number[]} */ ([])];
  text.split("\n").forEach((line, at) => {
    if (!line.trim()) return;
    /** @type {unknown} */
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Error(`Line ${at + 1}: this is not valid JSON.`);
    }
    rows.push(checked(value, `Line ${at + 1}`));
    lines.push(at + 1);
  });
  return { rows, lines };
}

/**
 * A first line that names columns, with the prompt among them; otherwise every line is a prompt.
 * @param {string} text
 */
function fromCsv(text) {
  const records = csvRecords(text);
  const names = records[0]?.fields.map((name) => name.trim()) ?? [];
  if (!names.includes("prompt")) {
    const kept = text.split("\n").map((line, at) => ({ line: line.replace(/\r$/, ""), at }));
    const full = kept.filter(({ line }) => line.trim());
    return { rows: full.map(({ line }) => ({ prompt: line })), lines: full.map(({ at }) => at + 1) };
  }
  const rows = records.slice(1).map(({ fields, line }) => {
    if (fields.length !== names.length)
      throw new Error(`Line ${line}: there are ${fields.length} fields, but ${names.length} columns.`);
    const given = names.flatMap((name, at) => (fields[at] ? [[name, fields[at]]] : []));
    return checked(Object.fromEntries(given), `Line ${line}`);
  });
  return { rows, lines: records.slice(1).map(({ line }) => line) };
}

/**
 * The records of CSV as in RFC 4180, without empty lines.
 * @param {string} text
 * @returns {{ fields: string[], line: number }[]}
 */
function csvRecords(text) {
  const records = /** @type {{ fields: string[], line: number }[]} */ ([]);
  let [fields, field, isQuoted, line, began] = [/** @type {string[]} */ ([]), "", false, 1, 1];
  const end = () => {
    fields.push(field);
    if (fields.length > 1 || field.trim()) records.push({ fields, line: began });
    [fields, field] = [[], ""];
  };
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (letter === "\n") line++;
    if (isQuoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') {
        field += letter;
        at++;
      } else isQuoted = false;
    } else if (letter === '"' && !field) isQuoted = true;
    else if (letter === ",") {
      fields.push(field);
      field = "";
    } else if (letter === "\n") {
      end();
      began = line;
    } else if (letter !== "\r") field += letter;
  }
  if (isQuoted) throw new Error(`Line ${began}: a quotation mark is not closed.`);
  end();
  return records;
}
