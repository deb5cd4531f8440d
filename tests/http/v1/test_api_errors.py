"""Requests that /v1 refuses, and the errors it answers with."""

import json
import re
from typing import Any

import httpx
import openai
import pytest
from pydantic import ValidationError

from helpers.api import GOOD_BODY, error_of, post_body
from helpers.server import CONTEXT, Server
from helpers.siege.fuzz import few, still_serves, whatever_comes_in_is_answered
from web.api.schema import AttentionRequest, CompletionRequest
from web.settings import Limits


@pytest.mark.parametrize(
    ("changes", "param", "code", "said"),
    [
        ({"foo": 1}, "foo", "unsupported_option", "'foo' is not supported"),
        ({"best_of": 2}, "best_of", "invalid_value", "best_of must equal n, which is 1, found 2"),
        ({"n": 2, "best_of": 3}, "best_of", "invalid_value", "best_of must equal n, which is 2, found 3"),
        ({"tools": [{}]}, "tools", "unsupported_option", "Tools are not supported"),
        ({"metadata": {"a": 1}}, "metadata", "invalid_value", "string"),
        ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_option", "JSON schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
            "response_format",
            "unsupported_option",
            "JSON schema",
        ),
        ({"min_tokens": -1}, "min_tokens", "invalid_value", "0"),
        ({"stop_token_ids": [96]}, "stop_token_ids", "invalid_value", "0 to 95"),
        ({"stop_token_ids": ["a"]}, "stop_token_ids", "invalid_value", "integer"),
        ({"stop_token_ids": [1] * (Limits.max_stop + 1)}, "stop_token_ids", "invalid_value", "17 ids"),
        ({"max_completion_tokens": 0}, "max_completion_tokens", "invalid_value", "1"),
        ({"max_completion_tokens": Limits.max_new_tokens + 1}, "max_completion_tokens", "invalid_value", "4097"),
        ({"suffix": "x"}, "suffix", "unsupported_option", "not supported"),
        ({"stream_options": {"foo": 1}, "stream": True}, "foo", "unsupported_option", "not supported"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value", "stream: true"),
        ({"prompt": ...}, "prompt", "missing_field", "missing"),
        ({"prompt": None}, "prompt", "invalid_value", "list of token ids"),
        ({"prompt": ""}, "prompt", "empty_prompt", "empty"),
        ({"prompt": []}, "prompt", "empty_prompt", "empty"),
        ({"prompt": [[]]}, "prompt", "empty_prompt", "empty"),
        ({"prompt": 7}, "prompt", "invalid_value", "list of token ids"),
        ({"prompt": ["a", 1]}, "prompt", "invalid_value", "list of token ids"),
        ({"prompt": [1, 96]}, "prompt", "unknown_token", "0 to 95"),
        ({"prompt": [-1]}, "prompt", "invalid_value", "token ids"),
        ({"prompt": [True]}, "prompt", "invalid_value", "token ids"),
        ({"prompt": "caf\u00e9"}, "prompt", "unknown_characters", "'\u00e9'"),
        ({"prompt": "a" * (CONTEXT + 1)}, "prompt", "context_length_exceeded", f"{CONTEXT + 1} tokens.*{CONTEXT}"),
        ({"prompt": "a" * (Limits.max_prompt_characters + 1)}, "prompt", "invalid_value", "40,001"),
        ({"prompt": ["a"] * (Limits.max_choices + 1)}, "prompt", "invalid_value", "33 prompts"),
        ({"n": Limits.max_choices + 1}, "n", "too_many_texts", "33"),
        ({"n": 0}, "n", "invalid_value", "1"),
        ({"prompt": ["a"] * 17, "n": 2}, "n", "too_many_texts", "34"),
        ({"max_tokens": -1}, "max_tokens", "invalid_value", "0"),
        ({"max_tokens": 1.5}, "max_tokens", "invalid_value", "integer"),
        ({"max_tokens": True}, "max_tokens", "invalid_value", "integer"),
        ({"max_tokens": "5"}, "max_tokens", "invalid_value", "integer"),
        ({"max_tokens": Limits.max_new_tokens + 1}, "max_tokens", "invalid_value", "4097"),
        ({"temperature": -0.1}, "temperature", "invalid_value", "0"),
        ({"temperature": "hot"}, "temperature", "invalid_value", "number"),
        ({"top_p": 0}, "top_p", "invalid_value", "0"),
        ({"top_k": -1}, "top_k", "invalid_value", "0"),
        ({"min_p": 1.1}, "min_p", "invalid_value", "1"),
        ({"presence_penalty": 2.1}, "presence_penalty", "invalid_value", "2"),
        ({"repetition_penalty": 0}, "repetition_penalty", "invalid_value", "0.01"),
        ({"repetition_penalty": 5e-324}, "repetition_penalty", "invalid_value", "0.01"),
        ({"head_mask": [[101.0] * 4] * 3}, "head_mask", "invalid_value", "100"),
        ({"seed": 2**63}, "seed", "invalid_value", str(2**63 - 1)),
        ({"logprobs": 21}, "logprobs", "invalid_value", "20"),
        ({"stop": ["a", ""]}, "stop", "invalid_value", "none of them empty"),
        ({"stop": ["a"] * (Limits.max_stop + 1)}, "stop", "invalid_value", "17"),
        ({"logit_bias": {"x": 1}}, "logit_bias", "invalid_value", "token ids"),
        ({"logit_bias": {"96": 1}}, "logit_bias", "invalid_value", "0 to 95"),
        ({"logit_bias": {"1": 101}}, "logit_bias", "invalid_value", "100"),
        ({"head_mask": [[1.0]]}, "head_mask", "invalid_value", r"\(3, 4\)"),
        ({"head_mask": [[1.0], [1.0, 2.0]]}, "head_mask", "invalid_value", "head_mask"),
        ({"stream": "yes"}, "stream", "invalid_value", "boolean"),
    ],
)
def test_bad_values_are_refused_by_name(
    server: Server, changes: dict[str, Any], param: str, code: str, said: str
) -> None:
    body = {key: value for key, value in (GOOD_BODY | changes).items() if value is not ...}
    answer = post_body(server, body)
    error = error_of(answer)
    assert answer.status_code == 400 and error["type"] == "invalid_request_error"
    assert (error["param"], error["code"]) == (param, code)
    assert re.search(said, error["message"])


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "a" * CONTEXT},
        {"prompt": ["a"] * Limits.max_choices},
        {"n": Limits.max_choices},
        {"max_tokens": Limits.max_new_tokens},
        {"stop": ["zz"] * Limits.max_stop},
        {"logprobs": 20},
        {"seed": 2**63 - 1},
        {"best_of": 1, "suffix": None, "user": "somebody"},
        {"best_of": 3, "n": 3},
        {"prompt": ["a"] * 20},  # as many as LangChain sends at once
        {"metadata": {"a": "b"}, "tools": None, "tool_choice": "none", "store": False, "service_tier": "auto"},
        {"stop_token_ids": [], "min_tokens": 0, "response_format": {"type": "text"}, "ignore_eos": False},
        {"max_tokens": 3.0, "n": 2.0, "seed": 1.0, "top_k": 5.0, "prompt": [1.0, 2]},  # JSON has one kind of number
        {"logit_bias": {"95": 100, "0": -100}},
    ],
)
def test_values_at_each_limit_are_accepted(server: Server, changes: dict[str, Any]) -> None:
    assert post_body(server, GOOD_BODY | changes).status_code == 200


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"a"', b"NaN", b'{"prompt": "\\ud800"}', b"[" * 100_000])
def test_body_must_be_an_object(server: Server, content: bytes) -> None:
    answer = post_body(server, content)
    assert answer.status_code == 400 and error_of(answer)["code"] == "invalid_json"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    "field", ["temperature", "top_p", "min_p", "seed", "max_tokens", "logprobs", "frequency_penalty"]
)
def test_nan_and_infinity_are_refused(server: Server, field: str, number: str) -> None:
    answer = post_body(server, f'{{"prompt": "ab", "{field}": {number}}}'.encode())
    assert answer.status_code == 400 and error_of(answer)["param"] in (field, None)


