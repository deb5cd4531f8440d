"""What a question declares that it computes, compared with what it does compute, counted on a tiny model."""

import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from helpers.models import prompt_ids, tiny_model
from model import LoadedModel
from model.attention import MultiHeadAttention
from model.gpt import GPT, Block
from model.lens.progress import ignore
from web.api.lens import BODIES
from web.ask.disk_cache import DiskCache
from web.ask.inquiry import Ask, Inquiry
from web.ask.question import Question
from web.ask.table import QUESTIONS
from web.ask.timing import speed
from web.ask.timing.speed import LOGIT_ROWS, Speeds
from web.ask.timing.work import ATTENTION_PART, Work
from web.prometheus import Metrics
from web.settings import Limits

BY_NAME = {question.name: question for question in QUESTIONS}
LENGTH, VOCABULARY = 24, 65


def changed(ids: list[int], *positions: int) -> list[int]:
    return [(token + (at in positions)) % VOCABULARY for at, token in enumerate(ids)]


def loaded_model(**sizes: int) -> LoadedModel:
    return tiny_model(**{"n_layer": 4, "n_head": 4, "n_embd": 32, "context_length": 128} | sizes)


def inquiry_of(loaded: LoadedModel, question: Question, body: dict[str, Any]) -> Inquiry:
    checked = BODIES[question.name].model_validate(body)
    limits, given = Limits(), {name: getattr(checked, name) for name in type(checked).model_fields}
    return question.parse(Ask(limits, Metrics()), limits, {"model": loaded}, given)


def rows(x: Tensor) -> int:
    return x.numel() // x.shape[-1]


@dataclass
class Counter:
    """What a model computed; ``calls`` and ``tokens`` count a layer's attention and its MLP by their share of it."""

    calls: float = 0
    tokens: float = 0
    weights: float = 0
    logits: float = 0

    def count_layer(self, part: float) -> Any:
        def hook(_module: nn.Module, given: tuple[Tensor], _output: Tensor) -> None:
            self.calls += part
            self.tokens += part * rows(given[0])

        return hook

    def count_logits(self, _module: nn.Module, given: tuple[Tensor], _output: Tensor) -> None:
        self.logits += rows(given[0])


@contextmanager
def counting(gpt: GPT) -> Iterator[Counter]:
    counter, whole = Counter(), MultiHeadAttention.attention_weights

    def attention_weights(*arguments: Any) -> Tensor:
        found = whole(*arguments)
        counter.weights += found.numel()
        return found

    hooks = [gpt.lm_head.register_forward_hook(counter.count_logits)]
    for block in (cast(Block, block) for block in gpt.h):
        hooks.append(block.attn.c_attn.register_forward_hook(counter.count_layer(ATTENTION_PART)))
        hooks.append(block.mlp.c_fc.register_forward_hook(counter.count_layer(1 - ATTENTION_PART)))
    with patch.object(MultiHeadAttention, "attention_weights", attention_weights):
        yield counter
    for hook in hooks:
        hook.remove()


def declared_and_counted(name: str, body: dict[str, Any], **sizes: int) -> tuple[Work, Counter]:
    loaded, question = loaded_model(**sizes), BY_NAME[name]
    inquiry = inquiry_of(loaded, question, body)
    declared = question.work(inquiry)
    with counting(loaded.gpt) as counter, torch.inference_mode():
        question.compute(inquiry, ignore)
    return declared, counter


IDS = prompt_ids(LENGTH, VOCABULARY, 0)
TEXT = {"tokens": IDS}
PAIR = TEXT | {"corrupted_tokens": changed(IDS, 9), "answer": 1, "wrong": 2}
HEAD = {"layer": 2, "head": 1}
ROWS = [{"prompt": IDS[:n], "corrupted": changed(IDS[:n], 3), "answer": 1, "wrong": 2} for n in (8, 12, 20)]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("knockout", TEXT),
    ("knockout", TEXT | {"method": "mean", "reference": ["so it is", "and so it was"]}),
    ("knockout", TEXT | {"method": "resample", "reference": ["and so it was, and so it will be again and again"]}),
    ("removal", TEXT | {"heads": [[1, 0], [1, 2], [3, 1]]}),
    ("attribution", TEXT),
    ("head", TEXT | HEAD),
    ("head", TEXT | HEAD | {"position": 5}),
    ("logit-lens", TEXT),
    ("ledger", TEXT | HEAD),
    ("patch", PAIR),
    ("patch", PAIR | {"grid": False, "heads": [[1, 0]]}),
    ("patch", PAIR | {"site": "q"}),
    ("patch", PAIR | {"site": "q", "positions": "all"}),
    ("patch", PAIR | {"site": "mlp_out"}),
    ("patch", PAIR | {"site": "mlp_post", "neurons": [[0, 1], [0, 2], [3, 5]]}),
    ("patch", PAIR | {"site": "z", "method": "both"}),
    ("paths", TEXT | HEAD),
    ("paths", PAIR | HEAD),
    ("role-paths", HEAD),
    ("passages", {"text": "so it is " * 100}),
    ("neuron", {"text": "so it is " * 100, "layer": 2, "neuron": 3}),
    ("difference", TEXT | {"other_tokens": changed(IDS, 7)}),
    ("text-roles", TEXT),
    ("roles", {}),
    *((f"{name}/prompts", {"prompts": ROWS}) for name in ("knockout", "attribution", "patch", "text-roles")),
    ("difference/prompts", {"prompts": ROWS}),
    ("head/prompts", {"prompts": ROWS} | HEAD),
    ("paths/prompts", {"prompts": ROWS} | HEAD),
    ("removal/prompts", {"prompts": ROWS, "heads": [[1, 0]], "method": "mean"}),
]


