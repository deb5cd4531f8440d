// The opening as it stands in the page's HTML, with the server's answers to what the page asks about it
// (web/page/first_screen.py): the page draws it like any other text, before the server has the model.

/** @import { ModelInfo, SentPointer } from "../../types.js" */

/**
 * @typedef {object} FirstScreen
 * @property {ModelInfo[]} models those that are served, as far as they are known
 * @property {SentPointer} pointer to a run that the server has not named yet
 * @property {Record<string, string>} answers base64 by path below the run's address
 * @property {string[] | null} vocabulary
 */

/** The run of the opening until the server names it. */
export const PREPARED = "prepared";

/** @type {FirstScreen | null} */
let screen = null;

/** @param {FirstScreen} given */
export function usePrepared(given) {
  screen = given;
}

/** @param {string} path @returns {ArrayBuffer | undefined} */
export function preparedAnswer(path) {
  const text = screen?.answers[path];
  return text === undefined ? undefined : Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer;
}

/** @param {string} sha256 of the weights */
export const preparedVocabulary = (sha256) => (screen?.pointer.sha256 === sha256 ? screen.vocabulary : null);
