// Asking the server for numbers: everything on the page was computed there.

export const address = (path) => new URL(`learn/${path}`, document.baseURI);

export async function post(path, body, signal) {
  const response = await fetch(address(path), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw new Error(await reason(response));
  return response;
}

async function reason(response) {
  try {
    const { detail, error } = await response.json();
    return (typeof detail === "string" ? detail : error?.message) ?? `The server answered ${response.status}.`;
  } catch {
    return `The server answered ${response.status}.`;
  }
}

/** Only the newest of several questions is answered; those that came before it are given up. */
export class Newest {
  constructor() {
    this.controller = null;
  }

  /** The answer, or null where a newer question was asked meanwhile. */
  async ask(path, body, pause = 0) {
    this.controller?.abort();
    const controller = (this.controller = new AbortController());
    if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
    if (controller.signal.aborted) return null;
    try {
      const answer = await (await post(path, body, controller.signal)).json();
      return controller.signal.aborted ? null : answer;
    } catch (error) {
      if (controller.signal.aborted) return null;
      throw error;
    }
  }
}

/** The lines of a streamed answer, as objects. */
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const found = (rest + value).split("\n");
    rest = found.pop();
    for (const line of found) yield JSON.parse(line);
  }
}
