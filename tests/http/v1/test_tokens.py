"""/tokenize, /detokenize and /version in vLLM's format, and vLLM's options of completions."""

import tomllib
from typing import Any

import httpx
import pytest

import model
from helpers.api import error_of, post_body
from helpers.files import ROOT
from helpers.server import CONTEXT, Server
from web.settings import Limits

MESSAGES = [{"role": "user", "content": "Hi"}]
TRANSCRIPT = "User: Hi\nAssistant:"


@pytest.mark.parametrize("place", ["", "/v1"])
def test_tokenize_and_detokenize_round_trip(server: Server, place: str) -> None:
    tokenizer = server.served.models["tiny"].tokenizer
    text = "To be, or not to be: " * 5  # longer than the context
    answer = httpx.post(f"{server.url}{place}/tokenize", json={"model": "tiny", "prompt": text}).json()
    ids = tokenizer.encode(text)
    assert answer == {"count": len(ids), "max_model_len": CONTEXT, "tokens": ids, "token_strs": None}
    back = httpx.post(f"{server.url}{place}/detokenize", json={"model": "tiny", "tokens": ids}).json()
    assert back == {"prompt": text}


def test_conversations_are_tokenized_with_the_template(server: Server) -> None:
    def tokenize(**body: Any) -> Any:
        return httpx.post(f"{server.url}/tokenize", json=body).json()

    answer = tokenize(messages=MESSAGES, return_token_strs=True, add_special_tokens=False)
    assert "".join(answer["token_strs"]) == TRANSCRIPT and answer["count"] == len(TRANSCRIPT)
    without = tokenize(messages=MESSAGES, add_generation_prompt=False, return_token_strs=True)
    assert "".join(without["token_strs"]) == "User: Hi"
    assert tokenize(prompt="")["tokens"] == []


@pytest.mark.parametrize(
    ("path", "body", "param", "code"),
    [
        ("tokenize", {}, "prompt", "invalid_value"),
        ("tokenize", {"prompt": "a", "messages": MESSAGES}, "prompt", "invalid_value"),
        ("tokenize", {"prompt": "\u00e9"}, "prompt", "unknown_characters"),
        ("tokenize", {"messages": [{"role": "user", "content": "\u00e9"}]}, "messages", "unknown_characters"),
        ("tokenize", {"prompt": "a" * (Limits.max_prompt_characters + 1)}, "prompt", "invalid_value"),
        ("detokenize", {}, "tokens", "missing_field"),
        ("detokenize", {"tokens": [96]}, "tokens", "unknown_token"),
        ("detokenize", {"tokens": [-1]}, "tokens", "invalid_value"),
        ("detokenize", {"tokens": [1] * (Limits.max_prompt_characters + 1)}, "tokens", "invalid_value"),
        ("detokenize", {"tokens": [1], "skip": 1}, "skip", "unsupported_option"),
    ],
)
def test_invalid_requests_are_refused(server: Server, path: str, body: dict[str, Any], param: str, code: str) -> None:
    answer = httpx.post(f"{server.url}/{path}", json=body)
    error = error_of(answer)
    assert answer.status_code == 400 and (error["param"], error["code"]) == (param, code)


def test_version_is_reported(server: Server) -> None:
    assert httpx.get(f"{server.url}/version").json() == {"version": model.__version__}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "model.__version__"}


def test_wrong_methods_and_paths_are_refused(server: Server) -> None:
    for path in ("/tokenize", "/detokenize"):
        answer = httpx.get(server.url + path)
        assert answer.status_code == 405 and answer.headers["allow"] == "POST" and error_of(answer)
    assert httpx.post(f"{server.url}/tokenize/more").status_code in (404, 405)


def test_stop_token_ids_and_min_tokens(server: Server) -> None:
    """The third token that the model writes ends the text, but not before the minimum number of tokens."""
    body: dict[str, Any] = {"model": "tiny", "prompt": "To be", "max_tokens": 8, "seed": 1, "logprobs": 0}
    (choice,) = post_body(server, body).json()["choices"]
    ids = server.served.models["tiny"].tokenizer.encode(choice["text"])
    place = next(i for i, token_id in enumerate(ids) if token_id not in ids[:i] and i >= 2)
    (ended,) = post_body(server, body | {"stop_token_ids": [ids[place]]}).json()["choices"]
    assert ended["text"] == choice["text"][: place + 1] and ended["finish_reason"] == "stop"
    assert ended["logprobs"]["tokens"] == list(ended["text"])
    (later,) = post_body(server, body | {"stop_token_ids": [ids[place]], "min_tokens": 8}).json()["choices"]
    assert len(later["text"]) == 8 and choice["text"][place] not in later["text"]
