// Which rows of the lines are in view, and where to scroll so that a query is seen with the key that it looks at most.

export const ROW = 17; // CSS pixels of a token

/**
 * Where to scroll to. The query stays in view whatever the key; what it looks at is above it, so a query that has to be
 * brought into view becomes the last row, and the view goes back to the key as far as that leaves the query in it.
 * @param {number} top where it is scrolled to, in CSS pixels
 * @param {number} height of the view, in CSS pixels
 * @param {number} query
 * @param {number | null} key that is to be in view too, if there is room
 */
export function scrollFor(top, height, query, key) {
  const lowest = ROW * Math.max(0, query + 1 - Math.floor(height / ROW)); // where the query is the last whole row
  const isInView = query * ROW >= top && (query + 1) * ROW <= top + height;
  const from = isInView ? top : lowest;
  return key !== null && key * ROW < from ? Math.max(key * ROW, lowest) : from;
}

/**
 * On which side of the view a token is; "" where it is in view.
 * @param {number} top
 * @param {number} height
 * @param {number} token
 * @returns {"above" | "below" | ""}
 */
export function sideOf(top, height, token) {
  const middle = (token + 0.5) * ROW - top;
  return middle < 0 ? "above" : middle > height ? "below" : "";
}
