// How tokens, pictures and cells are named.

import { headName, isHead, spokenHead } from "./heads.mjs";
import { weightText } from "./numbers.mjs";

/** @import { PictureId, Token } from "../types.js" */

/** A token with visible spaces and line breaks. @param {string} text */
export const visible = (text) =>
  text.replaceAll(" ", "·").replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll("\r", "␍") || "∅";

/** A token in a picture: with visible line breaks, and without the space before a word. @param {string} text */
export const asWritten = (text) => visible(text.replace(/^ (?=\S)/, ""));

/** Whether a text ends with spaces after a word; at the start of a line they indent it. @param {string} text */
export const endsWithSpace = (text) => /\S +$/.test(text);

const LAST_BYTES = /(<0x[0-9A-F]{2}>)+$/;

/**
 * What a token adds to the running text: without bytes of a character that a later token completes.
 * @param {Pick<Token, "text" | "bytes">} token
 */
export const shownText = ({ text, bytes }) => (bytes ? text.replace(LAST_BYTES, "") : text);

/** The text of tokens. @param {readonly Pick<Token, "text" | "bytes">[]} tokens */
export const textOf = (tokens) => tokens.map(shownText).join("");

/**
 * The first `n` tokens of a text as a prompt to edit: without what the vocabulary puts before it, and with U+FFFD for
 * bytes that are no part of any character. What nobody edits is sent as ids.
 * @param {{ tokens: readonly Pick<Token, "text" | "bytes">[], pointer: { before?: string } }} text
 * @param {number} [n] all if left out
 */
export function promptText({ tokens, pointer }, n) {
  const texts = tokens.slice(0, n).map((token) => shownText(token).replace(/<0x[89A-F][0-9A-F]>/g, "\uFFFD"));
  return texts.join("").slice(pointer.before?.length);
}

/**
 * A token of the vocabulary as it would read after a text: the character that it completes, or else its own text.
 * @param {string} text
 * @param {readonly Pick<Token, "text" | "bytes">[]} tokens of the text
 */
export function readAfter(text, tokens) {
  if (!/^(<0x[0-9A-F]{2}>)+$/.test(text)) return text;
  let begun = "";
  for (let i = tokens.length - 1; i >= 0 && tokens[i].bytes; i--) {
    const [bytes] = LAST_BYTES.exec(tokens[i].text) ?? [""];
    begun = bytes + begun;
    if (bytes !== tokens[i].text) break;
  }
  if (!begun) return text;
  const bytes = [...`${begun}${text}`.matchAll(/<0x(..)>/g)].map(([, hex]) => parseInt(hex, 16));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return text; // the character lacks more bytes, or these are not its bytes
  }
}

/**
 * A token in quotes and, if it holds only a part of its character, its bytes.
 * @param {Pick<Token, "text" | "bytes">} token
 */
export const nameWithBytes = ({ text, bytes }) =>
  bytes === undefined || bytes === text ? `“${visible(text)}”` : `“${visible(text)}” (${bytes})`;

const END = "<|endoftext|>";

/** Whether a token of the vocabulary ends a text. @param {string} text */
export const isEnd = (text) => text === END;

/** @type {Record<string, string>} */
const TOKEN_NAMES = {
  " ": "a space",
  "\n": "a line break",
  "\t": "a tab",
  "": "nothing",
  [END]: "end of text",
};

/** A token as one would say it: without the space before it. @param {string} text */
export const plainly = (text) => TOKEN_NAMES[text] ?? (text.trim() || visible(text));

