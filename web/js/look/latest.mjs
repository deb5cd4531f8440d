// Loading what is wanted now: one request at a time, after a pause; what is no longer wanted when it comes is not shown.

const KEPT = 24; // answers of one run

export class Latest {
  /** `load(fetcher, place)` asks the server, `show(value, place)` gets what is wanted, `report(error)` what went wrong. */
  constructor({ load, show, report }) {
    Object.assign(this, { load, show, report });
    this.kept = new Map();
    this.place = null;
  }

  /** Show this place of a run, at once where it is kept; null for nothing. */
  want(fetcher, place, pause) {
    if (fetcher !== this.fetcher) this.kept.clear();
    Object.assign(this, { fetcher, place, pause });
    if (place === null) return;
    const found = this.kept.get(place);
    if (found) {
      this.keep(place, found);
      this.show(found, place);
    } else if (!this.busy) this.pull();
  }

  keep(place, value) {
    this.kept.delete(place);
    this.kept.set(place, value);
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
  }

  async pull() {
    this.busy = true;
    while (this.place !== null && !this.kept.has(this.place)) {
      await new Promise((resolve) => setTimeout(resolve, this.pause));
      const { fetcher, place } = this;
      if (place === null || this.kept.has(place)) break;
      const isWanted = () => fetcher === this.fetcher && place === this.place;
      try {
        const value = await this.load(fetcher, place);
        if (fetcher === this.fetcher) this.keep(place, value);
        if (isWanted()) this.show(value, place);
      } catch (error) {
        if (!isWanted()) continue;
        this.report(error);
        break;
      }
    }
    this.busy = false;
  }
}

/** How long to wait before the server is asked: hardly while one scrubs, longer while it is busy writing. */
export const pauseOf = ({ state }) => (state === "writing" ? 250 : 60);
