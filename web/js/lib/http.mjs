// Requests to the server's own routes, and the event streams that answer some of them.

/** A status other than 2xx, with the server's reason as its message. */
export class HttpError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Relative to the page, so that it works behind a proxy and on a Space. @param {string} path */
export const address = (path) => new URL(path, document.baseURI);

/**
 * GET, or POST if there is a body: text as a string or a file, anything else as JSON. Throws `HttpError`.
 * @param {string} path
 * @param {{ body?: string | Blob | object, signal?: AbortSignal }} [options]
 */
export async function request(path, { body, signal } = {}) {
  /** @type {RequestInit} */
  const options = { signal };
  if (body !== undefined) {
    options.method = "POST";
    const isText = typeof body === "string" || body instanceof Blob;
    options.headers = { "Content-Type": isText ? "text/plain" : "application/json" };
    options.body = isText ? body : JSON.stringify(body);
  }
  const response = await fetch(address(path), options);
  if (!response.ok) throw new HttpError(response.status, await reason(response));
  return response;
}

/** @param {Response} response */
async function reason(response) {
  const fallback = `The server answered ${response.status}.`;
  try {
    const { detail, error } = await response.json();
    return (typeof detail === "string" ? detail : error?.message) ?? fallback;
  } catch {
    return fallback;
  }
}

/**
 * The JSON objects of a stream of server-sent events, one per event, as they arrive. (`EventSource` cannot POST.)
 * @param {Response} response
 * @returns {AsyncGenerator<any>}
 */
export async function* readEvents(response) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      text += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = /** @type {string} */ (events.pop());
      for (const event of events) if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {}); // closes the stream if the caller stops reading
  }
}
