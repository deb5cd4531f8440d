// What each question of Ask is called, by its key: in lists, above its answer, and where its call is shown.

export const TITLES = {
  attribution: "Why this token?",
  "logit-lens": "What did each layer expect?",
  ledger: "Show me the arithmetic",
  roles: "What is this head for?",
  head: "Which tokens does this head use?",
  feeding: "Which heads feed this head?",
  passages: "Where does this head fire?",
  knockout: "Which heads does this text need?",
  desk: "What if heads are off?",
  patch: "What carries the answer?",
  many: "What holds over many prompts?",
  circuit: "Find the circuit",
};

/** A title next to what it is about. @param {string} title */
export const shortTitle = (title) => title.replace(/this (head|text)/, "it");

/** @type {Record<string, keyof typeof TITLES>} */
const OTHER_ROUTES = { composition: "feeding", paths: "feeding", "role-paths": "feeding", removal: "knockout" };

/** The title of the question that a route below `v1/lens/` answers. @param {string} route */
export function titleOfRoute(route) {
  const key = route.endsWith("/prompts") ? "many" : (OTHER_ROUTES[route] ?? route);
  return key in TITLES ? TITLES[/** @type {keyof typeof TITLES} */ (key)] : route;
}
