// The examples of Use: whatever a text or an address contains, no string of a program ends early.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openWindow } from "../widgets/small_dom.mjs";
import { shortTitle, titleOfRoute, TITLES } from "../../../web/js/calls/question_titles.mjs";

openWindow("");
Object.defineProperty(globalThis.document, "baseURI", { value: "http://h/it's/" });
const { curl, javascript, openai } = await import("../../../web/js/calls/call.mjs");
const { sectionsOf } = await import("../../../web/js/use/sections.mjs");
const { printed } = await import("../../../web/js/use/answers.mjs");
const { ShownAnswer } = await import("../../../web/js/look/state/shown_answer.mjs");
const { lookView } = await import("../../../web/js/look/look_view.mjs");

const SHOWN = {
  model: "tiny",
  written: { prompt: "so", text: "so" },
  options: { max_tokens: 5, temperature: 0, top_k: 3 },
  read: { prompt: 'it\'s "so"' },
  text: "",
  mask: null,
  head: /** @type {[number, number]} */ ([1, 2]),
  messages: null,
  asked: null,
  withKey: false,
  withTools: false,
  withTraining: false,
};
const named = (/** @type {object} */ changes) =>
  Object.fromEntries(
    /** @type {[string, any][]} */ (sectionsOf({ ...SHOWN, ...changes }).map((section) => [section.id, section.code])),
  );

test("quotation marks end no string of a shell", () => {
  const call = curl("v1/attention", { body: { prompt: "it's" } });
  assert.equal(call, `curl http://h/it%27s/v1/attention -d '{\n  "prompt": "it\\u0027s"\n}'`);
  assert.match(javascript("v1/x", { body: { prompt: '`"' } }, []), /prompt: "`\\""/);
  assert.match(openai("v1/x", { body: { masked: [true, null] } }, []), /"masked": \[True, None\]/);
});

test("a conversation is an example if the model has a template", () => {
  assert.ok(!("chat" in named({})));
  const messages = [{ role: "user", content: "Hi" }];
  assert.match(named({ messages }).chat.curl, /chat\/completions .*"messages": \[\{"role": "user"/s);
});

test("options that OpenAI’s client lacks are sent in its extra body", () => {
  assert.match(named({}).write.openai, /extra_body=\{"top_k": 3\}/);
});

test("the question in view is the one of the example", () => {
  const asked = { route: "roles", query: { model: "tiny" } };
  assert.equal(named({ asked }).ask.curl, "curl 'http://h/it%27s/v1/lens/roles?model=tiny'");
  assert.match(named({ asked }).ask.python, /httpx\.get\(\n {4}"http:\/\/h\/it%27s\/v1\/lens\/roles\?model=tiny"/);
  assert.match(named({ asked }).library.code, /answer = loaded\.roles\(\)/);
});

test("what is in view fills the calls of gradio_client, which say what they lack", () => {
  const { gradio } = named({});
  assert.match(gradio.code, /\n {4}max_new_tokens=5,\n {4}temperature=0,\n {4}top_k=3,\n {4}api_name="\/generate"/);
  assert.match(gradio.code, /layer=1,\n {4}head=2,\n {4}api_name="\/attention"/);
  const about = (/** @type {object} */ changes) =>
    sectionsOf({ ...SHOWN, ...changes }).find(({ id }) => id === "gradio")?.about ?? "";
  assert.doesNotMatch(about({}), /without/);
  assert.match(about({ mask: [[0, 1]] }), /do without the head_mask of what is in view\./);
  assert.match(about({ read: { tokens: [1] } }), /tokens may differ/);
});

test("an answer is shown as the code prints it", () => {
  const answer = '{"choices": [{"text": "so"}], "heads": [[1, 2]]}';
  const shown = (/** @type {any} */ part) => {
    const {
      how,
      shown: [code],
    } = printed(answer, part);
    return [how, code.textContent];
  };
  assert.deepEqual(shown(null), ["The code prints:", answer]);
  assert.deepEqual(shown(["choices", 0, "text"]), ["The code prints:", "so"]);
  assert.deepEqual(shown(["heads", -1]), ["The code prints, here as JSON:", "[1,2]"]);
});

test("the question that was answered last is remembered after its answer is closed", () => {
  const answer = new ShownAnswer();
  const [one, other] = ["circuit", "attribution"].map((route) => ({ asked: { route, body: {} }, answer: {} }));
  answer.show(/** @type {any} */ (one));
  answer.show(null);
  assert.equal(answer.lastAsked, one.asked);
  answer.onStage = /** @type {any} */ (other);
  answer.onStage = null;
  assert.equal(answer.lastAsked, other.asked);
});

test("heads that are off in what is shown are off in every example that reads a text", () => {
  const mask = [
    [1, 0],
    [1, 1],
  ];
  const store = { pointer: { run: "r", model: "tiny", head_mask: null }, tokens: [], selection: {}, answer: {} };
  const open = { ...store, open: [0, 0] };
  assert.deepEqual(lookView(open, undefined, { store: open, mask }).mask, mask);
  assert.equal(lookView(open, undefined, { store, mask }).mask, null); // two texts are compared
  const code = named({ mask, options: { max_tokens: 5, head_mask: mask } });
  for (const id of ["write", "attention", "ask", "activations"]) {
    for (const language of ["curl", "python", "javascript"]) {
      assert.match(code[id][language], /head_mask.*\[\[1, 0\], \[1, 1\]\]/s, `${id} in ${language}`);
    }
  }
});

test("a key is taken from the environment, a trained model’s token too", () => {
  const keyed = named({ withKey: true, withTraining: true });
  for (const id of ["write", "attention", "ask", "activations", "trained"]) {
    assert.match(keyed[id].curl ?? keyed[id].code, /\$HEADSCOPE_API_KEY/);
  }
  assert.ok(!("trained" in named({})));
});

test("a question has one title, and routes name the question that they answer", () => {
  const titles = Object.values(TITLES);
  assert.equal(new Set(titles.map(shortTitle)).size, titles.length);
  assert.equal(shortTitle("Where does this head fire?"), "Where does it fire?");
  assert.equal(titleOfRoute("paths"), TITLES.feeding);
  assert.equal(titleOfRoute("knockout/prompts"), TITLES.many);
});
