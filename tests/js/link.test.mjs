import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeIds, linkedChat, makeLink, readLink } from "../../web/js/lib/link.mjs";
import { DEFAULTS } from "../../web/js/lib/options.mjs";

const CONTROLS = [
  { name: "max_new_tokens", word: "length" },
  { name: "temperature", word: "temperature" },
  { name: "seed", word: "seed" },
];
const PAGE = "https://example.org/space/?__theme=dark#learn/3";
const SHAPE = { n_layer: 2, n_head: 4, n_prompt: 3, tokens: 10 };
const STATE = {
  model: "tiny & small",
  sha256: "0123456789abcdef0123456789abcdef",
  ids: [1, 127, 128, 50256],
  n_prompt: 3,
  settings: { max_new_tokens: 20, temperature: 0.8, seed: null, prompt: "not in a link" },
  open: [1, 3],
  head_mask: null,
  locked: [],
  step: null,
  options: DEFAULTS,
};

const words = (state) => Object.fromEntries(new URL(makeLink(state, CONTROLS, PAGE)).searchParams);

/** Token ids as the server reads them (web/page/link.py). */
function decodeIds(text) {
  const ids = [];
  let [value, shift] = [0, 1];
  for (const byte of Buffer.from(text, "base64url")) {
    value += (byte % 128) * shift;
    shift *= 128;
    if (byte < 128) {
      ids.push(value);
      [value, shift] = [0, 1];
    }
  }
  return ids;
}

test("token ids of every size come back", () => {
  for (const ids of [[0], [127, 128, 129], [16383, 16384, 50256, 2 ** 31], Array.from({ length: 300 }, (_, i) => i)]) {
    const text = encodeIds(ids);
    assert.match(text, /^[\w-]+$/);
    assert.deepEqual(decodeIds(text), ids);
  }
});

test("token ids are encoded as in tests/unit/web/test_link.py", () => {
  assert.equal(encodeIds([0]), "AA");
  assert.equal(encodeIds([127, 128, 50256]), "f4AB0IgD");
  assert.equal(encodeIds([2 ** 35 - 1, 0, 16383, 16384]), "_____38A_3-AgAE");
  // A full context of GPT-2's longest ids; servers and browsers accept at least 8,000 characters.
  assert.equal(encodeIds(Array(1024).fill(50256)).length, 4096);
});

test("a link has the text, the settings by name, and no defaults", () => {
  assert.deepEqual(words(STATE), {
    model: "tiny & small",
    sha256: "0123456789abcdef",
    ids: encodeIds(STATE.ids),
    prompt: "3",
    length: "20",
    temperature: "0.8",
    open: "1.3",
  });
});

test("a link has the messages of a conversation, without the contents that its tokens hold", () => {
  const tokens = ["<s>", "Hi", " 🙂", "<0xF0>", "!"].map((text, id) => ({ id, text, logprob: null }));
  const said = (role, content, start, end) => ({ role, content, start, end });
  const chat = [said("user", "Hi 🙂", 1, 3), said("assistant", "ð!", 3, 5), said("user", "", null, null)];
  const linked = linkedChat(chat, tokens);
  assert.deepEqual(linked, [
    ["user", 1, 3],
    ["assistant", 3, 5, "ð!"],
    ["user", null, null],
  ]);
  assert.deepEqual(JSON.parse(words({ ...STATE, chat: linked }).chat), linked);
  assert.deepEqual(linkedChat([said("user", "Hi", null, null)], []), [["user", null, null, "Hi"]]);
});

test("a link drops the parameters that the page's address had", () => {
  const address = new URL(makeLink(STATE, CONTROLS, PAGE));
  assert.equal(address.origin + address.pathname, "https://example.org/space/");
  assert.equal(address.hash, "");
});

test("the view in a link is read back", () => {
  const options = {
    mode: "lines",
    heads: "step",
    scale: "log",
    hideFirst: true,
    threshold: 1.5e-7,
    metric: "previous",
    sorted: "low",
    least: 0.25,
    most: 0.75,
    ask: "knockout",
    askWith: "method.mean~about.token",
    summaries: true,
    surprise: true,
    off: "1.3_0.2",
    details: true,
  };
  const locked = [{ query: 9 }, { query: 5, key: 2 }];
  const { search } = new URL(makeLink({ ...STATE, options, locked, step: 4 }, CONTROLS, PAGE));
  assert.deepEqual(readLink(search, SHAPE), {
    options,
    open: [1, 3],
    openSecond: null,
    locked,
    step: 4,
    unreadable: [],
  });
});

