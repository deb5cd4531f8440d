// Where the parts of the diagram lead: to what shows them on the open rung, or to the rung that explains them.

import { Diagram, PARTS, scrollTo } from "./diagram.mjs";

/** @import { Part, Target } from "./diagram.mjs" */

/** @type {Record<Part, string>} */
export const TITLES = {
  embedding: "Embedding: a row of numbers for the token, and one for its position, added up",
  norm: "Layer norm: the copy that attention reads, brought to a standard size",
  attention: "Attention: each token takes something from those before it, head by head",
  add: "What attention found is added to the residual stream",
  norm_again: "Layer norm: the copy that the MLP reads, brought to a standard size",
  mlp: "MLP: each token on its own, through four times as many numbers and GELU",
  add_again: "What the MLP made is added to the residual stream",
  last_norm: "The last layer norm, after all layers",
  unembedding: "Unembedding: the dot product with a token's own vector is its logit",
  softmax: "Softmax: logits become the probabilities of the next token",
};

/** The rung that explains a part. @type {Record<Part, number>} */
export const RUNG_OF = {
  embedding: 2,
  norm: 9,
  attention: 8,
  add: 9,
  norm_again: 9,
  mlp: 9,
  add_again: 9,
  last_norm: 10,
  unembedding: 10,
  softmax: 5,
};
const AFTER_ALL = 10; // the rung on which the parts behind the layers are shown

/**
 * The diagram of a rung: its own parts are scrolled to, all others open the rung that shows them.
 * @param {{ rung: number, go: (rung: number) => void }} lesson
 * @param {[Part, Element][]} places what shows each part here, from top to bottom
 */
export function diagramOf(lesson, places) {
  const targets = PARTS.map((part) => {
    const place = places.find(([name]) => name === part)?.[1];
    if (place) {
      const go = () => scrollTo(place);
      return [part, { href: `#learn/${lesson.rung}`, title: TITLES[part], go }];
    }
    const rung = part === "softmax" ? AFTER_ALL : RUNG_OF[part];
    const go = () => lesson.go(rung);
    const title = `${TITLES[part]} (rung ${rung})`;
    return [part, { href: `#learn/${rung}`, title, go, isElsewhere: true }];
  });
  const diagram = new Diagram(/** @type {Record<Part, Target>} */ (Object.fromEntries(targets)));
  return { diagram, follow: () => diagram.follow(places) };
}
