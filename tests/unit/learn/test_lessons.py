"""Learn's computations, without a server."""

import gc
import weakref
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

import model
from helpers.models import tiny_model
from helpers.page_types.learn import FILE, learn_types
from model.lens.head_roles import clear_text_roles
from web.learn.induction import InductionRequest, choose_model, induction
from web.learn.lessons import LESSONS
from web.learn.tokenized_sentence import WholeModelRequest, tokenize_sentence
from web.learn.whole_model import starting_head
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots
from web.settings import CHECKPOINTS, Settings

SENTENCE = "The little dog ran to the garden and found a red ball"


def serve_tiny(name: str) -> ServedModels:
    served = ServedModels(Settings(checkpoints=()))
    loaded = tiny_model()
    loaded.name = name
    served.shared[name] = loaded
    served.ready.set_result(None)
    return served


def test_another_model_for_rung_11_is_named_with_its_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = Snapshots(serve_tiny("large"))
    snapshots.served.shared["small"] = tiny_model(vocab_size=7)
    monkeypatch.setattr(snapshots, "formed_head", {"large": None, "small": (1, 0)}.get)
    name, note = choose_model(snapshots, "large")
    assert name == "small"
    assert note == "No steps of large’s training were kept, so this is small, with a smaller vocabulary: 7 tokens."


def test_the_lesson_of_a_whole_gpt_2_refuses_other_families_by_name() -> None:
    """Also those whose positions are learned."""
    served = serve_tiny("neo")
    neo = tiny_model(qkv_bias=False, scale_attn_weights=False, windows=(None, 3))
    served.shared["neo"] = neo
    with pytest.raises(model.InputError, match="is a model of another family, gpt_neo"):
        tokenize_sentence(served, WholeModelRequest(sentence=SENTENCE, model="neo"))


def test_the_head_that_feeds_another_is_found_by_muting() -> None:
    """Whatever the composition of the weights says: the induction head loses most without the head that feeds it."""
    served = serve_tiny("tiny")
    served.shared["tiny"] = tiny_model(n_layer=3, n_head=4, n_embd=32)
    found: dict[str, Any] = induction(Snapshots(served), InductionRequest(sentence=SENTENCE, model="tiny"))
    while_muted = {tuple(row["head"]): row["without"] for row in found["feeding"]}
    assert found["fed_by"] == min(while_muted, key=lambda head: while_muted[head])
    assert found["fed_by"] != max(found["feeding"], key=lambda row: row["composition"])["head"]


def test_a_model_that_is_no_longer_served_is_freed() -> None:
    served = serve_tiny("forgotten")
    for lesson in ("self-attention", "trainable-weights", "many-heads", "whole-model", "cell", "number"):
        stage = {"stage": "x"} if lesson == "number" else {}
        request = LESSONS[lesson].request.model_validate({"sentence": "To be", "model": "forgotten", **stage})
        assert LESSONS[lesson].answer(Snapshots(served), request)
    of_model = weakref.ref(served.shared["forgotten"])
    weights = weakref.ref(served.shared["forgotten"].gpt)
    assert of_model() and weights()
    served.shared.clear()
    gc.collect()
    assert of_model() is None and weights() is None


def test_the_tokenizer_of_a_model_cuts_a_sentence_as_tokenizers_does() -> None:
    reference = Tokenizer.from_file(str(CHECKPOINTS / "stories-bpe" / "tokenizer.json"))
    served = serve_tiny("characters")
    request = LESSONS["tokens"].request.model_validate({"sentence": SENTENCE})
    assert LESSONS["tokens"].answer(Snapshots(served), request)["model"] is None
    served.shared["stories-bpe"] = model.load(CHECKPOINTS / "stories-bpe", device="cpu")
    shown: Any = LESSONS["tokens"].answer(Snapshots(served), request)["model"]
    expected = reference.encode(SENTENCE)
    assert [(token["id"], token["text"]) for token in shown["tokens"]] == list(
        zip(expected.ids, expected.tokens, strict=True)
    )
    assert shown["vocab_size"] == reference.get_vocab_size()
    assert all(len(reference.encode(f" {word}").ids) <= 2 for word in SENTENCE.split())


@pytest.mark.slow
def test_the_page_s_types_are_those_of_the_answers() -> None:
    assert FILE.read_text(encoding="utf-8") == learn_types(), (
        "write them: PYTHONPATH=.:tests python -m helpers.page_types.learn"
    )


def test_uniform_attention_earns_no_role() -> None:
    for T in range(2, 65):
        uniform = torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]
        for ids in (list(range(T)), [i % 3 for i in range(T)], [0] * T):
            assert clear_text_roles(uniform.expand(2, 3, T, T), ids) == [
                [("", score) for _, score in row] for row in clear_text_roles(uniform.expand(2, 3, T, T), ids)
            ]


def test_a_role_needs_three_queries_and_much_more_than_chance() -> None:
    def previous(T: int) -> torch.Tensor:
        attention = torch.eye(T).roll(-1, 1).tril(-1)
        attention[0, 0] = 1
        return attention.expand(1, 1, T, T)

    assert clear_text_roles(previous(12), list(range(12))) == [[("previous_token", 1.0)]]
    assert clear_text_roles(previous(3), [0, 1, 2])[0][0][0] == ""
    # Token 0 comes again twice: a head that looks at what followed it has two queries only.
    ids = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0]
    induction = torch.eye(12).expand(1, 1, 12, 12).clone()
    induction[..., 9, :], induction[..., 11, :] = torch.eye(12)[1], torch.eye(12)[1]
    assert clear_text_roles(induction, ids)[0][0][0] == ""


def test_the_whole_model_opens_on_the_head_with_the_clearest_role() -> None:
    nothing, first, previous = ("", 0.9), ("first_token", 0.95), ("previous_token", 0.6)
    assert starting_head([[nothing, first], [previous, ("induction", 0.5)]]) == (1, 0)
    assert starting_head([[nothing, first]]) == (0, 1)
    assert starting_head([[nothing]]) is None
    served = ServedModels(Settings(checkpoints=("stories-bpe",), device="cpu"))
    served.load()
    shown: Any = LESSONS["whole-model"].answer(Snapshots(served), LESSONS["whole-model"].request(sentence=SENTENCE))
    assert shown["roles"][shown["layer"]][shown["head"]]["role"]
    query = shown["query"]
    row = shown["weights"][query * (query + 1) // 2 :]
    torch.testing.assert_close(torch.tensor(shown["scores"]).softmax(0), torch.tensor(row))
