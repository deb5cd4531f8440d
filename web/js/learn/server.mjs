// Requests to the server, which computes every number of the lessons.

import { request } from "../lib/http.mjs";

/**
 * The JSON answer to a request.
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export const ask = async (path, body, signal) => (await request(`learn/${path}`, { body, signal })).json();

/**
 * The lines of a streamed answer, each parsed as JSON.
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<any>}
 */
export async function* askForLines(path, body, signal) {
  const response = await request(`learn/${path}`, { body, signal });
  if (!response.body) return;
  const decoder = new TextDecoder();
  let rest = "";
  for (const reader = response.body.getReader(); ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
}
