// Asks the server one question under `v1/lens/`.

import { readEvents, request } from "../../lib/http.mjs";

/** @import { AskRequest } from "./question.js" */

/**
 * Return the answer. Aborting closes the stream, which stops the computation. Throws an `Error` with the server's
 * reason.
 * @param {AskRequest} asked
 * @param {{ signal?: AbortSignal, onProgress?: (fraction: number) => void }} [options] the fraction done, from 0 to 1
 */
export async function askServer({ route, body, query }, { signal, onProgress } = {}) {
  const path = `v1/lens/${route}${body ? "" : `?${new URLSearchParams({ ...query, stream: "true" })}`}`;
  const response = await request(path, { body: body && { ...body, stream: true }, signal });
  for await (const event of readEvents(response)) {
    signal?.throwIfAborted();
    if (event.error) throw new Error(event.error.message);
    if (!("progress" in event)) return event;
    onProgress?.(event.progress);
  }
  throw new Error("The server closed the connection before answering.");
}
