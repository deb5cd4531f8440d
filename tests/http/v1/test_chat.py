"""/v1/chat/completions and /v1/embeddings, through the official client and with the requests of other clients."""

import base64
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import torch
from transformers import AutoModel

from helpers.api import error_of, post_body
from helpers.server import CONTEXT, Server

MODEL = "tiny"
HELLO = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none is asked for", max_retries=0) as client:
        yield client


def continued(server: Server, prompt: str, n: int, seed: int = 1, **options: Any) -> str:
    loaded = server.services.served.models[MODEL]
    return "".join(step.text for step in loaded.generate(prompt, n, seed=seed, **options))


def test_chat_continues_a_transcript(server: Server, client: openai.OpenAI) -> None:
    messages: Any = [
        {"role": "system", "content": "Be"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    answer = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=9, seed=1, temperature=0.8)
    prompt = "System: Be\nUser: ab\nAssistant: c\nUser: d\nAssistant:"
    stop = ["\nSystem:", "\nUser:", "\nAssistant:"]
    (choice,) = answer.choices
    assert choice.message.content == continued(server, prompt, 9, temperature=0.8, stop=stop)
    assert choice.message.role == "assistant" and choice.finish_reason == "length"
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert answer.usage is not None and answer.usage.prompt_tokens == len(prompt)


def test_max_tokens_defaults_to_the_rest_of_the_context(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, seed=1)  # type: ignore[call-overload]
    prompt = "User: Hi\nAssistant:"
    assert answer.usage.completion_tokens == CONTEXT - len(prompt) + 1


def test_stream_joins_to_the_whole_answer(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": HELLO, "max_completion_tokens": 12, "seed": 3, "n": 2}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked))
    assert chunks[-1].usage == whole.usage and not chunks[-1].choices
    for choice in whole.choices:
        parts = [part for chunk in chunks for part in chunk.choices if part.index == choice.index]
        assert [part.delta.role for part in parts] == ["assistant"] + [None] * (len(parts) - 1)
        assert "".join(part.delta.content for part in parts) == choice.message.content
        assert [part.finish_reason for part in parts] == [None] * (len(parts) - 1) + [choice.finish_reason]
    assert all(chunk.object == "chat.completion.chunk" for chunk in chunks)


def test_logprobs_equal_the_models(server: Server, client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "messages": HELLO, "max_tokens": 5, "seed": 3, "logprobs": True}
    answer = client.chat.completions.create(top_logprobs=3, **asked)
    loaded = server.services.served.models[MODEL]
    steps = list(loaded.generate("User: Hi\nAssistant:", 5, seed=3))
    told = answer.choices[0].logprobs.content
    assert [each.token for each in told] == [step.text for step in steps]
    assert [each.logprob for each in told] == pytest.approx([step.logprob for step in steps], abs=1e-5)
    for each in told:
        assert each.bytes == list(each.token.encode()) and len(each.top_logprobs) == 3
        assert each.top_logprobs[0].logprob >= each.top_logprobs[1].logprob >= each.top_logprobs[2].logprob
    none = client.chat.completions.create(**asked)
    assert all(each.top_logprobs == [] for each in none.choices[0].logprobs.content)


NEUTRAL: dict[str, Any] = {
    "user": "me",
    "metadata": {"a": "b"},
    "store": False,
    "tools": [],
    "tool_choice": "none",
    "parallel_tool_calls": True,
    "response_format": {"type": "text"},
    "logit_bias": None,
    "stop": None,
    "stream_options": None,
    "max_tokens": None,
    "prompt_cache_retention": "24h",
    "reasoning_effort": "none",
    "verbosity": "medium",
    **dict.fromkeys(("prediction", "audio", "web_search_options")),
    "ignore_eos": False,
    "skip_special_tokens": None,
    "functions": [],
    "function_call": "none",
    "chat_template_kwargs": {},
    "logprobs": False,
    "top_logprobs": 0,
    "include_stop_str_in_output": False,
    "use_beam_search": False,
    **dict.fromkeys(("truncate_prompt_tokens", "allowed_token_ids", "prompt_logprobs")),
}


def test_neutral_option_values_are_accepted(server: Server) -> None:
    body = {"model": MODEL, "messages": HELLO, "max_completion_tokens": 4, "seed": 1}
    plain, neutral = (post_body(server, each, "chat/completions") for each in (body, body | NEUTRAL))
    assert neutral.status_code == 200 and neutral.json()["choices"] == plain.json()["choices"]


@pytest.mark.parametrize(
    "name", ["reasoning_effort", "verbosity", "prediction", "allowed_token_ids", "use_beam_search"]
)
def test_unsupported_options_are_refused_by_name(server: Server, name: str) -> None:
    body = {"messages": HELLO, "max_tokens": 1, name: {"type": "content"} if name == "prediction" else "high"}
    answer = post_body(server, body, "chat/completions")
    assert answer.status_code == 400 and error_of(answer)["param"] == name and name in error_of(answer)["message"]


@pytest.mark.parametrize(("most", "newer"), [(3, 5), (5, 3), (None, 3), (3, None)])
def test_smaller_of_both_token_limits_applies(server: Server, most: int | None, newer: int | None) -> None:
    body = {"messages": HELLO, "max_tokens": most, "max_completion_tokens": newer, "stop": ["\x00"]}
    assert post_body(server, body, "chat/completions").json()["usage"]["completion_tokens"] == 3


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": []}, "messages", "at least 1 item"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages", "'system', 'developer', 'user' or 'assistant'"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        "image_url",
        "not supported",
    ),
    ({"messages": [{"role": "user", "content": "é"}]}, "messages", "never seen 'é'"),
    ({"messages": [{"role": "user", "content": "x" * CONTEXT}]}, "messages", f"at most {CONTEXT} at once"),
    ({"messages": [{"role": "user", "content": "x" * 50_000}]}, "messages", "at most 40,000 are accepted"),
    ({"tools": [{"type": "function"}]}, "tools", "Tools are not supported"),
    ({"functions": [{}]}, "functions", "Tools are not supported"),
    ({"top_logprobs": 2}, "top_logprobs", "requires logprobs: true"),
    ({"response_format": {"type": "json_object"}}, "response_format", "JSON schema"),
    ({"stop": ["x"] * 17}, "stop", "stop has 17 strings"),
]


