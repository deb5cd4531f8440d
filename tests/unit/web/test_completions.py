"""Answers of /v1/completions and of chats: every token's log-probability, and where its text is in the answer."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch

from helpers.engine import finish
from helpers.models import scripted_model, tiny_bpe, tiny_model
from helpers.oracles.pipelines import PIPELINES, llama2
from model import InputError, LoadedModel
from model.serving.engine import Engine
from model.serving.sequence import TextSequence
from model.tokenizer import BPETokenizer, Tokenizer, from_spec
from web.api.chat import ENDS_OF_TURN, ChatCompletion
from web.api.completions import Completion
from web.api.embeddings import Embeddings
from web.api.schema import ChatRequest, CompletionRequest, EmbeddingsRequest
from web.settings import Limits

PROMPT = "Hello world — é🙂"
BYTES = tiny_bpe(257)
VOCABULARIES = {name: from_spec(make()) for name, make in PIPELINES.items()} | {"bytes": BYTES}


def answers(completion: Completion, *, in_pieces: bool = False) -> list[list[dict[str, Any]]]:
    """The parts of each text: one, or one after every step of the engine."""
    events: list[Any] = []
    engine = Engine(completion.loaded)
    for i, request in enumerate(completion.requests):
        engine.submit(TextSequence(request, completion.loaded, partial(lambda i, e: events.append((i, e)), i)))
    parts: list[list[dict[str, Any]]] = [[] for _ in completion.choices]
    while engine.active or engine.queue:
        engine.step() if in_pieces else finish(engine)
        completion.take(events)
        events.clear()
        for choice in completion.choices:
            if choice.has_unsent or not in_pieces:
                parts[choice.index].append(choice.part())
    return parts


def ask(loaded: LoadedModel, prompt: Any, **body: Any) -> dict[str, Any]:
    asked = CompletionRequest(**{"prompt": prompt, "temperature": 0} | body)
    ((part,),) = answers(Completion(loaded, asked, Limits()))
    return part


def writer(tokenizer: Tokenizer, prompt: Sequence[int], written: Sequence[int], **changes: Any) -> LoadedModel:
    """A model that writes these tokens after this prompt, but for the last token."""
    return scripted_model([*prompt[1:], *written], tokenizer, **changes)


def check_offsets(tokenizer: Tokenizer, part: dict[str, Any]) -> None:
    """Each token's text is where its offset says; the parts of a character share its place."""
    told, text = part["logprobs"], part["text"]
    assert told["text_offset"] == sorted(told["text_offset"])
    for token, offset in zip(told["tokens"], told["text_offset"], strict=True):
        is_before = offset == 0 and token in tokenizer.special_tokens  # such as <s>, which is not shown
        assert token.startswith("bytes:") or is_before or text[offset:].startswith(token), (token, offset, text)


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_text_at_an_offset_begins_with_the_token(name: str) -> None:
    tokenizer = VOCABULARIES[name]
    prompt, written = tokenizer.encode_prompt(PROMPT), tokenizer.encode(" and é 日本 🙂 more")
    loaded = writer(tokenizer, prompt, written)
    body: dict[str, Any] = {"max_tokens": len(written), "echo": True, "logprobs": 2}
    part = ask(loaded, prompt, **body)
    assert part["text"] == tokenizer.decode(prompt) + b"".join(map(tokenizer.token_bytes, written)).decode()
    assert len(part["logprobs"]["tokens"]) == len(prompt) + len(written)
    check_offsets(tokenizer, part)
    check_offsets(tokenizer, ask(loaded, prompt, **body | {"echo": False}))


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("stop", ["more", "日本", "本 🙂 m", "é "])
def test_all_tokens_before_a_stop_string_are_told(name: str, stop: str) -> None:
    tokenizer = VOCABULARIES[name]
    prompt, written = tokenizer.encode_prompt(PROMPT), tokenizer.encode(" and é 日本 🙂 more")
    loaded = writer(tokenizer, prompt, written)
    body: dict[str, Any] = {"max_tokens": len(written), "stop": stop, "logprobs": 0}
    echoed, plain = ask(loaded, prompt, echo=True, **body), ask(loaded, prompt, **body)
    assert plain["finish_reason"] == "stop" and echoed["text"] == tokenizer.decode(prompt) + plain["text"]
    assert echoed["logprobs"]["tokens"][len(prompt) :] == plain["logprobs"]["tokens"]
    n_bytes = [len(b"".join(map(tokenizer.token_bytes, written[:n]))) for n in range(len(written))]
    assert len(plain["logprobs"]["tokens"]) == sum(n < len(plain["text"].encode()) for n in n_bytes)
    check_offsets(tokenizer, echoed)


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("stop", [None, "本 🙂 m", "no"])
def test_streamed_parts_join_to_the_whole_answer(name: str, stop: str | None) -> None:
    tokenizer = VOCABULARIES[name]
    prompt, written = tokenizer.encode_prompt(PROMPT), tokenizer.encode(" and é 日本 🙂 more")
    loaded = writer(tokenizer, prompt, written)
    body: dict[str, Any] = {"max_tokens": len(written), "echo": True, "logprobs": 1, "n": 2, "stop": stop}
    asked = CompletionRequest(prompt=prompt, temperature=0, **body)
    wholes = answers(Completion(loaded, asked, Limits()))
    streams = answers(Completion(loaded, asked, Limits()), in_pieces=True)
    for (whole,), parts in zip(wholes, streams, strict=True):
        assert "".join(part["text"] for part in parts) == whole["text"] and len(parts) > 3
        for column, values in whole["logprobs"].items():
            assert [value for part in parts for value in part["logprobs"][column]] == values
        sent = 0
        for part in parts:  # a token is sent with its text, not before
            sent += len(part["text"])
            assert all(offset <= sent for offset in part["logprobs"]["text_offset"])


