// What programs can ask for: each with its text, its code in every language, and how its answer looks.

import { percent, signed } from "../lib/numbers.mjs";
import { curl, javascript, openai, openaiClient, addressOf } from "../calls/call.mjs";
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
export const NEEDED = { python: [".", " in Headscope’s folder"], openai: ["openai"] };

/**
 * @typedef {object} Section
 * @property {string} id
 * @property {string} name in the contents
 * @property {string} title
 * @property {string} about
 * @property {[name: string, meaning: string][]} options
 * @property {Partial<Record<Language, string>> | { only: string, needs?: Needed, code: string }} code
 *   `only`: in no other language
 * @property {{ path: string, sent: Sent, show?: (answer: any) => Node[], isShort?: boolean }} [run] what
 *   *Run* asks for, and how its answer looks if not as JSON
 */

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

/** @param {Shown} shown @returns {Section} */
function write({ model, written, options, withKey }) {
  const { max_tokens, ...sampling } = options;
  const body = given({ model, prompt: written.prompt, max_tokens, ...sampling });
  const call = argumentsOf([["", written.prompt], ["max_new_tokens", max_tokens], ...Object.entries(given(sampling))]);
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
    code: {
      curl: curl("v1/completions", { body, withKey }),
      python:
        model && withModel(model, `text = loaded.generate(${call}\n)`, 'print("".join(step.text for step in text))'),
      openai: clientCall("completions.create", body, "choices[0].text", withKey),
      javascript: javascript("v1/completions", { body, withKey }, ["choices", 0, "text"]),
    },
    run: {
      path: "v1/completions",
      sent: { body },
      show: (answer) => continued(written.text, answer.choices[0].text),
    },
  };
}

/** A conversation, if the model has a template for one. @param {Shown} shown @returns {Section[]} */
function converse({ model, messages, options, withKey }) {
  if (!messages) return [];
  const body = given({ model, messages, ...options });
  return [
    {
      id: "chat",
      name: "Answer",
      title: "Answer a message",
      about: "OpenAI’s chat completion. The prompt is made by the model’s own chat template.",
      options: [["messages", "the conversation so far"]],
      code: {
        curl: curl("v1/chat/completions", { body, withKey }),
        openai: clientCall("chat.completions.create", body, "choices[0].message.content", withKey),
        javascript: javascript("v1/chat/completions", { body, withKey }, ["choices", 0, "message", "content"]),
      },
      run: {
        path: "v1/chat/completions",
        sent: { body },
        show: (answer) => continued("", answer.choices[0].message.content),
      },
    },
  ];
}

/** The text in view as an argument. @param {Shown} shown */
function traced({ read, mask }) {
  const text = python(read.prompt ?? read.tokens);
  return mask ? `loaded.trace(${text}, head_mask=${python(mask)})` : `loaded.trace(${text})`;
}

/** @param {Shown} shown @returns {Section} */
function attention(shown) {
  const { model, read, mask, withKey } = shown;
  const [layer, head] = shown.head;
  const body = given({ model, ...read, layers: [layer], heads: [head], head_mask: mask });
  /** @type {Path} */
  const part = ["attention", 0, 0, -1];
  const code = [`trace = ${traced(shown)}`, `print(trace.attention[${layer}, ${head}, -1])  # from the last token`];
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
    code: {
      curl: curl("v1/attention", { body, withKey }),
      python: model && withModel(model, ...code),
      openai: openai("v1/attention", { body, withKey }, part),
      javascript: javascript("v1/attention", { body, withKey }, part),
    },
    run: {
      path: "v1/attention",
      sent: { body },
      show: ({ attention: found, tokens }) => {
        const row = /** @type {number[]} */ (found[0][0].at(-1));
        const largest = row.map((weight, at) => ({ name: plainly(tokens[at].text), value: weight }));
        const about = `From “${plainly(tokens.at(-1).text)}”, head ${head} of layer ${layer} looks most at:`;
        return bars(about, largest, (value) => percent(value, 1));
      },
    },
  };
}

