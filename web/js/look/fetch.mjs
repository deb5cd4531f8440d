// Bytes from the server's routes. A run that is no longer kept there is recomputed from what the browser knows.

import { N_METRICS } from "./view.mjs";

/** `text` gives what the server needs to compute the run anew: {sha256, ids, n_prompt}. */
export class RunFetcher {
  constructor(run, text) {
    this.run = run;
    this.text = text;
    this.lost = false;
  }

  /** What came from row `start` on: a header, the metrics of every picture, and the thumbnails it describes. */
  async rows(start) {
    const buffer = await this.pull("rows", `?start=${start}`);
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const size = 4 * header.pictures * N_METRICS;
    const metrics = new Float32Array(buffer.slice(4 + length, 4 + length + size)); // copied: a float must lie at 4 n
    return { header, metrics, thumbnails: new Uint8Array(buffer, 4 + length + size) };
  }

  /** The exact weights of one picture, from row `start` on. */
  async head(layer, column, start) {
    return new Float32Array(await this.pull(`heads/${layer}/${column}`, `?start=${start}`));
  }

  /** What one query looks at in every picture: the weights of its keys, picture after picture. */
  async query(query) {
    return new Float32Array(await this.pull(`queries/${query}`));
  }

  /** The logits that followed the token at `position`, one for each token of the vocabulary. */
  async logits(position) {
    return new Float32Array(await this.pull(`logits/${position}`));
  }

  async pull(path, query = "") {
    if (!this.lost) {
      const response = await fetch(address(`look/${this.run}/${path}${query}`));
      if (response.ok) return response.arrayBuffer();
      if (response.status !== 404) throw new Error(await reason(response));
      this.lost = true;
    }
    const response = await fetch(address(`look/again/${path}${query}`), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(this.text()),
    });
    if (!response.ok) throw new Error(await reason(response));
    return response.arrayBuffer();
  }
}

// Relative to the page, so that it holds behind a proxy and on a Space.
export const address = (path) => new URL(path, document.baseURI);

async function reason(response) {
  try {
    return (await response.json()).detail ?? response.statusText;
  } catch {
    return `the server answered ${response.status}`;
  }
}
