"""Requests to every route, most of them almost valid, generated from a seed."""

import json
import random
from collections.abc import Iterator
from typing import Any

from ..runs import FIELDS

SURROGATE = "\ud800"
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 3.0, 0.5, 10**9, 10**30, -(10**30), float("nan"), float("inf"), -float("inf"), 1e308,
    "", "a", "ab\n", "é", SURROGATE, "a\x00b", chr(0x1D4B3) * 30, "x" * 3_000, "tiny", "nobody",
    "tiny@5", "../../etc/passwd", "NaN",
    [], {}, [[]], [[], []], [None], [[[]]], [0] * 300, [[0.5]] * 200, [[]] * 500, ["a"] * 40, {"a": {"b": []}},
    {"path": "http://127.0.0.1:9/x", "meta": {"_type": "gradio.FileData"}},
]  # fmt: skip
LONG = "9" * 20, "x" * 300
ODD_PATHS = ["0", "1", "-1", "nan", "%00", "%ff", "..", "a%2Fb", "3.5", "tiny", "[]", "%F0%9F", *LONG]
QUERIES = ["", "", "?model=nobody", "?x=%ff", "?start=-1", "?count=a"]
RAW = [
    b"", b"null", b"[]", b"3", b'"text"', b"{", b'{"a":', b"\xff\xfe", b"\xef\xbb\xbf{}", b"{}{}", b"[" * 5_000,
    b'{"a":' * 3_000, b"1" * 6_000, b'{"prompt": "\\ud800"}', b'{"model": "\\u0000"}', b"NaN", b'{"x": 1e999}',
    b"a=b&c=d", b"\x00" * 100, *('{"data": ["ab", "tiny"]}'.encode(coding) for coding in ("utf-16", "utf-32-le")),
]  # fmt: skip


def good_bodies(sha256: str) -> dict[str, Any]:
    """A valid body for every route that takes one; ``sha256`` is the hash of the model "tiny"."""
    text = {"sha256": sha256, "ids": [1, 2, 3, 4], "n_prompt": 2, "head_mask": None}
    sides = {"a": text | {"run": ""}, "b": text | {"run": ""}, "pieces": [[0, 4, 0, 4, True]], "first": 0}
    asked = {"model": "tiny", "prompt": "ab c", "head_mask": [[1.0] * 4] * 3}
    writing = {"model": "tiny", "max_tokens": 2, "temperature": 0.5, "n": 1, "stop": ["x"], "logprobs": None, "seed": 1}
    lens = {name: dict(asked) for name in ("knockout", "attribution", "logit-lens")}
    lens |= {
        "removal": asked | {"heads": [[0, 1], [2, 3]]},
        "head": asked | {"layer": 1, "head": 2},
        "ledger": asked | {"layer": 1, "head": 2, "query": 2, "key": 1},
        "patch": {"model": "tiny", "prompt": "ab c", "corrupted": "ab d", "answer": None, "wrong": None},
        "paths": asked | {"layer": 1, "head": 2},
        "difference": asked | {"other": "ab d"},
        "passages": {"model": "tiny", "text": "some text " * 5},
        "neuron": {"model": "tiny", "text": "some text " * 5, "layer": 1, "neuron": 2, "top": 3},
    }
    row = {"prompt": "ab c", "corrupted": "ab d", "answer": "a", "wrong": "b"}
    of_many = "knockout removal attribution logit-lens head patch paths difference text-roles".split()
    prompts: dict[str, dict[str, Any]] = {name: {"model": "tiny", "prompts": [row, "ab c"]} for name in of_many}
    prompts["removal"]["heads"] = [[0, 1], [2, 3]]
    for name in ("head", "paths"):
        prompts[name] |= {"layer": 1, "head": 2}
    for name in ("patch", "paths", "difference"):
        prompts[name]["prompts"] = [row]
    lens["circuit"] = {"model": "tiny", "prompts": [row]}
    lens["patch-paths"] = {"model": "tiny", **row, "receivers": [[1, 2], [2, 0]]}
    lesson = {"sentence": "Your journey", "x": [[0.1, 0.2, 0.3]] * 2}
    lessons: dict[str, dict[str, Any]] = {
        "tokens": lesson | {"training_text": "abc abd", "merges": 3},
        "self-attention": lesson | {"factor": 1.0},
        "trainable-weights": lesson | {"pair": [[0, 1], [1, 0]], "matrices": {"query": [[0.1, 0.2]] * 3}},
        "block": lesson | {"scale": 2.0},
        "times": {"n_head": 2, "n_tokens": 4},
        "cell": lesson | {"layer": 0, "head": 1, "query": 2, "key": 1},
        "number": lesson | {"layer": 0, "stage": "x", "index": 1},
    }
    calls = {
        "generate": ["ab", "tiny", 2, 1.0, None, 1.0, 0.0, 1],
        "attention": ["ab", "tiny", 0, 0],
        "tokenize": ["ab", "tiny"],
        "models": [],
        "knockout": ["ab", "tiny", "zero", False, None, None, None],
    }
    return {
        "/v1/completions": writing | {"prompt": "ab", "stream": False, "logit_bias": {"1": 2.0}},
        "/v1/chat/completions": writing | {"messages": [{"role": "user", "content": "ab"}]},
        "/v1/embeddings": {"model": "tiny", "input": ["ab", "cd"]},
        "/v1/attention": asked | {"layers": [0, 1], "heads": [0], "format": "json"},
        "/v1/tokenize": {"model": "tiny", "prompt": "ab"},
        "/v1/detokenize": {"model": "tiny", "tokens": [1, 2]},
        **{f"/v1/lens/{name}": body for name, body in lens.items()},
        "/v1/lens/text-roles": {"model": "tiny", "prompt": "ab c"},
        **{f"/v1/lens/{name}/prompts": body for name, body in prompts.items()},
        "/v1/activations": asked | {"sites": ["z", "resid_post"], "layers": [0], "positions": [1]},
        "/look/file": text,
        "/look/write": FIELDS | {"max_new_tokens": 2},
        "/look/read": text | {"model": "tiny"},
        "/look/snapshot": {"model": "tiny", "step": 5, "ids": [1, 2, 3], "n_prompt": 1},
        "/look/differences": sides,
        "/look/alignment": {side: text | {"run": "", "n_tokens": 4} for side in "ab"},
        "/look/scaled/{position}": text,
        "/look/again/rows": text,
        "/look/again/heads/{layer}/{head}": text,
        "/look/again/queries/{query}": text,
        "/look/again/logits/{position}": text,
        "/look/{run_id}/stop": {},
        **{f"/learn/{name}": body for name, body in lessons.items()},
        "/learn/{name}": lesson,
        "/learn/notebooks/{name}.ipynb": lesson,
        "/learn/bigram": {"sentence": "a", "training_text": "abc abd abe", "steps": 2, "seed": 1},
        "/train/text": {},
        "/train/written": {"size": "small", "model": "nobody"},
        "/train/stop": {},
        "/train/here": {},
        "/train/forget": {},
        "/train/lend": {},
        "/train/withdraw": {},
        "/train/borrow": {"loan": "x" * 32},
        "/gradio_api/queue/join": {"data": calls["tokenize"], "fn_index": 2, "session_hash": "session"},
        "/gradio_api/cancel": {"session_hash": "session", "fn_index": 3, "event_id": "x"},
        **{f"/gradio_api/call/{name}": {"data": data} for name, data in calls.items()},
        "/gradio_api/call/v2/tokenize": {"text": "ab", "model": "tiny"},
    }