def test_broken_characters_take_their_places() -> None:
    """U+FFFD belongs to the token that began the character, also where the prompt ends within one."""
    half, (a,) = BYTES.encode("🙂")[:2], BYTES.encode("a")
    prompt, written = [a, *half], [half[0], a, half[0]]
    part = ask(writer(BYTES, prompt, written), prompt, max_tokens=3, echo=True, logprobs=0)
    assert part["text"] == "a\ufffd\ufffda\ufffd"
    assert part["logprobs"]["text_offset"] == [0, 1, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["llama 3", "llama 2", "qwen 2"])
@pytest.mark.parametrize("stop", [None, "no", " b"])
def test_special_tokens_are_left_out_or_shown(name: str, stop: str | None) -> None:
    tokenizer = VOCABULARIES[name]
    special, token_id = list(tokenizer.special_tokens.items())[-1]
    prompt = tokenizer.encode_prompt("Hi")
    a, b = tokenizer.encode("xa")[-1:], tokenizer.encode("x b")[-1:]
    written = [*a, token_id, *b, token_id, *a]
    loaded = writer(tokenizer, prompt, written)
    body: dict[str, Any] = {"max_tokens": 5, "logprobs": 0, "stop": stop}
    skipped, shown = ask(loaded, prompt, **body), ask(loaded, prompt, skip_special_tokens=False, **body)
    assert ask(loaded, prompt, skip_special_tokens=True, **body) == skipped
    texts = [a_text := tokenizer.token_bytes(a[0]).decode(), special, tokenizer.token_bytes(b[0]).decode()]
    is_cut = stop is not None and stop in texts[2]
    assert shown["text"] == a_text + special + ("" if is_cut else texts[2] + special + a_text)
    assert skipped["text"] == shown["text"].replace(special, "")
    told = shown["logprobs"]["tokens"]
    assert skipped["logprobs"]["tokens"] == [token if token != special else "" for token in told]
    assert skipped["logprobs"]["token_logprobs"] == shown["logprobs"]["token_logprobs"]
    assert len(told) == (2 if is_cut else 5)
    for part in (skipped, shown):
        check_offsets(tokenizer, part)


def test_special_tokens_that_end_a_text_are_never_part_of_it() -> None:
    tokenizer = VOCABULARIES["llama 3"]
    end, (a,) = tokenizer.special_tokens["<|eot_id|>"], tokenizer.encode("a")
    for given, eos in (({"stop_token_ids": [end]}, None), ({}, end)):
        loaded = writer(tokenizer, [a], [a, end, a], eos_token_id=eos)
        part = ask(loaded, [a], max_tokens=3, logprobs=0, skip_special_tokens=False, **given)
        assert (part["text"], part["logprobs"]["tokens"], part["finish_reason"]) == ("a", ["a"], "stop")


def test_added_tokens_that_are_not_special_are_text() -> None:
    spec = BYTES.spec | {
        "added_tokens": [*BYTES.spec["added_tokens"], {"id": 257, "content": "<note>", "special": False}]
    }
    tokenizer = BPETokenizer(spec)
    part = ask(writer(tokenizer, [40], [257, 0]), [40], max_tokens=2, logprobs=0)
    assert part["text"] == "<note>" and part["logprobs"]["tokens"] == ["<note>", ""]


