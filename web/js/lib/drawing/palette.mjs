// Colour ramps: one hue for "looks at", one for "is looked at by", one for surprise. Lightness alone gives the order,
// so they can be read without colour vision; the weakest shades fade into the page, light or dark. The ramps for
// changes and differences have two hues, strong at both ends and faded in the middle.

import { onEnd } from "../reactive.mjs";

const RAMPS = {
  light: {
    looks: ["#f1f4f9", "#cfddf1", "#9fbfe6", "#629ad6", "#2f70bb", "#144c8f", "#06275a"],
    seen: ["#f8f4ee", "#f5deba", "#eebd7d", "#dd9443", "#b96a1d", "#8a4709", "#552703"],
    surprise: ["#f8f3f6", "#f0d6e4", "#e3aecb", "#d080ab", "#b35088", "#872d62", "#541539"],
    change: ["#0b5363", "#3f93a3", "#b3d7db", "#f6f6f4", "#f7d2ae", "#d9802f", "#84390a"],
    // Orange to purple (ColorBrewer's PuOr), safe for colour blindness; neutral in the middle.
    difference: ["#7f3b08", "#b35806", "#e08214", "#fdb863", "#f7f7f7", "#b2abd2", "#8073ac", "#542788", "#2d004b"],
  },
  dark: {
    looks: ["#1a202c", "#1b3558", "#1b5288", "#2273b5", "#3f9ad8", "#7cc6f2", "#cdeeff"],
    seen: ["#1f1c1a", "#4a2f18", "#7a4a1a", "#ae6c22", "#dc9640", "#f9b45a", "#ffcf87"],
    surprise: ["#1f1a1e", "#452a3b", "#70385a", "#a04b80", "#cd6ba7", "#ec9ccb", "#ffd5ec"],
    change: ["#9fe8f5", "#3c9db2", "#1b4854", "#1b222c", "#5b3a1b", "#c67f35", "#ffcd96"],
    difference: ["#ffd9a3", "#fdb04e", "#d97a14", "#8a4d10", "#1b212a", "#4a4384", "#7f74d4", "#ada4f5", "#dcd7ff"],
  },
};

/** @typedef {number[]} Colour red, green and blue, 0 to 255 */

/** @param {string} colour as #rrggbb; a property of a style sheet may begin with a space @returns {Colour} */
export const parseHex = (colour) => [1, 3, 5].map((i) => parseInt(colour.trim().slice(i, i + 2), 16));

/** 256 colours evenly between the anchors. @param {string[]} anchors @returns {Colour[]} */
function interpolate(anchors) {
  const stops = anchors.map(parseHex);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(at), stops.length - 2);
    return stops[left].map((value, c) => Math.round(value + (at - left) * (stops[left + 1][c] - value)));
  });
}

/**
 * Relative luminance (WCAG 2.2); at MIDDLE black and white have the same contrast, 4.58 to 1.
 * @param {Colour} colour
 */
const luminance = (colour) => {
  const [r, g, b] = colour.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const MIDDLE = Math.sqrt(1.05 * 0.05) - 0.05;

/** The darkest of the 256 shades of a ramp that tables use: on darker ones the mark of a cell could not be seen. */
export const MAX_RAMP_SHADE = 225;

/** 256 shades of one ramp: packed for pixels, and as CSS colours with an ink that is readable on them. */
export class Ramp {
  /** @param {string[]} anchors as #rrggbb, from the weakest to the strongest */
  constructor(anchors) {
    const colours = interpolate(anchors);
    this.pixels = new Uint32Array(colours.map(([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0));
    this.css = colours.map(([r, g, b]) => `rgb(${r},${g},${b})`);
    this.ink = colours.map((colour) => (luminance(colour) > MIDDLE ? "#000000" : "#ffffff"));
  }

  /** Colour an element. @param {HTMLElement} element @param {number} shade */
  paint(element, shade) {
    element.style.backgroundColor = this.css[shade];
    element.style.color = this.ink[shade];
  }
}

/** @typedef {"looks" | "seen" | "surprise" | "change" | "difference"} RampName */

/** @param {Record<RampName, string[]>} anchors */
const makeRamps = ({ looks, seen, surprise, change, difference }) => ({
  looks: new Ramp(looks),
  seen: new Ramp(seen),
  surprise: new Ramp(surprise),
  change: new Ramp(change),
  difference: new Ramp(difference),
});

const ramps = { light: makeRamps(RAMPS.light), dark: makeRamps(RAMPS.dark) };

const isDark = () => document.body.classList.contains("dark");

/**
 * The ramps of the page's current theme, or of the given one.
 * @param {"light" | "dark"} [theme]
 */
export const palette = (theme = isDark() ? "dark" : "light") => ramps[theme];

/** Call back when the page turns light or dark. @param {() => void} callback */
export function onThemeChange(callback) {
  const observer = new MutationObserver(callback);
  observer.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  onEnd(() => observer.disconnect());
}
