"""Clients of /v1: bodies that a schema might accept, clients that disconnect, and the form of every answer."""

import json
import socket
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import strategies as st

from helpers.server import Server

GOOD_BODY: dict[str, Any] = {"model": "tiny", "prompt": "ab", "max_tokens": 2}


def post_body(server: Server, body: Any, path: str = "completions") -> httpx.Response:
    """The answer to a raw or JSON body."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{server.url}/v1/{path}", content=content, timeout=60)


def error_of(answer: httpx.Response) -> dict[str, Any]:
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["message"]
    return dict(error)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
# Mostly values that the schema might accept, so that many requests reach the model.
PLAUSIBLE: dict[str, Any] = {
    "model": st.sampled_from(["tiny", "other", "broken", "nobody", None, ""]),
    "prompt": st.text("ab \n", max_size=70)
    | st.lists(st.integers(-1, 97), max_size=66)
    | st.lists(st.text("ab", max_size=3), max_size=4)
    | st.lists(st.lists(st.integers(0, 95), max_size=3), max_size=3)
    | st.text(max_size=5),
    "messages": st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
                "content": st.text("ab \n", max_size=10)
                | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text("ab")}), max_size=2)
                | ANYTHING,
            },
            optional={"name": st.text("ab", max_size=2), "refusal": st.none(), "tool_calls": st.just([])},
        ),
        max_size=3,
    ),
    "input": st.text("ab \n", max_size=70)
    | st.lists(st.integers(-1, 97), max_size=66)
    | st.lists(st.text("ab", max_size=3), max_size=4)
    | st.lists(st.lists(st.integers(0, 95), max_size=3), max_size=3),
    "encoding_format": st.sampled_from(["float", "base64", "hex", None]),
    "min_tokens": st.integers(-1, 8) | st.none(),
    "stop_token_ids": st.lists(st.integers(-1, 97) | st.floats(-1, 97), max_size=3) | st.none(),
    "service_tier": st.sampled_from(["auto", "default", "flex", None]),
    "store": st.booleans() | st.none(),
    "ignore_eos": st.booleans() | st.none(),
    "modalities": st.lists(st.sampled_from(["text", "audio"]), max_size=2),
    "return_token_strs": st.booleans() | st.none(),
    "add_special_tokens": st.booleans() | st.none(),
    "chat_template_kwargs": st.none() | st.just({}) | ANYTHING,
    "add_generation_prompt": st.booleans(),
    "max_completion_tokens": st.integers(-1, 8) | st.none(),
    "top_logprobs": st.integers(-1, 6) | st.none(),
    "tools": st.none() | st.just([]) | ANYTHING,
    "tool_choice": st.sampled_from(["none", "auto", "required", None]),
    "response_format": st.just({"type": "text"}) | st.just({"type": "json_object"}),
    "metadata": st.dictionaries(st.text("ab", max_size=2), st.text("ab", max_size=2), max_size=2),
    "tokens": st.lists(st.integers(-1, 97), max_size=66) | st.none(),
    "max_tokens": st.integers(-1, 8) | st.none(),
    "temperature": st.floats(0, 101) | st.none(),
    "top_p": st.floats(0, 1.1),
    "top_k": st.integers(-1, 100),
    "min_p": st.floats(0, 1.1),
    "n": st.integers(-1, 4) | st.floats(-1, 4) | st.none(),
    "stream": st.booleans(),
    "stream_options": st.fixed_dictionaries({"include_usage": st.booleans()}),
    "stop": st.text("ab", max_size=2) | st.lists(st.text("ab", max_size=2), max_size=4),
    "seed": st.integers(-(2**63), 2**63),
    "logprobs": st.integers(-1, 6),
    "echo": st.booleans(),
    "presence_penalty": st.floats(-2.1, 2.1),
    "frequency_penalty": st.floats(-2.1, 2.1),
    "repetition_penalty": st.floats(0, 101),
    "logit_bias": st.dictionaries(st.integers(-1, 97).map(str) | st.text(max_size=2), st.floats(-101, 101), max_size=3),
    "head_mask": st.lists(st.lists(st.floats(-101, 101), min_size=4, max_size=4), min_size=3, max_size=3) | ANYTHING,
    "context_shift": st.booleans(),
    "best_of": st.integers(0, 3) | st.none(),
    "suffix": st.none() | st.text(max_size=2),
    "layers": st.lists(st.integers(-1, 3), max_size=4),
    "heads": st.lists(st.integers(-1, 4), max_size=4),
    "format": st.sampled_from(["json", "safetensors", "xml", None]),
}


# Fields that two schemas define differently.
PLAUSIBLE_HERE = {("ChatRequest", "logprobs"): st.booleans() | st.none()}


def bodies(schema: Any) -> st.SearchStrategy[Any]:
    here = schema.__name__
    fields = {name: PLAUSIBLE_HERE.get((here, name), PLAUSIBLE.get(name, ANYTHING)) for name in schema.model_fields}
    needed = next(name for name in ("prompt", "messages", "input", "tokens") if name in fields)
    main = st.fixed_dictionaries({needed: fields.pop(needed)})
    # A few options: with many, one of them is nearly always wrong.
    options = st.lists(st.one_of([st.tuples(st.just(name), field) for name, field in fields.items()]), max_size=4)
    sensible = st.builds(lambda body, more: body | dict(more), main, options)
    change = st.tuples(st.sampled_from([*fields, needed, "x"]), ANYTHING)
    return sensible | st.builds(lambda body, pair: body | dict([pair]), sensible, change) | ANYTHING


def check_answer(answer: httpx.Response) -> None:
    """200 or a 4xx error object."""
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    if answer.status_code != 200:
        error_of(answer)
    elif answer.headers["content-type"].startswith("text/event-stream"):
        assert answer.text.endswith("data: [DONE]\n\n") and '"error"' not in answer.text
    elif answer.headers["content-type"].startswith("application/json"):
        assert answer.json()


class Document:
    """Compares the server's OpenAPI document with its answers."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def validator(self, schema: Any) -> jsonschema.Draft202012Validator:
        """A validator for a schema in the document, with its references resolved."""
        return jsonschema.Draft202012Validator({"components": self.content["components"], **schema})

    def body_of(self, path: str) -> jsonschema.Draft202012Validator:
        """A validator for the body of this route."""
        body = self.content["paths"][path]["post"]["requestBody"]
        return self.validator(body["content"]["application/json"]["schema"])

    def check_answer(self, path: str, method: str, answer: httpx.Response) -> None:
        documented = self.content["paths"][path][method]["responses"]
        assert str(answer.status_code) in documented, (answer.status_code, answer.text[:300])
        kind = answer.headers["content-type"].split(";")[0]
        assert kind in documented[str(answer.status_code)]["content"]
        schema = documented[str(answer.status_code)]["content"][kind].get("schema")
        if kind == "application/json" and schema:
            self.validator(schema).validate(answer.json())


def open_post(server: Server, path: str = "completions", whole: Any = None, **body: Any) -> socket.socket:
    """A connection on which a request was sent and the answer is not read; ``whole`` is its body, if it is not text."""
    content = json.dumps(whole or {"model": "tiny", "prompt": "ab"} | body).encode()
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    head = f"POST /v1/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def post(server: Server, **body: Any) -> httpx.Response:
    """The answer to a short completion request with the fields ``body``."""
    return httpx.post(f"{server.url}/v1/completions", json={"model": "tiny", "prompt": "ab"} | body, timeout=60)


def assert_same(found: Any, expected: Any, tolerance: float = 1e-6, name: str = "answer") -> None:
    """Whether an answer has the shape and the numbers of a route's, which may have more to say."""
    match found:
        case dict():
            assert isinstance(expected, dict), name
            for each, value in found.items():
                assert_same(value, expected[each], tolerance, f"{name}.{each}")
        case list():
            assert isinstance(expected, list) and len(found) == len(expected), name
            for i, (one, other) in enumerate(zip(found, expected, strict=True)):
                assert_same(one, other, tolerance, f"{name}[{i}]")
        case float():
            assert found == pytest.approx(expected, abs=tolerance), name
        case _:
            assert found == expected, name
