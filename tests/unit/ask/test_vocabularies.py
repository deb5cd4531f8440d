"""Tokens named by their text, and models whose vocabularies cut a text differently."""

import json
from functools import cache
from typing import Any

import pytest
import torch

from helpers.models import tiny_gpt
from helpers.oracles.pipelines import PIPELINES
from model import InputError, LoadedModel
from model.errors import NotOneToken
from model.lens.progress import ignore
from model.tokenizer import CharTokenizer, Tokenizer, from_spec, token_text
from web.ask.inquiry import to_json
from web.ask.service import AnswerService
from web.ask.table import QUESTIONS
from web.prometheus import Metrics
from web.settings import Limits

TEXT, OTHER = "Tom ran. Hi! said a big dog.", "Tom sat. Hi! said a big cat."


@cache
def tokenizer_of(pipeline: str) -> Tokenizer:
    return from_spec(PIPELINES[pipeline]())


def model_with(pipeline: str, seed: int = 0) -> LoadedModel:
    tokenizer = tokenizer_of(pipeline)
    return LoadedModel(pipeline, tiny_gpt(seed, vocab_size=tokenizer.vocab_size), tokenizer)


def answered(name: str, models: dict[str, LoadedModel], **given: Any) -> dict[str, Any]:
    question = next(each for each in QUESTIONS if each.name == name)
    with torch.inference_mode():
        inquiry = question.parse(Limits(), models, given)
        return question.compute(AnswerService(Limits(), Metrics()), inquiry, ignore, [])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_token_named_by_its_text_has_exactly_these_bytes(pipeline: str) -> None:
    tokenizer = tokenizer_of(pipeline)
    for token_id in range(tokenizer.vocab_size):
        raw = tokenizer.token_bytes(token_id)
        if raw.isascii():
            assert tokenizer.token_bytes(tokenizer.token_of(raw.decode())) == raw


def test_the_token_of_a_text_is_the_one_that_texts_are_encoded_into() -> None:
    llama, pythia = tokenizer_of("llama 2"), tokenizer_of("pythia")
    vocabulary = llama.spec["model"]["vocab"]
    assert vocabulary["a"] != vocabulary["▁a"] != vocabulary["<0x61>"]
    for text in ("a", "▁a", "▁x", "é", "A"):
        assert llama.token_of(text.replace("▁", " ")) == vocabulary[text]
    assert llama.token_of("</s>") == vocabulary["</s>"]
    assert [pythia.token_of("   ")] == pythia.encode("x   x")[1:2]  # an added token, and one of the vocabulary


def test_a_text_that_is_no_token_names_those_that_it_takes() -> None:
    llama = tokenizer_of("llama 2")
    with pytest.raises(NotOneToken, match="found 3: 'q', 'q', ' x'"):
        llama.token_of("qq x")
    with pytest.raises(NotOneToken, match="found none"):
        llama.token_of("")
    with pytest.raises(InputError, match="wrong must be a single token, found 2"):
        model_with("llama 2").patch(TEXT, TEXT, answer="a", wrong="qq")
    unknown = CharTokenizer({"a": 0}, {"[end]": 1})
    assert unknown.token_of("[end]") == 1
    with pytest.raises(InputError, match="has never seen"):
        unknown.token_of("b")


def test_every_option_that_is_a_token_takes_its_text() -> None:
    loaded = model_with("llama 2")
    a, said = (loaded.tokenizer.spec["model"]["vocab"][token] for token in ("a", "▁x"))
    by_id, by_text = {"token": a, "against": said}, {"token": "a", "against": " x"}
    expected = loaded.attribution(TEXT, **by_id).heads
    assert torch.equal(loaded.attribution(TEXT, **by_text).heads, expected)
    models = {"model": loaded}
    for asked in (by_id, by_text):
        assert answered("attribution", models, prompt=TEXT, **asked)["against"] == {"id": said, "text": " x"}
    for name in ("head", "ledger"):
        found = answered(name, models, prompt=TEXT, layer=1, head=1, token="a")
        assert found["token"] == {"id": a, "text": token_text(loaded.tokenizer, a)}


