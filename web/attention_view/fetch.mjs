// Bytes from the server's routes. A run that is no longer kept there is recomputed from what the browser knows.

/** `text` gives what the server needs to compute the run anew: {sha256, ids, n_prompt}. */
export class RunFetcher {
  constructor(run, text) {
    this.run = run;
    this.text = text;
    this.lost = false;
  }

  /** The thumbnails and tokens from row `start` on: a header and the bytes that it describes. */
  async rows(start) {
    const buffer = await this.pull("rows", start);
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    return [header, new Uint8Array(buffer, 4 + length)];
  }

  /** The exact weights of one head, from row `start` on. */
  async head(layer, head, start) {
    return new Float32Array(await this.pull(`heads/${layer}/${head}`, start));
  }

  async pull(path, start) {
    if (!this.lost) {
      const response = await fetch(address(`look/${this.run}/${path}?start=${start}`));
      if (response.ok) return response.arrayBuffer();
      if (response.status !== 404) throw new Error(await reason(response));
      this.lost = true;
    }
    const response = await fetch(address(`look/again/${path}?start=${start}`), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(this.text()),
    });
    if (!response.ok) throw new Error(await reason(response));
    return response.arrayBuffer();
  }
}

// Relative to the page, so that it holds behind a proxy and on a Space.
const address = (path) => new URL(path, document.baseURI);

async function reason(response) {
  try {
    return (await response.json()).detail ?? response.statusText;
  } catch {
    return `the server answered ${response.status}`;
  }
}
