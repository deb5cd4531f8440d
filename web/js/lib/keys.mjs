// Keyboard moves that every grid of cells shares.

/** @type {Record<string, [down: number, right: number]>} */
export const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
