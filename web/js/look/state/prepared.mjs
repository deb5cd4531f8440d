import { fromBase64 } from "../../lib/bytes.mjs";
// A text that is drawn like any other, but without a server: the opening in the page's HTML (web/page/first_screen.py),
// until the server has the model, or the text of a file (saved/main.mjs).

/** @import { ModelInfo, Roles, SentPointer } from "../../types.js" */
/** @import { AskRequest } from "./ask_server.mjs" */

/**
 * @typedef {object} FirstScreen
 * @property {ModelInfo[]} models those that are served, as far as they are known
 * @property {SentPointer} pointer to a run that the server has not named yet
 * @property {Record<string, string>} answers base64 by path below the run's address
 * @property {string[] | null} vocabulary
 * @property {KnownAttribution | null} [attribution]
 * @property {Roles | null} [roles] of its model
 */

/**
 * What each head adds to the logit of a token after a position.
 * @typedef {{ position: number, token: number, heads: number[] }} KnownAttribution
 */

/**
 * @typedef {object} Prepared
 * @property {string} sha256 of the weights
 * @property {string[] | null} vocabulary
 * @property {(path: string) => ArrayBuffer | undefined} answer to a path below the run's address
 * @property {(asked: AskRequest) => any} [answerTo] a question of Ask; files have this in place of a server
 * @property {AskRequest} [asked] the question that it can answer
 * @property {boolean} [isOnStage] whether that answer was open on the stage
 * @property {KnownAttribution | null} [attribution]
 * @property {Roles | null} [roles]
 */

/** The run of a prepared text; that of an opening until the server names it. */
export const PREPARED = "prepared";

/** @type {Prepared | null} */
let prepared = null;

/** @param {Prepared} given */
export function usePrepared(given) {
  prepared = given;
}

/** @param {FirstScreen} screen @returns {Prepared} */
export const fromFirstScreen = ({ pointer, answers, vocabulary, attribution, roles }) => ({
  sha256: pointer.sha256 ?? "",
  vocabulary,
  attribution,
  roles,
  answer: (path) => (path in answers ? fromBase64(answers[path]).buffer : undefined),
});

/** @param {string} path */
export const preparedAnswer = (path) => prepared?.answer(path);

/** @param {string} sha256 of the weights */
export const preparedVocabulary = (sha256) => (prepared?.sha256 === sha256 ? prepared.vocabulary : null);

/**
 * What each head adds to a token, if it is kept with the text.
 * @param {string} sha256 of the weights
 * @param {number} position
 * @param {number | null} token
 */
export function preparedAttribution(sha256, position, token) {
  const known = prepared?.sha256 === sha256 ? prepared.attribution : null;
  return known?.position === position && known.token === token ? known.heads : null;
}

/** The roles of a model's heads, if they are kept with the text. @param {string} sha256 */
export const preparedRoles = (sha256) => (prepared?.sha256 === sha256 ? (prepared.roles ?? null) : null);

/** Whether the text is that of a file: there is no server, and so no model. */
export const isFile = () => prepared?.answerTo !== undefined;

/** What a file answers to a question; undefined for nothing. @param {AskRequest} asked */
export const answerInFile = (asked) => prepared?.answerTo?.(asked);

/** Whether the stage shows why a token comes next: in a file, if it did when that was saved. */
export const answersOnStage = () => prepared?.isOnStage ?? !isFile();

/** The question whose answer a file has; undefined for none, and where there is a server. */
export const preparedQuestion = () => prepared?.asked;
