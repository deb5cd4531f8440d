// Keyboard moves that every grid of cells shares.

/** @type {Record<string, [down: number, right: number]>} */
export const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** Whether others make a key the browser's, as Alt does an arrow. @param {KeyboardEvent} event */
export const hasModifier = ({ altKey, ctrlKey, metaKey }) => altKey || ctrlKey || metaKey;
