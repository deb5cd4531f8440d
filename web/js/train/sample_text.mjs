// A sample text: short stories assembled from parts, the same for everyone. Names recur within a story, so that heads
// have something to look back at.

import { uniform } from "../lib/random.mjs";

const STORIES = 640;

const PARTS = {
  animal: ["fox", "hare", "owl", "mouse", "bear", "otter", "crow", "goat"],
  name: ["Mina", "Tobin", "Ada", "Pell", "Juno", "Rufus", "Wren", "Oskar", "Lotte", "Bram"],
  kind: ["small", "curious", "sleepy", "brave", "hungry", "quiet", "clever"],
  place: ["by the old mill", "under a birch", "at the edge of the wood", "in a house of stones", "near the river"],
  thing: ["a silver key", "a red kite", "a letter", "a round pebble", "an empty jar", "a lantern", "a bell"],
  where: ["in the grass", "under the bridge", "behind the barn", "on the path", "in the snow"],
  feeling: ["glad", "puzzled", "proud", "worried", "surprised"],
  end: ["they shared bread and honey", "they walked home in the dark", "they told it to the whole valley"],
};

const SENTENCES = [
  "Once there was a {kind} {animal} whose name was {name}. {name} lived {place}.",
  "One morning {name} found {thing} {where}. “Whose is this?” said {name}.",
  "{other} the {animal2} came by and said, “{name}, that is mine.” {name} was {feeling}.",
  "“Then take it, {other},” said {name}. But {other} was {feeling2}, and did not take it.",
  "“Keep it, {name},” said {other}, “and come with me.” In the evening {end}.",
];

/** About 250,000 characters. */
export function sampleText() {
  const next = uniform(1);
  /** @param {keyof typeof PARTS} part @param {string} [not] */
  const pick = (part, not) => {
    const choices = PARTS[part].filter((choice) => choice !== not);
    return choices[Math.floor(next() * choices.length)];
  };
  const stories = Array.from({ length: STORIES }, () => {
    const name = pick("name");
    const animal = pick("animal");
    /** @type {Record<string, string>} */
    const words = { name, animal, other: pick("name", name), animal2: pick("animal", animal) };
    for (const part of /** @type {const} */ (["kind", "place", "thing", "where", "feeling", "end"])) {
      words[part] = pick(part);
    }
    words.feeling2 = pick("feeling", words.feeling);
    return SENTENCES.map((sentence) => sentence.replace(/\{(\w+)\}/g, (_, word) => words[word])).join(" ");
  });
  return `${stories.join("\n\n")}\n`;
}
