// What a visitor chose for a question, as links hold it: "method.mean~about.token". Values are
// of letters, digits, dashes and underscores; token ids fit in as `encodeIds` writes them (lib/link.mjs).

const PART = /^[\w-]+$/;

/**
 * The defaults of a question with what was chosen; what it does not know is left out.
 * @param {string} text
 * @param {Record<string, string>} defaults
 */
export function readChoices(text, defaults) {
  const found = { ...defaults };
  for (const part of text ? text.split("~") : []) {
    const [name, value, ...rest] = part.split(".");
    if (Object.hasOwn(defaults, name) && value && PART.test(value) && !rest.length) found[name] = value;
  }
  return found;
}

/**
 * @param {Record<string, string>} choices
 * @param {Record<string, string>} defaults
 */
export function writeChoices(choices, defaults) {
  const changed = Object.entries(choices).filter(([name, value]) => value !== defaults[name]);
  return changed.map(([name, value]) => `${name}.${value}`).join("~");
}
