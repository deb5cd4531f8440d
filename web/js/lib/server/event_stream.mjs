// Server-sent events that answer a POST, which `EventSource` cannot send.

/**
 * The JSON objects of a stream, one for each event, as they arrive.
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
    reader.cancel().catch(() => {}); // whoever stops reading closes the stream
  }
}
