"""/v1/completions through the official client: texts in OpenAI's format, whole and streamed."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
import torch

from helpers.server import CONTEXT, Server
from model import SamplingSettings
from model.generate import generate

MODEL = "tiny"


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none is asked for", max_retries=0) as client:
        yield client


def written(server: Server, prompt: Any, n: int, choice: Any = (0, 0), seed: int = 1, **settings: Any) -> str:
    """The text that the model writes on its own, without a server."""
    loaded = server.services.served.models[MODEL]
    request = loaded.request(prompt, n, sampling=SamplingSettings(**settings), seed=seed, choice=choice)
    return "".join(step.text for step in generate(loaded.gpt, loaded.begin(request)))


def streamed(client: openai.OpenAI, **body: Any) -> list[Any]:
    return list(client.completions.create(model=MODEL, stream=True, **body))


def test_completion_equals_generate(server: Server, client: openai.OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt="To be", max_tokens=12, seed=1)
    (choice,) = answer.choices
    assert choice.text == written(server, "To be", 12)
    assert choice.finish_reason == "length" and choice.index == 0 and choice.logprobs is None
    assert answer.object == "text_completion" and answer.model == MODEL and answer.id.startswith("cmpl-")
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (5, 12, 17)


def test_16_tokens_by_default_and_the_first_model(server: Server) -> None:
    answer = httpx.post(f"{server.url}/v1/completions", json={"prompt": "To be"}).json()
    assert answer["model"] == MODEL and len(answer["choices"][0]["text"]) == 16


def test_every_sampling_parameter_reaches_the_model(server: Server, client: openai.OpenAI) -> None:
    settings: dict[str, Any] = {"temperature": 0.9, "top_p": 0.9, "presence_penalty": 0.5, "frequency_penalty": -0.5}
    more: dict[str, Any] = {"top_k": 20, "min_p": 0.01, "repetition_penalty": 1.2}
    answer = client.completions.create(
        model=MODEL, prompt="To be", max_tokens=20, seed=7, logit_bias={"5": 3, "9": -100}, extra_body=more, **settings
    )
    expected = written(server, "To be", 20, seed=7, logit_bias={5: 3, 9: -100}, **settings, **more)
    assert answer.choices[0].text == expected
    for name, value in (settings | more).items():
        neutral = client.completions.create(
            model=MODEL, prompt="To be", max_tokens=20, seed=7, extra_body={name: value}
        )
        assert neutral.choices[0].text == written(server, "To be", 20, seed=7, **{name: value})


def test_null_selects_the_default(server: Server) -> None:
    names = "max_tokens temperature top_p top_k min_p n stream stop logprobs echo presence_penalty frequency_penalty"
    body = dict.fromkeys([*names.split(), "repetition_penalty", "logit_bias", "head_mask", "best_of", "suffix", "user"])
    body |= {"model": MODEL, "prompt": "To be", "seed": 3}
    answer = httpx.post(f"{server.url}/v1/completions", json=body).json()
    assert answer["choices"][0]["text"] == written(server, "To be", 16, seed=3)


def test_choices_and_prompts_draw_independently(server: Server, client: openai.OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt=["ab", "cd"], n=3, max_tokens=10, seed=5)
    assert [choice.index for choice in answer.choices] == list(range(6))
    expected = [written(server, p, 10, (j, i), seed=5) for j, p in enumerate(("ab", "cd")) for i in range(3)]
    assert [choice.text for choice in answer.choices] == expected
    assert len(set(expected)) == 6
    assert answer.usage.prompt_tokens == 4 and answer.usage.completion_tokens == 60


def test_prompts_may_be_token_ids(server: Server, client: openai.OpenAI) -> None:
    loaded = server.services.served.models[MODEL]
    ids = loaded.tokenizer.encode("To be")
    one = client.completions.create(model=MODEL, prompt=ids, max_tokens=8, seed=1)
    assert one.choices[0].text == written(server, "To be", 8)
    two = client.completions.create(model=MODEL, prompt=[ids, ids[:2]], max_tokens=8, seed=1)
    assert [choice.text for choice in two.choices] == [one.choices[0].text, written(server, "To", 8, (1, 0))]


@pytest.mark.parametrize("n", [1, 3])
def test_stream_joins_to_the_whole_text(server: Server, client: openai.OpenAI, n: int) -> None:
    body: dict[str, Any] = {"prompt": "To be", "max_tokens": 20, "seed": 2, "n": n, "logprobs": 1}
    chunks = streamed(client, **body, stream_options={"include_usage": True})
    whole = client.completions.create(model=MODEL, **body)
    *parts, last = chunks
    assert last.choices == [] and last.usage == whole.usage
    assert all(chunk.usage is None for chunk in parts)
    for choice in whole.choices:
        mine = [found for chunk in parts for found in chunk.choices if found.index == choice.index]
        assert "".join(found.text for found in mine) == choice.text
        assert [found.finish_reason for found in mine] == [None] * (len(mine) - 1) + ["length"]
        assert [token for found in mine for token in found.logprobs.tokens] == choice.logprobs.tokens
        offsets = [offset for found in mine for offset in found.logprobs.text_offset]
        assert offsets == choice.logprobs.text_offset


def test_stream_is_server_sent_events(server: Server) -> None:
    body = {"model": MODEL, "prompt": "To be", "max_tokens": 3, "seed": 1, "stream": True}
    answer = httpx.post(f"{server.url}/v1/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, end = answer.text.removesuffix("\n\n").split("\n\n")
    assert end == "data: [DONE]"
    contents = [json.loads(event.removeprefix("data: ")) for event in events]
    assert "".join(content["choices"][0]["text"] for content in contents) == written(server, "To be", 3)
    assert all("usage" not in content for content in contents)


def test_logprobs_equal_the_models(server: Server, client: openai.OpenAI) -> None:
    answer = client.completions.create(model=MODEL, prompt="To be", max_tokens=6, seed=1, logprobs=3, echo=True)
    (choice,) = answer.choices
    loaded = server.services.served.models[MODEL]
    assert choice.text.startswith("To be") and len(choice.text) == 11
    ids = loaded.tokenizer.encode(choice.text)
    expected = loaded.trace(ids).logits.log_softmax(-1)
    found = choice.logprobs
    assert "".join(found.tokens) == choice.text and found.text_offset == list(range(11))
    assert found.token_logprobs[0] is None and found.top_logprobs[0] is None
    for i, token_id in enumerate(ids[1:], 1):
        assert abs(found.token_logprobs[i] - float(expected[i - 1, token_id])) < 1e-4
        values, tokens = expected[i - 1].topk(3)
        top = {loaded.tokenizer.decode([int(token)]): float(value) for token, value in zip(tokens, values, strict=True)}
        top[choice.text[i]] = float(expected[i - 1, token_id])
        assert found.top_logprobs[i] == pytest.approx(top, abs=1e-4)


def test_echo_with_and_without_new_tokens(server: Server, client: openai.OpenAI) -> None:
    echoed = client.completions.create(model=MODEL, prompt="To be", max_tokens=4, seed=1, echo=True)
    assert echoed.choices[0].text == "To be" + written(server, "To be", 4)
    read = client.completions.create(model=MODEL, prompt="To be", max_tokens=0, echo=True, logprobs=0)
    (choice,) = read.choices
    assert choice.text == "To be" and choice.finish_reason == "length" and read.usage.completion_tokens == 0
    assert len(choice.logprobs.token_logprobs) == 5


def test_stop_strings_end_the_text(server: Server, client: openai.OpenAI) -> None:
    text = written(server, "To be", 30)
    stop = text[10:13]
    answer = client.completions.create(model=MODEL, prompt="To be", max_tokens=30, seed=1, stop=["never there", stop])
    assert answer.choices[0].text == text[: text.index(stop)] and answer.choices[0].finish_reason == "stop"
    told = client.completions.create(model=MODEL, prompt="To be", max_tokens=30, seed=1, stop=stop, logprobs=0)
    assert "".join(told.choices[0].logprobs.tokens) == told.choices[0].text  # not those of the stop string
    parts = streamed(client, prompt="To be", max_tokens=30, seed=1, stop=stop)
    assert "".join(part.choices[0].text for part in parts) == text[: text.index(stop)]


def test_context_length_errors_and_shifts(server: Server, client: openai.OpenAI) -> None:
    full = client.completions.create(model=MODEL, prompt="a" * CONTEXT, max_tokens=9, seed=1)
    assert len(full.choices[0].text) == 1 and full.choices[0].finish_reason == "length"
    cut = client.completions.create(model=MODEL, prompt="a" * (CONTEXT - 4), max_tokens=50, seed=1)
    assert len(cut.choices[0].text) == 5 and cut.choices[0].finish_reason == "length"
    body = {"context_shift": True}
    on = client.completions.create(model=MODEL, prompt="a" * (CONTEXT - 4), max_tokens=50, seed=1, extra_body=body)
    assert len(on.choices[0].text) == 50 and on.choices[0].text.startswith(cut.choices[0].text)


def test_head_mask_equals_generate(server: Server, client: openai.OpenAI) -> None:
    mask = [[1.0] * 4, [0.0] * 4, [1.0, 0.5, 1.0, 1.0]]
    answer = client.completions.create(
        model=MODEL, prompt="To be", max_tokens=20, seed=1, extra_body={"head_mask": mask}
    )
    loaded = server.services.served.models[MODEL]
    steps = loaded.generate("To be", 20, seed=1, head_mask=torch.tensor(mask))
    assert answer.choices[0].text == "".join(step.text for step in steps) != written(server, "To be", 20)


def test_models_are_listed(server: Server, client: openai.OpenAI) -> None:
    listed = client.models.list().data
    assert [model.id for model in listed][:2] == ["tiny", "other"]
    assert listed[0].object == "model" and listed[0].n_layer == 3 and listed[0].context_length == CONTEXT
    assert listed[0].model_type == "gpt2" and listed[0].n_kv_head == listed[0].n_head == 4
    assert client.models.retrieve("other").id == "other"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")


def test_concurrent_requests_equal_single_ones(server: Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(seed: int) -> str:
        body = {"model": MODEL, "prompt": "To be", "max_tokens": 30, "seed": seed}
        return str(httpx.post(f"{server.url}/v1/completions", json=body, timeout=60).json()["choices"][0]["text"])

    with ThreadPoolExecutor(24) as threads:
        texts = list(threads.map(ask, range(48)))
    assert texts == [written(server, "To be", 30, seed=seed) for seed in range(48)]
