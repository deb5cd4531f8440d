// The order of the heads by a metric.

/**
 * All cards as they are, with or without the means and rollouts. Or, where an order is chosen, the heads whose value is
 * in range, sorted by it.
 * @template {{ isHead: boolean, filtered: boolean, value: number }} Card
 * @param {Card[]} cards
 * @param {"" | "high" | "low"} order
 * @param {boolean} summaries
 */
export function sortCards(cards, order, summaries) {
  if (!order) return summaries ? cards : cards.filter((card) => card.isHead);
  const sign = order === "low" ? 1 : -1;
  return cards.filter((card) => card.isHead && !card.filtered).sort((a, b) => sign * (a.value - b.value));
}