@pytest.mark.parametrize(("changes", "field", "message"), REFUSED)
def test_invalid_conversations_are_refused(server: Server, changes: dict[str, Any], field: str, message: str) -> None:
    answer = post_body(server, {"model": MODEL, "messages": HELLO} | changes, "chat/completions")
    assert answer.status_code == 400
    error = error_of(answer)
    assert error["param"] == field and message in error["message"]


@torch.inference_mode()
def test_embeddings_are_the_mean_of_the_last_hidden_states(
    server: Server, client: openai.OpenAI, tmp_path: Path
) -> None:
    loaded = server.services.served.models[MODEL]
    loaded.save(tmp_path / "saved")
    theirs = AutoModel.from_pretrained(tmp_path / "saved", dtype=torch.float32).eval()
    answer = client.embeddings.create(model=MODEL, input=["To be", "or"])  # base64, which is this client's default
    assert answer.usage.prompt_tokens == 7
    for text, entry in zip(["To be", "or"], answer.data, strict=True):
        ids = torch.tensor([loaded.tokenizer.encode(text)])
        expected = theirs(ids).last_hidden_state[0].mean(dim=0)
        assert entry.embedding == pytest.approx(expected.tolist(), abs=1e-5)
    body = {"input": "To be", "encoding_format": "base64"}
    (entry,) = post_body(server, body, "embeddings").json()["data"]
    raw = base64.b64decode(entry["embedding"])
    assert list(struct.unpack(f"<{len(raw) // 4}f", raw)) == pytest.approx(answer.data[0].embedding, abs=1e-6)
    ids = post_body(server, {"input": loaded.tokenizer.encode("To be")}, "embeddings").json()["data"][0]["embedding"]
    assert ids == pytest.approx(answer.data[0].embedding, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"input": ""}, "input"), ({"input": []}, "input"), ({"input": "é"}, "input"), ({"dimensions": 5}, "dimensions")],
)
def test_invalid_embeddings_requests_are_refused(server: Server, changes: dict[str, Any], field: str) -> None:
    answer = post_body(server, {"input": "a"} | changes, "embeddings")
    assert answer.status_code == 400 and error_of(answer)["param"] == field


def test_chat_and_embeddings_are_counted_in_the_metrics(server: Server) -> None:
    post_body(server, {"messages": HELLO, "max_tokens": 1}, "chat/completions")
    post_body(server, {"input": "a"}, "embeddings")
    text = httpx.get(f"{server.url}/metrics").text
    for route in ("/v1/chat/completions", "/v1/embeddings"):
        assert f'route="{route}"' in text and 'outcome="ok"' in text
