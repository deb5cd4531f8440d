// What programs can ask for: each with its text, its code in every language, and how its answer looks.

import { percent, signed } from "../lib/numbers.mjs";
import { addressOf, curl, httpx, javascript, openai, openaiClient } from "../calls/call.mjs";
import { argumentsOf, lensCall, python, withModel } from "../calls/python.mjs";
import { titleOfRoute } from "../calls/question_titles.mjs";
import { plainly } from "../lib/words.mjs";
import { bars, continued, files } from "./answers.mjs";

/** @import { Fields, Path, Sent } from "../calls/call.mjs" */
/** @import { Shown } from "./view.mjs" */

/** By key, in the order of their tabs. */
export const LANGUAGES = { curl: "curl", python: "Python", openai: "openai", javascript: "JavaScript" };

/** @typedef {keyof typeof LANGUAGES} Language */

/** @typedef {[packages: string, where?: string]} Needed what is installed first */

/** @type {Partial<Record<Language, Needed>>} */
export const NEEDED = { python: ["httpx"], openai: ["openai"] };

/** @typedef {{ path: string, sent: Sent, part: Path }} Call `part` of its answer is what programs print */

/**
 * @typedef {object} Section
 * @property {string} id
 * @property {string} name in the contents
 * @property {string} title
 * @property {string} about
 * @property {[name: string, meaning: string][]} options
 * @property {Partial<Record<Language, string>> | { only: string, needs?: Needed, code: string }} code
 *   `only`: in no other language
 * @property {Partial<Record<Language, Needed>>} [needs] if more than usual
 * @property {Call} [call] what the code asks this server for; without one it asks for nothing, or for several things
 * @property {(answer: any) => Node[]} [draw] a picture of the answer
 * @property {number} [characters] about how long an answer that is a text can be
 */

/**
 * A request, and the code for it in every language.
 * @param {string} path
 * @param {Sent} sent
 * @param {Path} [part] of the answer that programs print
 * @returns {{ code: Record<Language, string>, call: Call }}
 */
const asked = (path, sent, part = []) => ({
  code: {
    curl: curl(path, sent),
    python: httpx(path, sent, part),
    openai: openai(path, sent, part),
    javascript: javascript(path, sent, part),
  },
  call: { path, sent, part },
});

/** The fields that have a value. @param {Fields} fields @returns {Fields} */
const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));

/** Those that OpenAI’s client has no argument for. */
const BEYOND = ["top_k", "min_p", "repetition_penalty", "head_mask"];

/** @param {string} method @param {Fields} fields @param {string} printed */
function clientCall(method, fields, printed, /** @type {boolean} */ withKey) {
  const beyond = Object.entries(fields).filter(([name]) => BEYOND.includes(name));
  const own = Object.entries(fields).filter(([name]) => !BEYOND.includes(name));
  if (beyond.length) own.push(["extra_body", Object.fromEntries(beyond)]);
  return `${openaiClient(withKey)}answer = client.${method}(${argumentsOf(own)}\n)\nprint(answer.${printed})`;
}

const OPENING = 60; // characters of what comes before a text that are repeated with it
const PER_TOKEN = 5; // characters, about

/** @param {Shown} shown @returns {Section} */
function write({ model, written, options, withKey }) {
  const body = given({ model, prompt: written.prompt, ...options });
  const { code, call } = asked("v1/completions", { body, withKey }, ["choices", 0, "text"]);
  return {
    id: "write",
    name: "Write",
    title: "Write the next words",
    about: "OpenAI’s text completion, whole or streamed. Any client of that interface works unchanged.",
    options: [
      ["stream", "true sends each word as it is written"],
      ["temperature", "0 takes the likeliest word"],
      ["head_mask", "[layer][head], 0 switches a head off"],
    ],
    code: { ...code, openai: clientCall("completions.create", body, "choices[0].text", withKey) },
    call,
    draw: (answer) => continued(written.text, answer.choices[0].text),
    characters: OPENING + PER_TOKEN * options.max_tokens,
  };
}

/** A conversation, if the model has a template for one. @param {Shown} shown @returns {Section[]} */
function converse({ model, messages, options, withKey }) {
  if (!messages) return [];
  const body = given({ model, messages, ...options });
  const { code, call } = asked("v1/chat/completions", { body, withKey }, ["choices", 0, "message", "content"]);
  return [
    {
      id: "chat",
      name: "Answer",
      title: "Answer a message",
      about: "OpenAI’s chat completion. The prompt is made by the model’s own chat template.",
      options: [["messages", "the conversation so far"]],
      code: { ...code, openai: clientCall("chat.completions.create", body, "choices[0].message.content", withKey) },
      call,
      draw: (answer) => continued("", answer.choices[0].message.content),
      characters: PER_TOKEN * options.max_tokens,
    },
  ];
}

