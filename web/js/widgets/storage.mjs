// Values that the browser keeps from one visit to the next, if it allows storage.

/** @param {string} name @param {string} value */
export function writeStored(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage may be refused.
  }
}

/** @param {string} name */
export function readStored(name) {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}