@pytest.mark.parametrize(("name", "body"), CASES, ids=[name for name, _ in CASES])
def test_the_declared_work_is_what_is_done(name: str, body: dict[str, Any]) -> None:
    declared, counted = declared_and_counted(name, body)
    assert declared.tokens == pytest.approx(counted.tokens, rel=0.25)
    assert declared.calls == pytest.approx(counted.calls, rel=0.35)
    if name != "logit-lens":  # which does more with all logits than compute them
        assert declared.logits == pytest.approx(counted.logits, abs=3)
    assert declared.weights > 0.75 * counted.weights - 1_000  # some questions compare them, which counts as well


@pytest.mark.parametrize("sizes", [{"n_layer": 2}, {"n_layer": 6, "n_head": 8}, {"n_head": 2, "n_embd": 16}])
@pytest.mark.parametrize("length", [2, 7, 120])
def test_the_work_of_a_knockout_is_exact(sizes: dict[str, int], length: int) -> None:
    declared, counted = declared_and_counted("knockout", {"tokens": prompt_ids(length, VOCABULARY)}, **sizes)
    for name in ("calls", "tokens", "logits"):
        assert getattr(declared, name) == pytest.approx(getattr(counted, name)), name


def test_the_cost_of_a_circuit_is_of_the_right_order() -> None:
    declared, counted = declared_and_counted("circuit", {"prompts": ROWS[:1]})
    assert counted.tokens / 10 < declared.tokens < counted.tokens * 10


@pytest.mark.parametrize(
    ("name", "body", "more"),
    [
        ("knockout", TEXT, {"tokens": IDS * 2}),
        ("patch", PAIR | {"site": "z", "positions": "all"}, {"positions": "each"}),
        ("patch", PAIR | {"site": "z", "method": "attribution"}, {"method": "both"}),
        ("head", TEXT | HEAD, {"layer": 0}),
        ("paths", TEXT | HEAD, {"layer": 3}),
        ("circuit", {"prompts": ROWS[:1]}, {"prompts": ROWS}),
        ("passages", {"text": "so it is " * 10}, {"text": "so it is " * 20}),
        ("text-roles/prompts", {"prompts": ROWS[:1]}, {"prompts": ROWS}),
        ("token-circuit", HEAD | {"token": 3}, {"token": None}),
    ],
)
def test_more_takes_longer(name: str, body: dict[str, Any], more: dict[str, Any]) -> None:
    loaded, question = loaded_model(), BY_NAME[name]
    less, longer = (question.work(inquiry_of(loaded, question, each)) for each in (body, body | more))
    assert all(a <= b for a, b in zip(less.numbers(), longer.numbers(), strict=True)) and less != longer


def test_a_larger_model_takes_longer_to_compose() -> None:
    question = BY_NAME["composition"]
    found = [question.work(inquiry_of(loaded_model(**sizes), question, {})).tokens for sizes in ({}, {"n_layer": 8})]
    assert found[1] / found[0] == pytest.approx(8 * 7 / (4 * 3))


def test_a_served_precision_is_compared_in_another_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, question = loaded_model(), BY_NAME["ledger"]
    monkeypatch.setattr(Speeds, "of", lambda _speeds, _loaded: Work(tokens=1.0))
    inquiry = inquiry_of(loaded, question, TEXT | HEAD)
    alone = question.seconds(inquiry)
    loaded.gpt.to(torch.bfloat16)
    assert question.seconds(inquiry) - alone == loaded.config.n_layer * LENGTH


def test_roles_on_disk_take_no_time(tmp_path: Path) -> None:
    loaded, question = loaded_model(), BY_NAME["roles"]
    loaded.sha256 = "0" * 64
    inquiry = inquiry_of(loaded, question, {})
    inquiry.ask.disk = DiskCache(tmp_path)
    assert question.work(inquiry).tokens > 0
    with torch.inference_mode():
        question.compute(inquiry, ignore)
    assert question.work(inquiry) == Work()


def test_the_speed_is_measured_once_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock on which everything takes a millisecond."""
    speeds, ticks = Speeds(), itertools.count()
    for clock in ("perf_counter", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: next(ticks) / 1000)
    found = speeds.of(loaded_model())
    assert speeds.of(loaded_model()) is found and len(speeds.known.entries) == 1
    assert all(each >= 0 for each in found.numbers()) and found.tokens > 0
    assert found.logits == pytest.approx(0.001 / LOGIT_ROWS)
    assert speeds.of(loaded_model(n_layer=2)) is not found
    monkeypatch.setattr(speed, "MAX_VOCABULARY", 13)
    assert speeds.of(loaded_model(n_layer=3)).logits == pytest.approx(5 * found.logits)


@pytest.mark.skipif(sys.platform != "linux", reason="questions have a low priority only on Linux")
def test_waits_for_a_busy_processor_do_not_make_a_model_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    minutes = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: 60.0 * next(minutes))
    assert max(Speeds().of(loaded_model()).numbers()) < 0.1