test("a link without a view leaves everything as it is", () => {
  assert.deepEqual(readLink("", SHAPE), {
    options: {},
    open: null,
    openSecond: null,
    locked: [],
    step: null,
    unreadable: [],
  });
});

test("parameters in shared links keep their names", () => {
  const search = "?open=2.4&locked=4.0_7&step=5&hide_first=1&scale=row&sorted=high&metric=first&heads=step&mode=text";
  assert.deepEqual(readLink(search, SHAPE), {
    options: { heads: "step", mode: "text", scale: "row", hideFirst: true, metric: "first", sorted: "high" },
    open: [2, 4],
    openSecond: null,
    locked: [{ query: 4, key: 0 }, { query: 7 }],
    step: 5,
    unreadable: [],
  });
});

test("unreadable parameters are named and left out", () => {
  const bad = {
    open: ["", "0", "0.6", "2.0", "2.3", "x", "-1.0", "0.0.0"],
    locked: ["", "10", "3.4", "1_", "a", "0".repeat(9), Array(33).fill("1").join("_")],
    step: ["", "0", "10", "1.5", "1e1"],
    scale: ["", "toString", "SQRT"],
    hide_first: ["0", "true", ""],
    ask: ["", "a b", "<b>", "é"],
    threshold: ["2", "-0.1", "1e9", "0x1", "", " "],
  };
  for (const [word, values] of Object.entries(bad)) {
    for (const value of values) {
      const view = readLink(`?${new URLSearchParams({ [word]: value })}`, SHAPE);
      assert.deepEqual(
        view,
        { options: {}, open: null, openSecond: null, locked: [], step: null, unreadable: [word] },
        `${word}=${value}`,
      );
    }
  }
});

test("a link keeps the newest of many locked cells", () => {
  const locked = Array.from({ length: 40 }, (_, query) => ({ query }));
  assert.equal(
    words({ ...STATE, locked }).locked,
    locked
      .slice(-32)
      .map(({ query }) => query)
      .join("_"),
  );
});

test("a second text is described by its differences from the first", () => {
  const second = { ...STATE, settings: {} };
  const first = words(STATE);
  const own = { ...STATE.settings, temperature: 0.3, seed: 4 };
  const written = words({ ...STATE, second: { ...second, settings: own } });
  assert.deepEqual([written.b_temperature, written.b_seed, written.b_length], ["0.3", "4", undefined]);
  const added = (changes) => {
    const all = words({ ...STATE, second: { ...second, ...changes } });
    return Object.fromEntries(Object.entries(all).filter(([word]) => !Object.hasOwn(first, word)));
  };
  assert.deepEqual(added({}), { b_sha256: "0123456789abcdef" });
  assert.deepEqual(added({ ids: [1, 2], settings: { seed: 4 }, open: [0, 1] }), {
    b_sha256: "0123456789abcdef",
    b_ids: encodeIds([1, 2]),
    b_open: "0.1",
    b_seed: "4",
  });
  const masked = {
    head_mask: [
      [1, 0, 1, 1],
      [1, 1, 0.5, 1],
    ],
  };
  assert.equal(added(masked).b_mask, "0-1_1-2x50");
  assert.equal(words({ ...STATE, ...masked }).mask, "0-1_1-2x50");
  assert.equal(words({ ...STATE, head_mask: [[1, Math.fround(0.35)]] }).mask, "0-1x35"); // the server sends float32
  const shape = { n_layer: 1, n_head: 2 };
  assert.deepEqual(readLink("?b_open=0.3", SHAPE, shape).openSecond, [0, 3]);
  assert.deepEqual(readLink("?b_open=1.3", SHAPE, shape).unreadable, ["b_open"]);
  assert.deepEqual(readLink("?b_open=1.3", SHAPE).unreadable, []); // there is no second text
});

test("links that name a question of Ask as it was called before open it", () => {
  for (const [former, key] of [
    ["why", "attribution"],
    ["arithmetic", "ledger"],
    ["layers", "logit-lens"],
    ["patching", "patch"],
    ["knockout", "knockout"],
  ]) {
    assert.equal(readLink(`?ask=${former}`, SHAPE).options.ask, key);
  }
});
