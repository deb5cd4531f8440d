// The fonts of texts on a canvas, as CSS writes them.

/** @param {number} size in CSS pixels */
export const monospace = (size, weight = 400) =>
  `${weight === 400 ? "" : `${weight} `}${size}px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace`;

/** @param {number} size in CSS pixels */
export const sansSerif = (size, weight = 400) => `${weight} ${size}px system-ui, -apple-system, Segoe UI, sans-serif`;