@pytest.mark.parametrize(("field", "number"), [("skip_special_tokens", 1), ("store", 0), ("ignore_eos", 0.0)])
def test_booleans_are_not_numbers(server: Server, field: str, number: float) -> None:
    answer = post_body(server, GOOD_BODY | {field: number})
    assert answer.status_code == 400 and error_of(answer)["param"] == field


def test_oversized_body_is_a_413(server: Server) -> None:
    most = Limits.max_body_bytes
    answer = post_body(server, b" " * (most + 1))
    assert answer.status_code == 413 and error_of(answer)["code"] == "body_too_large"
    pieces = httpx.post(f"{server.url}/v1/completions", content=(b" " * 4096 for _ in range(most // 4096 + 1)))
    assert pieces.status_code == 413 and error_of(pieces) == error_of(answer)
    fits = json.dumps(GOOD_BODY).encode().ljust(most)
    assert post_body(server, fits).status_code == 200


def test_unknown_model_is_a_404(server: Server) -> None:
    for name in ("nobody", "broken", ""):
        answer = post_body(server, GOOD_BODY | {"model": name})
        assert (answer.status_code == 200) == (name == "")
        if name:
            assert answer.status_code == 404 and error_of(answer)["code"] == "model_not_found"


def test_unknown_route_is_a_404(server: Server) -> None:
    for method, path, status in (("GET", "nothing", 404), ("GET", "completions", 405), ("POST", "models", 405)):
        answer = httpx.request(method, f"{server.url}/v1/{path}")
        assert answer.status_code == status and error_of(answer)["type"] == "invalid_request_error"


def test_openai_client_raises_its_own_errors(server: Server) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="-", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError, match="reads at most"):
            client.completions.create(model="tiny", prompt="a" * 100)
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="nobody", prompt="a")


def test_validation_of_large_bodies_stops_early() -> None:
    """A long list of invalid items would block the server, and all streams, for seconds."""
    for body in (
        {"prompt": [1] * 9_000 + ["a"]},
        {"prompt": "a", "head_mask": [["a"]] * 9_000},
        {"prompt": [[-1]] * 9_000},
    ):
        with pytest.raises(ValidationError) as caught:
            CompletionRequest.model_validate_json(json.dumps(body))
        assert caught.value.error_count() <= 5


@pytest.mark.parametrize(("path", "schema"), [("completions", CompletionRequest), ("attention", AttentionRequest)])
def test_arbitrary_bodies_are_answered(server: Server, path: str, schema: Any) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        few(whatever_comes_in_is_answered(client, path, schema))
        assert still_serves(client)


def test_unknown_route_names_the_existing_ones(server: Server) -> None:
    answer = httpx.post(f"{server.url}/v1/responses", json={"input": "Once"})
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["param"]) == (404, "not_found", None)
    assert "/v1/responses" in error["message"] and "/v1/completions, " in error["message"]
