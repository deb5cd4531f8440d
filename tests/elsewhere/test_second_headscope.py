"""One Headscope writes, another shows the heads: the result is as if the second had written the text itself."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from helpers.api import error_of, post_body
from helpers.runs import FIELDS, lower, new_ids, streamed, write_text
from helpers.server import CONTEXT, Server
from model import GenerationRequest
from web.page.pointers import READ_ALONG

PROMPT = FIELDS["prompt"]


def local_ids(server: Server, n: int, model: str = "tiny", prompt: Any = PROMPT, **settings: Any) -> list[int]:
    """The text that the model writes locally."""
    loaded = server.served.models[model]
    steps = loaded.generate(prompt, n, **({"temperature": 0.8, "seed": 1} | settings))
    return loaded.parse_prompt(prompt) + [step.token_id for step in steps]


@pytest.mark.parametrize("changes", [{}, {"temperature": 0.0}, {"top_p": 0.7, "seed": 3}, {"model": "other"}])
def test_page_shows_remote_text_with_all_heads(looking: Server, changes: dict[str, Any]) -> None:
    last = (pointers := write_text(looking, **changes))[-1]
    ids = local_ids(looking, 12, **changes)
    assert new_ids(pointers) == ids and (last["state"], last["why"], last["written"]) == ("done", "", 12)
    assert last["tokens"] == last["rows"] == len(ids)
    loaded = looking.served.models[changes.get("model", "tiny")]
    trace = loaded.trace(ids)
    run = looking.services.runs.get(last["run"])
    assert run is not None
    expected = trace.logits.log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    assert run.logprobs[1:] == pytest.approx(expected.tolist(), abs=1e-4)
    for layer, head in ((0, 0), (1, 1)):
        sent = httpx.get(f"{looking.url}/look/{last['run']}/heads/{layer}/{head}").content
        assert np.frombuffer(sent, np.float32) == pytest.approx(lower(trace.attention[layer, head]).numpy(), abs=1e-5)


def test_long_prompts_are_read_in_pieces_up_to_the_context_length(looking: Server) -> None:
    prompt = "What a piece of work is a man! " * 2
    last = write_text(looking, prompt=prompt[: CONTEXT - 2], max_new_tokens=30)[-1]
    # A remote engine counts the tokens that fit; a local one would write one more, which cannot be read.
    assert (last["tokens"], last["rows"], last["written"]) == (CONTEXT, CONTEXT, 2)


def test_branches_continue_from_another_token(looking: Server) -> None:
    loaded = looking.served.models["tiny"]
    first = write_text(looking)[-1]
    ids = [*local_ids(looking, 12)[:12], 5]
    branch = {"of": first["run"], "model": "tiny", "sha256": loaded.sha256, "n_prompt": 3, "ids": ids, "instead": 1}
    assert new_ids(write_text(looking, branch=branch)) == local_ids(looking, 12, prompt=ids)


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "ab", "max_tokens": 9, "seed": 4},
        {"prompt": "ab", "max_tokens": 9, "seed": 4, "logprobs": 3, "temperature": 0.7, "top_p": 0.9},
        {"prompt": "abcde", "max_tokens": 4, "seed": 4, "logprobs": 2, "echo": True},
        {"prompt": [1, 2, 3], "max_tokens": 5, "seed": 1, "temperature": 0},
        {"prompt": ["a", "b"], "max_tokens": 5, "temperature": 0, "logprobs": 0},
    ],
)
def test_remote_and_local_completions_are_equal(server: Server, looking: Server, body: dict[str, Any]) -> None:
    told, expected = (post_body(each, {"model": "tiny"} | body).json() for each in (looking, server))
    assert told["usage"] == expected["usage"]
    for choice, other in zip(told["choices"], expected["choices"], strict=True):
        assert (choice["text"], choice["finish_reason"]) == (other["text"], other["finish_reason"])
        if "logprobs" in body:
            assert choice["logprobs"]["tokens"] == other["logprobs"]["tokens"]
            assert choice["logprobs"]["text_offset"] == other["logprobs"]["text_offset"]
            pairs = zip(choice["logprobs"]["token_logprobs"], other["logprobs"]["token_logprobs"], strict=True)
            assert all(a == b or abs(a - b) <= 1e-4 for a, b in pairs)
            assert [top and set(top) for top in choice["logprobs"]["top_logprobs"]] == [
                top and set(top) for top in other["logprobs"]["top_logprobs"]
            ]


def test_stop_strings_and_several_choices(server: Server, looking: Server) -> None:
    loaded = looking.served.models["tiny"]
    text = loaded.tokenizer.decode(local_ids(looking, 20, prompt="ab", seed=6, temperature=1.0)[2:])
    body = {"model": "tiny", "prompt": "ab", "max_tokens": 20, "seed": 6, "stop": [text[7:9]]}
    told, expected = (post_body(each, body).json()["choices"][0] for each in (looking, server))
    assert (told["text"], told["finish_reason"]) == (expected["text"], "stop") and told["text"] == text[:7]
    several = {"model": "tiny", "prompt": "ab", "max_tokens": 12, "seed": 6, "n": 3}
    one, again = ([c["text"] for c in post_body(looking, several).json()["choices"]] for _ in range(2))
    assert one == again and len(set(one)) == 3 and one[0] == text[:12]


def test_chat_and_gradio_clients(server: Server, looking: Server) -> None:
    texts = []
    for each in (server, looking):
        with openai.OpenAI(base_url=f"{each.url}/v1", api_key="none", max_retries=0) as client:
            asked: Any = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "seed": 2}
            stream = client.chat.completions.create(**asked, stream=True)
            streamed_text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
            answer = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
            assert answer.choices[0].message.content == streamed_text
            texts.append(streamed_text)
        asked = {"prompt": "Hi", "model": "tiny", "max_new_tokens": 8, "seed": 2}
        texts.append(Client(each.url, verbose=False).predict(**asked, api_name="/generate"))
    assert texts[:2] == texts[2:]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("top_k", 5),
        ("min_p", 0.1),
        ("presence_penalty", 0.5),
        ("frequency_penalty", 0.5),
        ("repetition_penalty", 1.2),
        ("logit_bias", {"3": 1}),
        ("head_mask", [[1, 1, 1, 0]] * 3),
        ("context_shift", True),
    ],
)
def test_options_that_cannot_be_forwarded_are_refused_by_name(looking: Server, option: str, value: Any) -> None:
    body = {"model": "tiny", "prompt": "ab", "max_tokens": 2, option: value}
    chat = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], option: value}
    for answer in (post_body(looking, body), post_body(looking, chat, "chat/completions")):
        error = error_of(answer)
        assert answer.status_code == 400 and error["param"] == option and error["code"] == "unsupported_option"
        assert error["message"].startswith(f"{option} is not available for tiny: another engine writes for it")
    if option in ("top_k", "min_p", "head_mask", "context_shift"):
        page = httpx.post(f"{looking.url}/look/write", json=FIELDS | {option: value})
        assert page.status_code == 400 and page.json()["field"] == option
    if option in ("top_k", "min_p"):
        with pytest.raises(AppError, match=f"{option} is not available"):
            Client(looking.url, verbose=False).predict("Hi", "tiny", api_name="/generate", **{option: value})


def test_neutral_option_values_are_accepted(looking: Server) -> None:
    body = {"prompt": "ab", "max_tokens": 2, "top_k": 0, "min_p": 0, "presence_penalty": 0, "logit_bias": {}}
    assert post_body(looking, {"model": "tiny", **body}).status_code == 200


@pytest.fixture
def gated(server: Server, slow: Any, launch: Callable[..., Server], checkpoints: Path) -> Server:
    """An app that shows the texts that the gated model writes."""
    return launch(checkpoints / "tiny", engine_urls=(f"tiny={server.url}/v1",), engine_models=("slow",))


def test_attention_rows_arrive_while_text_is_written(slow: Any, gated: Server) -> None:
    with streamed(gated, max_new_tokens=5) as pointers:
        slow.gate.release(3)
        while (pointer := next(pointers))["rows"] < len(PROMPT) + 3:
            assert pointer["state"] in ("waiting", "writing")
        assert pointer["tokens"] == len(PROMPT) + 3


@pytest.mark.parametrize("route", ["page", "api"])
def test_disconnecting_stops_the_remote_text(server: Server, slow: Any, gated: Server, route: str) -> None:
    if route == "page":
        with streamed(gated, max_new_tokens=30) as pointers:
            slow.gate.release(2)
            while next(pointers)["tokens"] < len(PROMPT) + 2:
                pass
    else:
        body = {"model": "tiny", "prompt": "ab", "max_tokens": 30, "stream": True}
        slow.gate.release(2)
        with httpx.stream("POST", f"{gated.url}/v1/completions", json=body) as answer:
            next(answer.iter_lines())
    server.wait_until_idle()
    gated.wait_until_idle()


def test_stopped_text_has_all_rows(server: Server, slow: Any, gated: Server) -> None:
    with streamed(gated, max_new_tokens=30) as pointers:
        slow.gate.release(3)
        while (pointer := next(pointers))["tokens"] < len(PROMPT) + 3:
            pass
        assert httpx.post(f"{gated.url}/look/{pointer['run']}/stop", json={}).status_code == 204
        last = list(pointers)[-1]
    assert last["state"] == "stopped" and last["tokens"] == last["rows"] == len(PROMPT) + 3
    server.wait_until_idle()


def test_byte_pair_vocabulary(launch: Callable[..., Server], pairs: Path) -> None:
    """A random model draws tokens that no text encodes to: the text is tokenized again, and every number is correct."""
    writer = launch(pairs)
    looking = launch(pairs, engine_urls=(f"{writer.url}/v1",))
    loaded = looking.served.models["pairs"]
    prompt = "It's a fine day"
    text = post_body(writer, {"prompt": prompt, "max_tokens": 30, "seed": 2}).json()["choices"][0]["text"]
    last = (pointers := write_text(looking, model="pairs", prompt=prompt, max_new_tokens=30, seed=2, temperature=1))[-1]
    ids = loaded.tokenizer.encode(prompt) + loaded.tokenizer.encode(text)
    assert new_ids(pointers) == ids and last["state"] == "done"
    n_here = len(ids) - len(loaded.tokenizer.encode(prompt))
    expected = "" if n_here == 30 else f"wrote 30 tokens, as asked for. Tokenized by this model, its text has {n_here}."
    assert last["why"].endswith(expected) and last["tokens"] == last["rows"] == len(ids)


def test_page_names_writing_and_reading_engines(server: Server, looking: Server) -> None:
    notes = {pointer["note"] for pointer in write_text(looking)}
    assert notes == {READ_ALONG.format("tiny")}
    assert all("note" not in pointer for pointer in write_text(server))


def test_every_request_field_is_forwarded_or_refused() -> None:
    carried_out = {"prompt", "max_new_tokens", "seed", "sampling", "stop", "choice", "record", "logprobs"}
    carried_out |= {"prompt_logprobs", "n_top_logprobs"}
    carried_out |= {"never_drawn"}  # the engine sends text, which is tokenized here
    refused = {"head_mask", "context_shift", "stop_token_ids", "min_new_tokens", "skip_special_tokens"}
    assert {field.name for field in fields(GenerationRequest)} == carried_out | refused
