// A canvas context that writes SVG: what draws a picture draws it as PNG or as SVG, and labels stay real text.

const SPACE = "http://www.w3.org/2000/svg";
const ANCHORS = { left: "start", center: "middle", right: "end" };
const MIDDLE = 0.35; // of the size: from a line's middle to where its letters stand

/** What XML cannot hold, which a model may write all the same. */
const legible = (text) => text.toWellFormed().replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\u{fffd}");

/** Only what our pictures use of CanvasRenderingContext2D. */
export class SvgContext {
  constructor(width, height) {
    this.root = this.place = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    this.ruler = new OffscreenCanvas(1, 1).getContext("2d");
    this.font = "12px sans-serif";
    this.fillStyle = "#000000";
    this.textAlign = "left";
    this.textBaseline = "alphabetic";
    this.places = [];
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  add(tag, attributes) {
    return this.place.appendChild(element(tag, attributes));
  }

  save() {
    this.places.push(this.place);
    this.place = this.add("g", {});
  }

  restore() {
    this.place = this.places.pop();
  }

  turn(transform) {
    const before = this.place.getAttribute("transform");
    this.place.setAttribute("transform", before ? `${before} ${transform}` : transform);
  }

  translate(x, y) {
    this.turn(`translate(${x} ${y})`);
  }

  rotate(radians) {
    this.turn(`rotate(${(180 * radians) / Math.PI})`);
  }

  fillRect(x, y, width, height) {
    this.add("rect", { x, y, width, height, fill: this.fillStyle });
  }

  fillText(text, x, y) {
    const [, weight, size, family] = /^(\d+ )?([\d.]+)px (.+)$/.exec(this.font);
    const line = this.add("text", {
      x,
      y: this.textBaseline === "middle" ? y + MIDDLE * Number(size) : y,
      fill: this.fillStyle,
      "font-family": family,
      "font-size": size,
      "font-weight": (weight ?? "400").trim(),
      "text-anchor": ANCHORS[this.textAlign],
    });
    line.textContent = legible(text);
  }

  /** The whole image is one element, however many cells it has. */
  drawImage(image, x, y, width, height) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    const href = canvas.toDataURL("image/png");
    this.add("image", { x, y, width, height, href, preserveAspectRatio: "none", style: "image-rendering: pixelated" });
  }

  /** The file's text, named for those who cannot see it. */
  text(title) {
    const name = element("title", {});
    name.textContent = legible(title);
    this.root.prepend(name);
    return new XMLSerializer().serializeToString(this.root);
  }
}

function element(tag, attributes) {
  const made = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
