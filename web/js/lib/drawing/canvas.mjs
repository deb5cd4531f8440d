// Canvas contexts, and the fonts of text drawn on them.

/**
 * A 2D context scaled so that one unit is one CSS pixel, sharp on any screen, and cleared.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sharpContext(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = context2d(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** @param {HTMLCanvasElement} canvas */
export const context2d = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/** A context off the page, for drawing or for measuring text. @param {number} width @param {number} height */
export function offscreenContext(width, height) {
  const canvas = new OffscreenCanvas(width, height);
  return /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/** A canvas that holds an image, to be drawn in another size. @param {ImageData} image */
export function canvasOf(image) {
  const context = offscreenContext(image.width, image.height);
  context.putImageData(image, 0, 0);
  return context.canvas;
}

/** The pixels of an image as packed colours. @param {ImageData} image */
export const packedPixels = (image) => new Uint32Array(image.data.buffer);

/** @param {number} size in CSS pixels */
export const monospace = (size, weight = 400) =>
  `${weight === 400 ? "" : `${weight} `}${size}px "IBM Plex Mono", monospace`;

/** @param {number} size in CSS pixels */
export const sansSerif = (size, weight = 400) => `${weight} ${size}px "IBM Plex Sans", sans-serif`;
