// Bytes as text.

/** @param {string} text base64 */
export const fromBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** Base64 with letters, digits, - and _ only, for links. @param {ArrayLike<number>} bytes */
export const toBase64Url = (bytes) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

/** The bytes that `toBase64Url` wrote. @param {string} text */
export const fromBase64Url = (text) => fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
