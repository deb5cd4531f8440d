// Asks the server one question under `v1/lens/`.

import { readEvents, request } from "../../lib/http.mjs";
import { answerInFile, isFile } from "./prepared.mjs";

/** @import { Questions } from "../../lens.js" */

/** @typedef {{ title: string, about: string, lines: number[] }} AboutSet with the line of each prompt */

/**
 * A route below `v1/lens/` with the body of a POST or the query of a GET; `set` describes the prompts in the body.
 * @typedef {{
 *   [Route in keyof Questions]: Questions[Route] extends { method: "POST"; body: infer Body }
 *     ? { route: Route, body: Body, query?: undefined }
 *     : { route: Route, body?: undefined, query: { [field in keyof Questions[Route]["body"]]?: string } };
 * }[keyof Questions] & { set?: AboutSet }} AskRequest
 */

/**
 * Return the answer. Aborting closes the stream, which stops the computation. Throws an `Error` with the server's
 * reason.
 * @param {AskRequest} asked
 * @param {{ signal?: AbortSignal, onProgress?: (fraction: number) => void, onRow?: (row: any) => void }} [options]
 *   the fraction done, from 0 to 1; `onRow` gets what is known before the answer, which has all of it
 */
export async function askServer(asked, { signal, onProgress, onRow } = {}) {
  if (isFile()) {
    const answer = answerInFile(asked);
    if (!answer) throw new Error("This file does not have that answer, only the one that was open when it was saved.");
    return answer;
  }
  const { route, body, query } = asked;
  const path = `v1/lens/${route}${body ? "" : `?${new URLSearchParams({ ...query, stream: "true" })}`}`;
  const response = await request(path, { body: body && { ...body, stream: true }, signal });
  for await (const event of readEvents(response)) {
    signal?.throwIfAborted();
    if (event.error) throw new Error(event.error.message);
    if ("row" in event) onRow?.(event.row);
    else if ("progress" in event) onProgress?.(event.progress);
    else return event;
  }
  throw new Error("The server closed the connection before answering.");
}