class Generated:
    """Endless requests as ``(method, path, content)``, the same for the same seed."""

    def __init__(self, seed: int, sha256: str, gets: list[str]) -> None:
        self.random, self.bodies, self.gets = random.Random(seed), good_bodies(sha256), gets

    def __iter__(self) -> Iterator[tuple[str, str, bytes]]:
        choose = self.random.choice
        while True:
            if self.random.random() < 0.15:
                yield "GET", self.path(choose(self.gets)) + choose(QUERIES), b""
                continue
            template = choose(list(self.bodies))
            path = self.path(template)
            if template == "/train/text":
                path += "?size=" + choose(["small", "nobody", "%00"])
            content = choose(RAW) if self.random.random() < 0.1 else encode(self.changed(self.bodies[template]))
            yield "POST", path, content

    def path(self, template: str) -> str:
        """A path template with values for its parameters."""
        found = []
        for part in template.split("/"):
            if part.startswith("{"):
                part = self.random.choice(["0", "1", "2", *ODD_PATHS])
            found.append(part)
        return "/".join(found)

    def changed(self, body: Any) -> Any:
        """The body with up to three random changes."""
        body = json.loads(json.dumps(body))
        for _ in range(self.random.randint(0, 3)):
            body = self.change(body)
        return body

    def change(self, value: Any) -> Any:
        if isinstance(value, dict) and value and self.random.random() < 0.9:
            key = self.random.choice(list(value))
            kind = self.random.random()
            if kind < 0.1:
                return {name: each for name, each in value.items() if name != key}
            if kind < 0.15:
                return value | {"x" * self.random.randint(1, 9): self.random.choice(ODD)}
            return value | {key: self.change(value[key])}
        if isinstance(value, list) and value and self.random.random() < 0.5:
            at = self.random.randrange(len(value))
            return [*value[:at], self.change(value[at]), *value[at + 1 :]]
        return self.random.choice(ODD)


def encode(body: Any) -> bytes:
    return json.dumps(body).encode()