/** The question of Ask in view, or the first of them. @param {Shown} shown @returns {Section} */
function question(shown) {
  const { model, read, mask, asked, withKey } = shown;
  const { route, body, query } = asked ?? {
    route: "attribution",
    body: given({ model, ...read, head_mask: mask }),
    query: undefined,
  };
  const sent = { body, query, withKey };
  const isAttribution = route === "attribution";
  return {
    id: "ask",
    name: asked ? "The question in view" : titleOfRoute(route),
    title: titleOfRoute(route),
    about: isAttribution
      ? "What each head, each MLP and the constant parts add to a word’s logit. Each question of Ask has such a route."
      : "The question that is open in Look. Each question of Ask is a route like this one.",
    options: isAttribution
      ? [
          ["position, token", "the last word and the likeliest by default"],
          ["against", "what it is compared with"],
          ["…/prompts", "the same for many texts"],
        ]
      : [],
    code: {
      curl: curl(`v1/lens/${route}`, sent),
      python: model && `${lensCall({ route, body, query })}print(answer)`,
      openai: openai(`v1/lens/${route}`, sent, isAttribution ? ["heads"] : []),
      javascript: javascript(`v1/lens/${route}`, sent, isAttribution ? ["heads"] : []),
    },
    run: {
      path: `v1/lens/${route}`,
      sent,
      show: isAttribution ? largestParts : undefined,
    },
  };
}

/** The heads that add most to a logit. @param {{ heads: number[][], token: { text: string } }} answer */
function largestParts({ heads, token }) {
  const parts = heads.flatMap((row, l) => row.map((value, h) => ({ name: `head ${l}·${h}`, value })));
  const about = `Of ${parts.length} heads, these add most to the logit of “${plainly(token.text)}”:`;
  return bars(about, parts, signed);
}

/** @param {Shown} shown @returns {Section} */
function activations(shown) {
  const { model, read, mask, withKey } = shown;
  const [layer] = shown.head;
  const body = given({ model, ...read, sites: ["attn.hook_z"], layers: [layer], head_mask: mask });
  const file = "activations.safetensors";
  const code = [
    `found = loaded.activations(${traced(shown)}, ["z"], layers=[${layer}])`,
    "print({name: tuple(values.shape) for name, values in found.items()})",
  ];
  return {
    id: "activations",
    name: "Activations",
    title: "Activations, by hook name",
    about: "The numbers inside, as a safetensors file whose names are those of TransformerLens’s hooks.",
    options: [
      ["sites", "hook_resid_post, attn.hook_z, …"],
      ["layers, positions", "all by default"],
    ],
    code: {
      curl: curl("v1/activations", { body, withKey, file }),
      python: model && withModel(model, ...code),
      javascript: javascript("v1/activations", { body, withKey, file }, []),
    },
    run: { path: "v1/activations", sent: { body, file }, show: files, isShort: true },
  };
}

/** @param {Shown} shown @returns {Section} */
function health({ withKey }) {
  return {
    id: "health",
    name: "Is it running?",
    title: "Is the server running?",
    about: "Answers 200 when models are served, and 503 while they load. /metrics has counters for Prometheus.",
    options: [],
    code: {
      curl: curl("health", {}),
      openai: `${openaiClient(withKey)}print([model.id for model in client.models.list()])`,
      javascript: javascript("health", {}, []),
    },
    run: { path: "health", sent: {}, isShort: true },
  };
}

/** @param {Shown} shown @returns {Section} */
function gradioClient({ model, read, written, withKey }) {
  const key = withKey ? ',\n    headers={"Authorization": "Bearer " + os.environ["HEADSCOPE_API_KEY"]}' : "";
  const server = JSON.stringify(addressOf("."));
  const text = python(
    written.prompt.length && typeof written.prompt === "string" ? written.prompt : (read.prompt ?? ""),
  );
  const named = `${text}, model=${python(model || null)}`;
  return {
    id: "gradio",
    name: "gradio_client",
    title: "With gradio_client",
    about:
      "Everything also has an endpoint of Gradio, such as /tokenize, /models, or /train, which trains a small GPT.",
    options: [],
    code: {
      only: "Python",
      needs: ["gradio_client"],
      code: `${withKey ? "import os\n\n" : ""}from gradio_client import Client

client = Client(${server}${key})
for text in client.submit(
    ${named}, max_new_tokens=50, temperature=0.8, seed=1, api_name="/generate"
):
    print(text, end="\\n---\\n")
print(client.predict(${named}, layer=0, head=0, api_name="/attention"))`,
    },
  };
}

/** @param {Shown} shown @returns {Section} */
function tools({ withKey }) {
  const server = {
    url: addressOf("gradio_api/mcp/"),
    ...(withKey ? { headers: { Authorization: "Bearer YOUR_KEY" } } : {}),
  };
  return {
    id: "mcp",
    name: "Tools (MCP)",
    title: "As tools of a language model",
    about: 'The same endpoints over MCP, if the server has the package mcp (pip install "mcp<2").',
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
  health(shown),
  gradioClient(shown),
  tools(shown),
  ...trained(shown),
];