def alike() -> tuple[LoadedModel, int, int]:
    """A model that writes a byte token that reads like a likelier character, and the ids of both."""
    tokenizer = from_spec(llama2())
    vocabulary = tokenizer.spec["model"]["vocab"]
    letter, byte = vocabulary["A"], vocabulary["<0x41>"]
    loaded = scripted_model([byte], tokenizer)
    loaded.gpt.lm_head.weight[letter, 0] = 100.5
    return loaded, letter, byte


def test_a_token_keeps_its_own_probability_beside_one_that_reads_alike() -> None:
    loaded, letter, byte = alike()
    prompt, bias = [letter, letter], {str(letter): -100, str(byte): 100}
    expected = loaded.trace([letter]).logits[0].log_softmax(-1)
    part = ask(loaded, prompt[:1], max_tokens=1, logprobs=3, logit_bias=bias)
    assert part["logprobs"]["token_logprobs"] == pytest.approx([float(expected[byte])], abs=1e-4)
    (tops,) = part["logprobs"]["top_logprobs"]
    assert tops["A"] == pytest.approx(float(expected[byte]), abs=1e-4)
    (other,) = ask(loaded, prompt[:1], max_tokens=1, logprobs=3)["logprobs"]["top_logprobs"]
    assert other["A"] == pytest.approx(float(expected[letter]), abs=1e-4) != tops["A"]


def test_chats_list_every_alternative() -> None:
    loaded, letter, byte = alike()
    loaded.chat_template = "x"
    body = {"messages": [{"role": "user", "content": "x"}], "logprobs": True, "top_logprobs": 5, "max_tokens": 1}
    asked = ChatRequest(**body, temperature=0, logit_bias={str(letter): -100, str(byte): 100})
    completion = ChatCompletion(loaded, asked, Limits(), "<s>")
    ((part,),) = answers(completion)
    (told,) = part["logprobs"]["content"]
    expected = loaded.trace(list(completion.requests[0].prompt)).logits[-1].log_softmax(-1)
    assert told["logprob"] == pytest.approx(float(expected[byte]), abs=1e-4) and told["bytes"] == [0x41]
    values, ids = expected.topk(5)
    found = [(each["token"], each["logprob"], bytes(each["bytes"])) for each in told["top_logprobs"]]
    assert [each[1] for each in found] == pytest.approx(values.tolist(), abs=1e-4) and len(found) == 5
    assert [each[2] for each in found[:2]] == [b"A", b"A"] and {letter, byte} == set(ids[:2].tolist())


@pytest.mark.parametrize(("max_stop", "n_stop"), [(16, 14), (16, 16), (2, 2), (2, 0), (0, 0)])
def test_own_stop_strings_do_not_count_towards_the_limit(max_stop: int, n_stop: int) -> None:
    stop = [f"stop {i}" for i in range(n_stop)]
    asked = ChatRequest(messages=[{"role": "user", "content": "x"}], stop=stop)
    (request,) = ChatCompletion(tiny_model(), asked, Limits(max_stop=max_stop), "a").requests
    assert request.stop == (*stop, *ENDS_OF_TURN)


def test_the_memory_of_long_tokens_is_counted() -> None:
    long = {"id": 257, "content": "Z" * 1000, "special": False}
    tokenizer = BPETokenizer(BYTES.spec | {"added_tokens": [*BYTES.spec["added_tokens"], long]})
    torch.manual_seed(0)
    counted = {}
    for name, each in (("usual", BYTES), ("long", tokenizer)):
        asked = CompletionRequest(prompt=[40], max_tokens=10)
        counted[name] = Completion(tiny_model(tokenizer=each), asked, Limits()).most_bytes
    assert counted["long"] >= 11 * 3000 > counted["usual"]


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ("", "The input is empty: the model needs at least one token to start from."),
        ([], "input is an empty list; at least one input is needed."),
        ([[1]] * 2_000, "input has 2,000 inputs; at most"),
        ("a" * 100_000, "The input has 100,000 characters; at most"),
        ([1] * 1_000, "The input has 1000 tokens, but this model reads at most 16 at once."),
        (["a", "prompt\u00e9"], "has never seen"),
        ([9_999], "Token ids must be integers"),
    ],
    ids=range(7),
)
def test_errors_of_embeddings_call_a_text_an_input(sent: Any, message: str) -> None:
    asked = EmbeddingsRequest.model_construct(input=sent)
    with pytest.raises(InputError, match=message) as raised:
        Embeddings(tiny_model(context_length=16), asked, Limits())
    assert raised.value.field == "input" and "The prompt" not in str(raised.value)
