// A canvas context that writes SVG, so that the same code draws PNG and SVG, and SVG labels remain text.

import { svg } from "../../lib/dom.mjs";
import { context2d, offscreenContext, packedPixels } from "../../lib/drawing/canvas.mjs";

/** @type {Partial<Record<CanvasTextAlign, string>>} */
const ANCHORS = { left: "start", center: "middle", right: "end" };
export const MAX_CELLS = 60_000; // files with more cells contain bitmaps
const MIDDLE = 0.35; // of the font size: the distance from a line's middle to its baseline

/** A model may write characters that XML does not allow; they are replaced. @param {string} text */
const legible = (text) => text.toWellFormed().replace(ILLEGIBLE, "\u{fffd}");
const ILLEGIBLE = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

/** @param {number} packed as in `packedPixels`, opaque */
function cssColour(packed) {
  const [red, green, blue] = new Uint8Array(Uint32Array.of(packed).buffer);
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** The part of CanvasRenderingContext2D that our pictures use. */
export class SvgContext {
  /**
   * @param {number} width
   * @param {number} height
   * @param {boolean} [asBitmaps] whether images stay bitmaps because they have too many cells
   */
  constructor(width, height, asBitmaps = false) {
    this.asBitmaps = asBitmaps;
    this.globalAlpha = 1;
    this.root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    this.group = /** @type {SVGElement} */ (this.root);
    this.ruler = offscreenContext(1, 1);
    this.font = "12px sans-serif";
    /** @type {string | CanvasGradient | CanvasPattern} */
    this.strokeStyle = "#000000";
    /** @type {string | CanvasGradient | CanvasPattern} */
    this.fillStyle = "#000000";
    this.lineWidth = 1;
    /** @type {number[]} */
    this.dashes = [];
    this.path = ""; // of the line that is being drawn
    /** @type {CanvasTextAlign} */
    this.textAlign = "left";
    /** @type {CanvasTextBaseline} */
    this.textBaseline = "alphabetic";
    /** @type {SVGElement[]} */
    this.groups = [];
    this.cells = 0; // drawn so far
  }

  /** @param {string} text */
  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  /** @param {keyof SVGElementTagNameMap} tag @param {Record<string, any>} attributes @returns {SVGElement} */
  add(tag, attributes) {
    return this.group.appendChild(svg(tag, attributes));
  }

  save() {
    this.groups.push(this.group);
    this.group = this.add("g", {});
  }

  restore() {
    this.group = this.groups.pop() ?? this.root;
  }

  /** @param {string} transform */
  transform(transform) {
    const before = this.group.getAttribute("transform");
    this.group.setAttribute("transform", before ? `${before} ${transform}` : transform);
  }

  /** @param {number} x @param {number} y */
  translate(x, y) {
    this.transform(`translate(${x} ${y})`);
  }

  /** @param {number} radians */
  rotate(radians) {
    this.transform(`rotate(${(180 * radians) / Math.PI})`);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  fillRect(x, y, width, height) {
    this.add("rect", { x, y, width, height, fill: this.fillStyle });
  }

  beginPath() {
    this.path = "";
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path += `M${x} ${y}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path += `L${x} ${y}`;
  }

  /** @param {number[]} dashes */
  setLineDash(dashes) {
    this.dashes = dashes;
  }

  /** @param {...number} points */
  bezierCurveTo(...points) {
    this.path += `C${points.join(" ")}`;
  }

  stroke() {
    const { path: d, strokeStyle: stroke, lineWidth, globalAlpha: opacity } = this;
    const line = this.add("path", { d, fill: "none", stroke, "stroke-width": lineWidth, opacity });
    if (this.dashes.length) line.setAttribute("stroke-dasharray", this.dashes.join(" "));
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {number} [width] that it takes, whatever font the viewer has
   */
  fillText(text, x, y, width) {
    const [, weight, size, family] = /^(\d+ )?([\d.]+)px (.+)$/.exec(this.font) ?? [];
    const line = this.add("text", {
      x,
      y: this.textBaseline === "middle" ? y + MIDDLE * Number(size) : y,
      fill: this.fillStyle,
      "font-family": family,
      "font-size": size,
      "font-weight": (weight ?? "400").trim(),
      "text-anchor": ANCHORS[this.textAlign],
    });
    if (width) line.setAttribute("textLength", String(width));
    line.textContent = legible(text);
  }

  /**
   * Draw each pixel of the image as a rectangle, with one path per colour.
   * @param {OffscreenCanvas} image
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  drawImage(image, x, y, width, height) {
    if (this.asBitmaps) {
      this.drawBitmap(image, x, y, width, height);
      return;
    }
    if (this.cells > MAX_CELLS) return; // the caller draws it again as a bitmap
    const drawn = /** @type {OffscreenCanvasRenderingContext2D} */ (image.getContext("2d"));
    const pixels = packedPixels(drawn.getImageData(0, 0, image.width, image.height));
    /** @type {Map<number, string>} */
    const paths = new Map();
    pixels.forEach((colour, i) => {
      if (!(colour >>> 24)) return; // transparent
      this.cells++;
      const cell = `M${i % image.width} ${Math.floor(i / image.width)}h1v1h-1z`;
      paths.set(colour, (paths.get(colour) ?? "") + cell);
    });
    this.save();
    this.transform(`translate(${x} ${y}) scale(${width / image.width} ${height / image.height})`);
    this.group.setAttribute("shape-rendering", "crispEdges");
    if (this.globalAlpha < 1) this.group.setAttribute("opacity", String(this.globalAlpha));
    for (const [colour, d] of paths) this.add("path", { d, fill: cssColour(colour) });
    this.restore();
  }

  /**
   * @param {OffscreenCanvas} image
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  drawBitmap(image, x, y, width, height) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    context2d(canvas).drawImage(image, 0, 0);
    const href = canvas.toDataURL("image/png");
    const style = "image-rendering: pixelated";
    this.add("image", { x, y, width, height, href, preserveAspectRatio: "none", style, opacity: this.globalAlpha });
  }

  /** The content of the file, with a title for screen readers. @param {string} title */
  text(title) {
    const name = svg("title", {});
    name.textContent = legible(this.asBitmaps ? `${title} (a bitmap: too many cells for vectors)` : title);
    this.root.prepend(name);
    return new XMLSerializer().serializeToString(this.root);
  }
}
