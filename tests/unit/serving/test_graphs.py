"""The steps that a GPU runs as graphs, run on the CPU without graphs, and on a GPU if there is one."""

import copy
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from helpers.engine import Asked, alone, finish, ids_of
from helpers.models import max_difference, prompt_ids, tiny_model
from model.config import RotaryConfig
from model.serving import graph_reader as graphs
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.graph_reader import GraphReader, GraphReading
from model.serving.reader import Part
from model.serving.sequence import Failure

HALF = torch.bfloat16
ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
LLAMA = {"rotary": RotaryConfig(n_dim=8), "norm": "RMSNorm", "activation_function": "silu", "gated_mlp": True}
FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {},
    "llama": LLAMA | {"n_kv_head": 2, "qkv_bias": False, "attn_proj_bias": False, "mlp_bias": False},
    "qwen3": LLAMA | {"n_kv_head": 1, "qk_norm": True, "head_dim": 12},
    "opt": {"activation_function": "relu"},
    "pythia": {"rotary": RotaryConfig(n_dim=4), "parallel": True, "activation_function": "gelu"},
}


def test_texts_equal_those_written_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of different lengths, which pass from one graph to the next, and slots with nothing to read."""
    monkeypatch.setattr(graphs, "MIN_GRAPH_LENGTH", 8)
    tiny = tiny_model(n_layer=3, context_length=64)
    reader = GraphReader(tiny.gpt, n_slots=6, capture=False)
    engine = Engine(tiny, max_batch=6, reader=reader)
    settings = [{"temperature": 0.0}, {"temperature": 1.0}, {"temperature": 0.0, "frequency_penalty": 2.0}]
    asked = [
        Asked(tiny, prompt_ids(2 + 7 * i, seed=i), 4 + 9 * i, seed=i, settings=settings[i % 3], record=i == 4)
        for i in range(5)
    ]
    engine.submit(asked[0].sequence)
    for _ in range(3):
        engine.step()
    engine.submit(*[each.sequence for each in asked[1:]])
    finish(engine)
    for i, each in enumerate(asked):
        expected = alone(tiny, prompt_ids(2 + 7 * i, seed=i), 4 + 9 * i, seed=i, **settings[i % 3])
        assert each.ids == ids_of(expected)
        assert max(abs(a.logprob - b.logprob) for a, b in zip(each.steps, expected, strict=True)) < 1e-4
    assert set(reader.steps) == {8, 32, 64}


def test_a_full_context_and_head_masks() -> None:
    tiny = tiny_model(context_length=32)
    engine = Engine(tiny, max_batch=2, reader=GraphReader(tiny.gpt, 2, capture=False))
    mask = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    full = Asked(tiny, prompt_ids(20), 40, settings={"temperature": 0})
    masked = Asked(tiny, prompt_ids(5), 10, settings={"temperature": 0}, head_mask=mask)
    engine.submit(full.sequence, masked.sequence)
    finish(engine)
    assert full.ids == ids_of(alone(tiny, prompt_ids(20), 40, temperature=0))
    assert masked.ids == ids_of(alone(tiny, prompt_ids(5), 10, temperature=0, head_mask=mask))


def test_nan_fails_its_own_text() -> None:
    tiny = tiny_model(tie_word_embeddings=False)
    tiny.gpt.wte.weight[9] = torch.nan
    reader = GraphReader(tiny.gpt, 2, capture=False)
    engine = Engine(tiny, max_batch=2, reader=reader)
    bad, good = Asked(tiny, [1, 9], 5), Asked(tiny, [1, 2], 5, settings={"temperature": 0})
    engine.submit(bad.sequence, good.sequence)
    finish(engine)
    assert isinstance(bad.events[-1], Failure) and len(good.steps) == 5


def test_another_gpu_than_the_first_is_left_to_torchs_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    elsewhere: Any = SimpleNamespace(device=torch.device("cuda:1"))
    assert choose_reader(elsewhere, 4) is None


def parts_at(step: int, slots: Iterable[int]) -> list[Part]:
    """A token for each of the ``slots``, each of which began a step after the one before it."""
    return [Part(slot, step - slot, [(7 * step + 3 * slot) % 65], [True]) for slot in slots if slot <= step]


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize("n_slots", [1, 5, 70])
@pytest.mark.parametrize("family", FAMILIES)
def test_our_kernels_compute_what_torchs_do(family: str, n_slots: int) -> None:
    gpt = tiny_model(n_layer=3, n_head=4, n_embd=32, context_length=64, **FAMILIES[family]).gpt.cuda()
    ours, theirs = GraphReader(gpt, n_slots), GraphReader(gpt, n_slots)
    assert ours.fused_step
    theirs.fused_step = None
    for step in range(60):
        parts = parts_at(step, range(n_slots))
        for found, expected in zip(ours.read(parts), theirs.read(parts), strict=True):
            assert isinstance(found, GraphReading) and isinstance(expected, GraphReading)
            assert max_difference(found.logits, expected.logits) < 1e-4
            assert found.summary == pytest.approx(expected.summary, abs=1e-4)


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize("n_slots", [1, 5])
@pytest.mark.parametrize("family", FAMILIES)
def test_our_kernels_round_no_more_than_torchs_in_bfloat16(family: str, n_slots: int) -> None:
    gpt = tiny_model(n_layer=3, n_head=4, n_embd=32, context_length=64, **FAMILIES[family]).gpt.cuda()
    exact, ours, theirs = (GraphReader(copy.deepcopy(gpt).to(dtype), n_slots) for dtype in (torch.float32, HALF, HALF))
    theirs.fused_step = None
    errors = torch.zeros(2)
    for step in range(60):
        parts = parts_at(step, range(n_slots))
        readings = zip(exact.read(parts), ours.read(parts), theirs.read(parts), strict=True)
        for expected, *found in readings:
            now = torch.tensor([max_difference(each.logits, expected.logits) for each in found])
            errors = torch.maximum(errors, now)
    assert errors[0] < 2 * errors[1]


@pytest.mark.gpu
@ON_GPU
@pytest.mark.parametrize("dtype", [torch.float32, HALF])
def test_a_text_is_the_same_to_the_last_bit_whatever_else_is_in_the_batch(dtype: torch.dtype) -> None:
    gpt = tiny_model(n_layer=3, n_head=4, n_embd=32, context_length=64).gpt.to("cuda", dtype)
    alone, among = GraphReader(gpt, 20), GraphReader(gpt, 20)
    for step in range(40):
        (expected,) = alone.read(parts_at(step, [0]))
        found = among.read(parts_at(step, range(20)))[0]
        assert torch.equal(found.logits, expected.logits)


@pytest.mark.gpu
@ON_GPU
def test_graphs_write_what_torch_writes() -> None:
    tiny = tiny_model(n_layer=3, context_length=64)
    tiny.gpt.cuda()
    reader = GraphReader(tiny.gpt, 4)
    engine = Engine(tiny, max_batch=4, reader=reader)
    asked = [Asked(tiny, prompt_ids(3 + i, seed=i), 40, seed=i, settings={"temperature": 0}) for i in range(4)]
    engine.submit(*[each.sequence for each in asked])
    finish(engine)
    for i, each in enumerate(asked):
        assert each.ids == ids_of(alone(tiny, prompt_ids(3 + i, seed=i), 40, seed=i, temperature=0))
    trace = tiny.trace(prompt_ids(3) + asked[0].ids[:-1])
    assert max_difference(reader.logits[0].cpu(), trace.logits[-1].cpu()) < 1e-3