/** A token and its place in the text. @param {{ text: string }[]} tokens @param {number} at */
const placed = (tokens, at) => `${plainly(tokens[at].text)} (token ${at})`;

/** @param {Shown} shown @returns {Section} */
function attention({ model, read, mask, withKey, head: [layer, head] }) {
  const body = given({ model, ...read, layers: [layer], heads: [head], head_mask: mask });
  return {
    id: "attention",
    name: "Attention",
    title: "Where a head looks",
    about:
      "attention[layer][head][query][key]: how much each token, the query, looks at each token before it, the key.",
    options: [
      ["layers, heads", "here the head in view; all by default"],
      ["format", "json, or safetensors for a file"],
    ],
    ...asked("v1/attention", { body, withKey }, ["attention", 0, 0, -1]),
    draw: ({ attention: found, tokens }) => {
      const row = /** @type {number[]} */ (found[0][0].at(-1));
      const weights = row.map((value, at) => ({ name: placed(tokens, at), value }));
      const about = `From ${placed(tokens, tokens.length - 1)}, head ${head} of layer ${layer} looks most at:`;
      return bars(about, weights, (value) => percent(value, 1));
    },
  };
}

/** The question that was answered last, else the first of them. @param {Shown} shown */
const questionOf = ({ model, read, mask, asked: last }) =>
  last ?? { route: "attribution", body: given({ model, ...read, head_mask: mask }) };

/** @param {Shown} shown @returns {Section} */
function question(shown) {
  const { route, body, query } = questionOf(shown);
  const isAttribution = route === "attribution";
  const what = isAttribution ? "What each head, each MLP and the constant parts add to a word’s logit. " : "";
  const whose = shown.asked ? "The question that you asked last in Look" : "One question of Look";
  return {
    id: "ask",
    name: titleOfRoute(route),
    title: titleOfRoute(route),
    about: `${what}${whose}; each has such a route.`,
    options: isAttribution
      ? [
          ["position, token", "the last word and the likeliest by default"],
          ["against", "what it is compared with"],
          ["…/prompts", "the same for many texts"],
        ]
      : [],
    ...asked(`v1/lens/${route}`, { body, query, withKey: shown.withKey }, isAttribution ? ["heads"] : []),
    draw: isAttribution ? largestParts : undefined,
  };
}

/** The heads that add most to a logit. @param {{ heads: number[][], token: { text: string } }} answer */
function largestParts({ heads, token }) {
  const parts = heads.flatMap((row, l) => row.map((value, h) => ({ name: `head ${l}·${h}`, value })));
  const about = `Of ${parts.length} heads, these add most to the logit of “${plainly(token.text)}”:`;
  return bars(about, parts, signed);
}

/** @param {Shown} shown @returns {Section} */
function activations({ model, read, mask, withKey, head: [layer] }) {
  const body = given({ model, ...read, sites: ["attn.hook_z"], layers: [layer], head_mask: mask });
  const { code, call } = asked("v1/activations", { body, withKey, file: "activations.safetensors" });
  return {
    id: "activations",
    name: "Activations",
    title: "Activations, by hook name",
    about: "The numbers inside, as a safetensors file whose names are those of TransformerLens’s hooks.",
    options: [
      ["sites", "hook_resid_post, attn.hook_z, …"],
      ["layers, positions", "all by default"],
    ],
    code: { ...code, openai: undefined },
    needs: { python: ["httpx numpy safetensors"] },
    call,
    draw: files,
  };
}

/** @returns {Section} */
function health() {
  const { code, call } = asked("health", {});
  return {
    id: "health",
    name: "Is it running?",
    title: "Is the server running?",
    about: "Answers 200 when models are served, and 503 while they load. /metrics has counters for Prometheus.",
    options: [],
    code: { ...code, openai: undefined },
    call,
  };
}

/** The same from the library, if the model is known. @param {Shown} shown @returns {Section[]} */
function library(shown) {
  const { model, written, options, read, mask } = shown;
  if (!model) return [];
  const [layer, head] = shown.head;
  const { max_tokens, ...sampling } = options;
  const call = argumentsOf([["", written.prompt], ["max_new_tokens", max_tokens], ...Object.entries(given(sampling))]);
  const masked = mask ? `, head_mask=${python(mask)}` : "";
  const [, , load] = withModel(model).split("\n");
  const asks = lensCall(questionOf(shown))
    .replace(/^import headscope\n\n?/, "")
    .replace(`${load}\n`, "");
  const code = withModel(
    model,
    `text = loaded.generate(${call}\n)`,
    'print("".join(step.text for step in text))',
    "",
    `trace = loaded.trace(${python(read.prompt ?? read.tokens)}${masked})`,
    `print(trace.attention[${layer}, ${head}, -1])  # from the last token`,
    `found = loaded.activations(trace, ["z"], layers=[${layer}])`,
    "print({name: tuple(values.shape) for name, values in found.items()})",
    "",
    `${asks}print(answer)`,
  );
  return [
    {
      id: "library",
      name: "Without a server",
      title: "In Python, without a server",
      about:
        "Headscope’s library loads the same checkpoint into your own program, which asks this server for nothing. " +
        "These are the examples above.",
      options: [],
      code: { only: "Python", needs: [".", " in Headscope’s folder"], code },
    },
  ];
}