/** A token in a sentence: in quotes, unless it has a name; a quotation mark in single ones. @param {string} text */
export const spoken = (text) => {
  if (isEnd(text)) return "the end of the text";
  const said = plainly(text);
  return text in TOKEN_NAMES ? said : /[“”"]/.test(said) ? `‘${said}’` : `“${said}”`;
};

/**
 * Two tokens in a sentence: exactly where both would read the same.
 * @param {string} one
 * @param {string} other
 * @returns {[string, string]}
 */
export const spokenApart = (one, other) =>
  one !== other && spoken(one) === spoken(other)
    ? [`“${visible(one)}”`, `“${visible(other)}”`]
    : [spoken(one), spoken(other)];

/**
 * The question why a token comes next, in parts. That about a mark is longer: “Why “!”?” would be hard to read.
 * @template {string | Node} Name
 * @param {string} text of the token
 * @param {Name} name of the token
 * @returns {(string | Name)[]}
 */
export const whyQuestion = (text, name) =>
  text in TOKEN_NAMES || /[\p{L}\p{N}]/u.test(text) ? ["Why ", name, "?"] : ["Why does ", name, " come next?"];

/**
 * A token of a text in a sentence: in quotes, unless it has a name; of a character that is complete, “a part of it”.
 * @param {readonly Pick<Token, "text" | "bytes">[]} tokens
 * @param {number} at
 */
export function spokenAt(tokens, at) {
  const { text, bytes } = tokens[at];
  if (bytes !== text) return spoken(text);
  const end = tokens.findIndex((token, i) => i > at && token.bytes !== token.text);
  return tokens[end]?.bytes ? `a part of ${spoken(shownText(tokens[end]))}` : spoken(text);
}

// Scripts whose words no space separates: a line may end before any of their letters.
const UNSPACED = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;

/**
 * Whether a token continues the word before it, or is its punctuation, so that both stand in one line.
 * @param {readonly Pick<Token, "text" | "bytes">[]} tokens
 * @param {number} at
 */
export function isJoined(tokens, at) {
  if (at < 1 || unitOf({ tokens }) === "letter") return false;
  const [before, text] = [shownText(tokens[at - 1]), shownText(tokens[at])];
  return !/\s$/.test(before) && !/^\s/.test(text) && !UNSPACED.test(text);
}

/**
 * The word that ends with a token, which may continue it: “blue” for “ue” after “ bl”.
 * @param {readonly Pick<Token, "text" | "bytes">[]} tokens
 * @param {number} position
 */
export const wordUpTo = (tokens, position) => wordAround(tokens.slice(0, position + 1), position);

/**
 * The word that a token is a part of: “blue” for “ bl” before “ue”.
 * @param {readonly Pick<Token, "text" | "bytes">[]} tokens
 * @param {number} position
 */
function wordAround(tokens, position) {
  const texts = tokens.map(shownText);
  if (!texts[position]) return plainly(tokens[position].text);
  const continues = (/** @type {number} */ at) =>
    isJoined(tokens, at) && /^(['’]?[\p{L}\p{N}]|$)/u.test(texts[at]) && /(^|[\p{L}\p{N}])$/u.test(texts[at - 1]);
  let [start, end] = [position, position + 1];
  while (start > 0 && continues(start)) start--;
  while (end < texts.length && continues(end)) end++;
  return plainly(texts.slice(start, end).join(""));
}

/**
 * A token of a text in a sentence, with the word that it is a part of: “ue” in “blue”.
 * @param {readonly Pick<Token, "text" | "bytes">[]} tokens
 * @param {number} at
 */
export function spokenInWord(tokens, at) {
  const [token, word] = [spokenAt(tokens, at), wordAround(tokens, at)];
  return shownText(tokens[at]) && word !== plainly(tokens[at].text) ? `${token} in “${word}”` : token;
}

/**
 * What to call a token of a text for somebody new to the word.
 * @param {{ tokens: readonly Pick<Token, "text">[] }} text
 */
export const unitOf = ({ tokens }) =>
  tokens.length && tokens.every(({ text }) => text.length === 1 || countCharacters(text) === 1) ? "letter" : "word";

/** The number of characters, counted as Python does: an emoji is one, not two. @param {string} text */
export const countCharacters = (text) => text.length - (text.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)?.length ?? 0);

const SEGMENTER = new Intl.Segmenter("en"); // what counts as a character is the same in every language

/**
 * The characters of a text as a reader sees them: a flag, a family or a letter with its accents is one.
 * @param {string} text
 */
export const characters = (text) => Array.from(SEGMENTER.segment(text), ({ segment }) => segment);

/** At most `length` characters, the last one an ellipsis. @param {string} text @param {number} length */
export function shorten(text, length) {
  if (text.length <= length) return text;
  const all = characters(text);
  return all.length > length ? `${all.slice(0, length - 1).join("")}…` : text;
}

/** The last `length` characters, after an ellipsis if there are more. @param {string} text @param {number} length */
export function ending(text, length) {
  const all = characters(text);
  return all.length > length ? `…${all.slice(-length).join("")}` : text;
}

/**
 * The name of a picture as a label: a head, the mean of a layer or of all heads, a rollout.
 * @param {PictureId} picture
 * @param {import("./heads.mjs").Shape} shape of the model
 */
export function pictureName([layer, column], { n_layer, n_head }) {
  if (layer === n_layer) return "Mean of all heads";
  if (column === n_head) return `Mean of layer ${layer}`;
  if (column === n_head + 1) return `Rollout of layer ${layer}`;
  return headName([layer, column]);
}

/**
 * The name of a picture in a sentence.
 * @param {PictureId} picture
 * @param {import("./heads.mjs").Shape} shape of the model
 */
export function spokenPicture(picture, shape) {
  if (isHead(picture, shape)) return spokenHead(picture);
  const name = pictureName(picture, shape);
  return `the ${name[0].toLowerCase()}${name.slice(1)}`;
}

/** Some heads in a sentence: "head 1 of layer 0", "heads 0·1 and 2·3". @param {PictureId[]} heads */
export const spokenHeads = (heads) =>
  heads.length === 1 ? spokenHead(heads[0]) : `heads ${listed(heads.map(headName))}`;

/**
 * A sentence about one cell.
 * @param {Pick<Token, "text">[]} tokens
 * @param {number} query
 * @param {number} key
 * @param {number} weight
 */
export function sentence(tokens, query, key, weight) {
  /** @param {number} position */
  const name = (position) => `“${visible(tokens[position].text)}” at position ${position}`;
  return `${name(query)} (query) looks at ${name(key)} (key): ${weightText(weight)}`;
}

/** "a", "a and b", "a, b and c". @param {string[]} names */
export const listed = (names) => [names.slice(0, -1).join(", "), names.at(-1) ?? ""].filter(Boolean).join(" and ");

/** With a capital as its first letter. @param {string} text */
export const capitalised = (text) => text[0].toUpperCase() + text.slice(1);

/** The name of a model without the training step of a snapshot. @param {string} model */
export const baseName = (model) => model.replace(/@\d+$/, "");

/** The training step in a snapshot's name; null for a model itself. @param {string} model */
export const stepOf = (model) => (/@\d+$/.test(model) ? Number(model.split("@").at(-1)) : null);
