// What is open on the page has entries of its own in the browser's history: Back closes what was opened last, and
// Forward opens it again. No other module of Look reads or writes the history.

import { hasModifier } from "../../lib/dom.mjs";

/** @typedef {"look" | "learn" | "train" | "use"} PageName */

/**
 * @typedef {object} PageState
 * @property {PageName} page
 * @property {string} ask the question of Ask; "" for none
 * @property {string} askWith the choices made for it, which have no entries of their own
 * @property {boolean} sheet whether the open head is a sheet over the text
 * @property {boolean} comparing whether two texts are compared
 * @property {boolean} menu whether the menu of a narrow screen is open
 * @property {boolean} details whether the details are shown
 * @property {boolean} guide whether the guide is open
 */

/** @typedef {{ opened: PageState, chain: PageState[] }} Entry `chain`: what those before it held, here */

const MAX_ENTRIES = 30; // entries of a chain
const BACK_TIMEOUT = 1000; // milliseconds within which the browser goes back

/** @param {PageState} opened */
const keyOf = ({ page, ask, sheet, comparing, menu, details, guide }) =>
  [page, ask, ...[sheet, comparing, menu, details, guide].map(Boolean)].join();

/** How much is open. @param {PageState} opened */
const countOf = ({ ask, sheet, comparing, menu, details, guide }) =>
  [ask !== "", !["", "list"].includes(ask), sheet, comparing, menu, details, guide].filter(Boolean).length;

/** @param {string} hash of an address @returns {PageName} */
export const pageOf = (hash) =>
  /** @type {const} */ (["learn", "train", "use"]).find((name) => hash.startsWith(`#${name}`)) ?? "look";

/** Whether the text was opened from another one in this tab. */
export const isOpenedHere = () => Boolean(history.state?.isOpenedHere);

/** Whether the text can be taken back: it was opened from another one, or written after it. */
export const canTakeBack = () => isOpenedHere() || Boolean(history.state?.isWritten);

/** Open another text; Back returns to this one. @param {string} search the query of its address */
export function openHere(search) {
  history.pushState({ isOpenedHere: true }, "", `${search}${location.hash}`);
  window.dispatchEvent(new PopStateEvent("popstate"));
}

/** Return to what was opened before. */
export const goBack = () => history.back();

/**
 * Follow a link within the page, which the browser would load anew: the page's base address lacks the query.
 * @param {MouseEvent} event
 */
function followLink(event) {
  const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
  if (!link || event.defaultPrevented || hasModifier(event)) return;
  event.preventDefault();
  const to = link.getAttribute("href") ?? "";
  location.hash = to;
  document.getElementById(to.slice(1))?.scrollIntoView();
}

export class Router {
  #isGoingBack = false;
  #isWaiting = false;
  #hasBegun = false;

  /**
   * @param {object} page
   * @param {() => PageState} page.read what is open now
   * @param {(opened: PageState) => void} page.show
   * @param {() => boolean} page.isHeld whether the page is opening an address
   * @param {() => void} page.arrive called when the browser has gone to another entry
   * @param {(name: PageName) => void} page.showPage
   */
  constructor({ read, show, isHeld, arrive, showPage }) {
    this.read = read;
    this.show = show;
    this.isHeld = isHeld;
    window.addEventListener("popstate", arrive);
    document.addEventListener("click", followLink);
    window.addEventListener("hashchange", () => showPage(pageOf(location.hash)));
  }

  /**
   * Give another text an entry of its own.
   * @param {string} search the query of its address
   * @param {boolean} [isWritten] whether it was written here
   */
  add(search, isWritten = false) {
    history.pushState({ opened: this.read(), chain: [], isWritten }, "", `${search}${location.hash}`);
  }

  /** Give the text of this entry another address. @param {string} search its query */
  rename(search) {
    history.replaceState(history.state, "", `${search}${location.hash}`);
  }

  /** Whether this entry is of a comparison. */
  get isOfComparison() {
    return Boolean(history.state?.opened?.comparing);
  }

  /** @returns {Entry} */
  get #current() {
    const page = pageOf(location.hash);
    const comparing = new URLSearchParams(location.search).has("b_sha256");
    const { details } = this.read(); // which the visitor's browser remembers
    const opened = { page, ask: "", askWith: "", sheet: false, comparing, menu: false, details, guide: false };
    return { opened, chain: [], ...history.state };
  }

  /** @param {Entry} entry @param {boolean} isNew */
  #write(entry, isNew) {
    const { page } = entry.opened;
    const hash = pageOf(location.hash) === page ? location.hash : page === "look" ? "" : `#${page}`;
    const address = `${location.pathname}${location.search}${hash}`;
    if (isNew) history.pushState(entry, "", address);
    else history.replaceState({ ...history.state, ...entry }, "", address);
  }

  /** Something may have been opened or closed: once all of it has been, the history follows. */
  record() {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    queueMicrotask(() => {
      this.#isWaiting = false;
      if (this.#hasBegun && !this.#isGoingBack && !this.isHeld()) this.#follow();
    });
  }

  #follow() {
    const now = this.read();
    const { opened, chain } = this.#current;
    const isSamePage = now.page === opened.page;
    if (keyOf(now) === keyOf(opened)) {
      this.#write({ opened: now, chain }, false);
      return;
    }
    const at = isSamePage ? chain.findLastIndex((one) => keyOf(one) === keyOf(now)) : -1;
    if (at >= 0) {
      this.#isGoingBack = true;
      setTimeout(() => (this.#isGoingBack = false), BACK_TIMEOUT); // in case there is no such entry any more
      history.go(at - chain.length);
    } else if (isSamePage && countOf(now) < countOf(opened)) this.#write({ opened: now, chain }, false);
    else this.#write({ opened: now, chain: isSamePage ? [...chain, opened].slice(-MAX_ENTRIES) : [] }, true);
  }

  /** An address was opened: its entry keeps the question, and Back closes what a link opened on top of its text. */
  begin() {
    const before = history.state?.opened;
    if (before) this.show({ ...this.read(), ask: before.ask, askWith: before.askWith });
    const now = this.read();
    const plain = /** @type {PageState} */ ({ ...now, ask: "", askWith: "", sheet: false, menu: false, guide: false });
    const isFirst = !this.#hasBegun && !history.state?.opened && keyOf(plain) !== keyOf(now);
    this.#hasBegun = true;
    if (isFirst) {
      this.#write({ opened: plain, chain: [] }, false);
      this.#write({ opened: now, chain: [plain] }, true);
    } else this.#write({ opened: now, chain: this.#current.chain }, false);
  }

  /** The browser has gone to another entry of the same address. */
  arrive() {
    if (this.#isGoingBack) {
      this.#isGoingBack = false;
      this.record(); // more may have been opened meanwhile
    } else this.show(this.#current.opened);
  }
}