def test_each_model_reads_a_text_with_its_own_vocabulary() -> None:
    one, other = model_with("llama 2"), model_with("llama 3", seed=1)
    read, second = one.parse_prompt(TEXT), other.parse_prompt(TEXT)
    expected = one.difference(TEXT, other_model=other)
    assert 0 < float(expected.heads.min()) and expected.pairs[-1] == (len(read) - 1, len(second) - 1)
    models = {"model": one, "other_model": other}
    for given in ({"prompt": TEXT}, {"prompt": TEXT, "other": TEXT}, {"prompt": TEXT, "other_tokens": second}):
        found = answered("difference", models, **given)
        assert [token["id"] for token in found["other_tokens"]] == second
        assert torch.equal(torch.as_tensor(found["heads"]), expected.heads)
    # The same weights with their vocabulary in another order attend as before.
    gpt, n = one.gpt, one.tokenizer.vocab_size
    shuffled = LoadedModel("shuffled", tiny_gpt(vocab_size=n), Shuffled(one.tokenizer))
    shuffled.gpt.load_state_dict(gpt.state_dict())
    shuffled.gpt.wte.weight.data = gpt.wte.weight.data.flip(0)
    assert float(one.difference(TEXT, other_model=shuffled).heads.max()) < 1e-6


def test_ids_are_never_read_with_another_vocabulary() -> None:
    one, other = model_with("llama 2"), model_with("llama 3", seed=1)
    ids, models = one.parse_prompt(TEXT), {"model": one, "other_model": other}
    for ask in (
        lambda: one.difference(ids, other_model=other),
        lambda: one.difference(one.trace(TEXT), other_model=other),
        lambda: one.difference(TEXT, one.trace(TEXT), other_model=other),
        lambda: other.knockout(one.trace(TEXT)),
        lambda: answered("difference", models, tokens=ids),
        lambda: answered("difference/prompts", models, prompts=[{"prompt": ids}]),
    ):
        with pytest.raises(InputError, match="is two tokens in the vocabularies"):
            ask()
    assert one.difference(ids, other_model=model_with("llama 2", seed=1)).heads.min() > 0


def test_many_prompts_are_read_with_both_vocabularies() -> None:
    one, other = model_with("llama 2"), model_with("llama 3", seed=1)
    rows = [{"prompt": TEXT, "corrupted": OTHER}, {"prompt": OTHER}, {"prompt": TEXT, "corrupted": TEXT}]
    expected = [one.difference(row["prompt"], row.get("corrupted"), other).heads for row in rows]
    found = answered("difference/prompts", {"model": one, "other_model": other}, prompts=rows)
    sent = json.loads(to_json(found))["rows"]
    in_python = one.over_prompts("difference", rows, other_model=other)
    for index, heads in enumerate(expected):
        assert torch.equal(torch.as_tensor(sent[index]["heads"]), heads)
        assert torch.equal(torch.as_tensor(in_python.rows[index]["heads"]), heads)


class Shuffled(Tokenizer):
    """A vocabulary in the opposite order."""

    kind = "bpe"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.own, self.spec, self.special_tokens = tokenizer, tokenizer.spec, {}
        self.begins_with = tuple(map(self.turned, tokenizer.begins_with))

    def turned(self, token_id: int) -> int:
        return self.own.vocab_size - 1 - token_id

    @property
    def vocab_size(self) -> int:
        return self.own.vocab_size

    def encode(self, text: str) -> list[int]:
        return list(map(self.turned, self.own.encode(text)))

    def token_bytes(self, token_id: int) -> bytes:
        return self.own.token_bytes(self.turned(token_id))

    def text_bytes(self, ids: Any) -> list[bytes]:
        return self.own.text_bytes(list(map(self.turned, ids)))
