"""The types of the installed ``openai`` package: each of their fields is known, and accepted where it asks for nothing.

A field that a later version adds fails here until it is carried out, or listed among the unsupported options.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import httpx
import pytest
from openai.types import Model, embedding_create_params
from openai.types import completion_create_params as text_params
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionContentPartTextParam,
    ChatCompletionDeveloperMessageParam,
    ChatCompletionMessage,
    ChatCompletionStreamOptionsParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat import completion_create_params as chat_params

from helpers.api import post_body
from helpers.server import Server

Place = tuple[str, ...]
HELLO = {"role": "user", "content": "Hi"}
BODIES: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [HELLO], "max_tokens": 3, "seed": 1},
    "completions": {"prompt": "Hi", "max_tokens": 3, "seed": 1},
    "embeddings": {"input": "Hi"},
}
TYPES: dict[str, list[Any]] = {
    "chat/completions": [chat_params.CompletionCreateParamsBase, chat_params.CompletionCreateParamsNonStreaming],
    "completions": [text_params.CompletionCreateParamsBase, text_params.CompletionCreateParamsNonStreaming],
    "embeddings": [embedding_create_params.EmbeddingCreateParams],
}
SPOKEN = {
    "system": [ChatCompletionSystemMessageParam],
    "developer": [ChatCompletionDeveloperMessageParam],
    "user": [ChatCompletionUserMessageParam],
    "assistant": [ChatCompletionAssistantMessageParam, ChatCompletionMessage],
}
PROMPTS = ("messages", "prompt", "input", "content")


def neutral_values(hint: Any) -> Iterator[Any]:
    """The values of a type that ask for nothing."""
    if get_origin(hint) in (Union, type(int | None)):
        for each in get_args(hint):
            yield from neutral_values(each)
    elif get_origin(hint) is Literal:
        yield from (value for value in get_args(hint) if value in ("none", "auto") or value is False)
    elif get_origin(hint) in (list, Sequence, Iterable):
        yield []
    elif get_origin(hint) is dict:
        yield {}
    elif hint in (bool, type(None)):
        yield False if hint is bool else None


def hints_of(kind: Any) -> dict[str, Any]:
    if issubclass(kind, ChatCompletionMessage):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    return get_type_hints(kind)


def fields(kinds: list[Any]) -> list[tuple[str, Any]]:
    """The fields of these types with each of their neutral values; null for one without any, to see if it is known."""
    hints = {name: hint for kind in kinds for name, hint in hints_of(kind).items()}
    return [(name, value) for name, hint in hints.items() for value in [*neutral_values(hint)] or [None]]


@pytest.mark.parametrize("route", BODIES)
def test_neutral_values_of_every_field_are_accepted(server: Server, route: str) -> None:
    plain = post_body(server, BODIES[route], route).json()
    answer = "data" if route == "embeddings" else "choices"
    tried = 0
    for name, value in fields(TYPES[route]):
        if name in PROMPTS:
            continue
        body = BODIES[route] | {name: value}
        if body == BODIES[route] | {name: None} and name in ("max_tokens", "seed"):
            continue  # null is another length and a seed that is drawn
        found = post_body(server, body, route)
        assert found.status_code == 200, (name, value, found.text)
        assert found.json()[answer] == plain[answer], (name, value)
        tried += 1
    assert tried >= 4


@pytest.mark.parametrize("role", SPOKEN)
def test_neutral_values_of_every_field_of_a_message_are_accepted(server: Server, role: str) -> None:
    message = HELLO | {"role": role}
    body = {"messages": [message], "max_tokens": 3, "seed": 1}
    plain = post_body(server, body, "chat/completions").json()["choices"]
    for name, value in fields(SPOKEN[role]):
        if name in PROMPTS or name == "role":
            continue
        found = post_body(server, body | {"messages": [message | {name: value}]}, "chat/completions")
        assert found.status_code == 200, (name, value, found.text)
        assert found.json()["choices"] == plain


def test_neutral_values_of_nested_options_are_accepted(server: Server) -> None:
    for name, value in fields([ChatCompletionStreamOptionsParam]):
        for stream in (True, False):
            body = BODIES["completions"] | {"stream": stream, "stream_options": {name: value}}
            assert post_body(server, body).status_code == 200, name
    for name, value in fields([ChatCompletionContentPartTextParam]):
        if name not in ("type", "text"):
            parts = [{"type": "text", "text": "Hi", name: value}]
            body = BODIES["chat/completions"] | {"messages": [HELLO | {"content": parts}]}
            assert post_body(server, body, "chat/completions").status_code == 200, name


def test_an_answer_may_be_sent_back_as_it_came(server: Server) -> None:
    (choice,) = post_body(server, BODIES["chat/completions"], "chat/completions").json()["choices"]
    answer = ChatCompletionMessage.model_validate(choice["message"]).model_dump()
    more = dict.fromkeys(("reasoning", "reasoning_content", "provider_specific_fields", "tool_calls"))
    empty = {"content": None, "reasoning_content": "", "tool_calls": [], "provider_specific_fields": {}}
    for sent in (answer, answer | more, answer | empty, {"role": "assistant"}, HELLO | {"content": []}):
        body = BODIES["chat/completions"] | {"messages": [HELLO, sent, HELLO]}
        assert post_body(server, body, "chat/completions").status_code == 200, sent


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"messages": [HELLO | {"tool_calls": [{}]}]}, "tool_calls"),
        ({"messages": [HELLO | {"reasoning_content": "hm"}]}, "reasoning_content"),
        ({"messages": [HELLO | {"content": None}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"moderation": {"model": "m"}}, "moderation"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}}, "include_obfuscation"),
        ({"stream": True, "stream_options": {"continuous_usage_stats": True}}, "continuous_usage_stats"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"top_logprobs": 1, "logprobs": False}, "top_logprobs"),
        ({"store": True}, "store"),
        ({"tools": 0}, "tools"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(server: Server, changes: Any, named: str) -> None:
    found = post_body(server, BODIES["chat/completions"] | changes, "chat/completions")
    assert found.status_code == 400 and found.json()["error"]["param"] == named


def test_models_have_every_field(server: Server) -> None:
    for listed in httpx.get(f"{server.url}/v1/models").json()["data"]:
        needed = {name for name, field in Model.model_fields.items() if field.is_required()}
        assert needed <= set(listed) and Model.model_validate(listed, strict=True).id == listed["id"]