/** The options of Gradio’s endpoint, by those of a completion. @type {Record<string, string>} */
const OF_GRADIO = { max_tokens: "max_new_tokens", temperature: "", top_k: "", top_p: "", min_p: "", seed: "" };

/** @param {Shown} shown @returns {Section} */
function gradioClient(shown) {
  const { model, read, text, written, options, mask, withKey, withTraining } = shown;
  const [layer, head] = shown.head;
  const key = withKey ? ',\n    headers={"Authorization": "Bearer " + os.environ["HEADSCOPE_API_KEY"]}' : "";
  const server = JSON.stringify(addressOf("."));
  /** @type {[string, any][]} */
  const own = Object.entries(given(options)).filter(([name]) => name in OF_GRADIO);
  const sampling = own.map(([name, value]) => /** @type {[string, any]} */ ([OF_GRADIO[name] || name, value]));
  const writes = argumentsOf([["", written.text], ["model", model || null], ...sampling, ["api_name", "/generate"]]);
  const looked = { layer, head, api_name: "/attention" };
  const looks = argumentsOf([["", read.prompt ?? text], ["model", model || null], ...Object.entries(looked)]);
  const missing = new Set(Object.keys(given({ ...options, head_mask: mask })).filter((name) => !(name in OF_GRADIO)));
  const without = missing.size ? ` Those below do without the ${[...missing].join(", ")} of what is in view.` : "";
  const train = withTraining ? ", or /train, which trains a small GPT" : " and /attention";
  const isText = typeof written.prompt === "string" && read.prompt !== undefined;
  return {
    id: "gradio",
    name: "gradio_client",
    title: "With gradio_client",
    about:
      `Everything also has an endpoint of Gradio, such as /tokenize, /models${train}.` +
      `${without}${isText ? "" : " They take text, whose tokens may differ from those in view."}`,
    options: [],
    code: {
      only: "Python",
      needs: ["gradio_client"],
      code: `${withKey ? "import os\n\n" : ""}from gradio_client import Client

client = Client(${server}${key})
for text in client.submit(${writes}
):
    print(text, end="\\n---\\n")
print(client.predict(${looks}
))`,
    },
  };
}

/** If the server has them. @param {Shown} shown @returns {Section} */
function tools({ withKey, withTools }) {
  const server = {
    url: addressOf("gradio_api/mcp/"),
    ...(withKey ? { headers: { Authorization: "Bearer YOUR_KEY" } } : {}),
  };
  return {
    id: "mcp",
    name: "Tools (MCP)",
    title: "As tools of a language model",
    about: withTools
      ? "This server offers the same endpoints over MCP."
      : 'This server does not answer MCP clients: it lacks the package mcp (pip install "mcp<2").',
    options: [],
    code: {
      only: "JSON, the settings of an MCP client",
      code: JSON.stringify({ mcpServers: { headscope: server } }, null, 2),
    },
  };
}

/** @param {Shown} shown @returns {Section[]} */
function trained({ withTraining, withKey }) {
  if (!withTraining) return [];
  const key = withKey ? '-H "Authorization: Bearer $HEADSCOPE_API_KEY" ' : "";
  return [
    {
      id: "trained",
      name: "A model you trained",
      title: "A model that you trained here",
      about:
        "Train shows your model’s token. With it in a header, the model answers under /v1 until it is deleted; " +
        "a copy of this server on another machine does not have it.",
      options: [],
      code: {
        only: "curl",
        code: `curl ${key}-H "Headscope-Model-Token: $HEADSCOPE_MODEL_TOKEN" ${addressOf("v1/models")}`,
      },
    },
  ];
}

/** Everything that programs can ask for. @param {Shown} shown @returns {Section[]} */
export const sectionsOf = (shown) => [
  write(shown),
  ...converse(shown),
  attention(shown),
  question(shown),
  activations(shown),
  health(),
  ...library(shown),
  gradioClient(shown),
  tools(shown),
  ...trained(shown),
];
