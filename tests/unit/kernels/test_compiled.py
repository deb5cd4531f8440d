"""The compiled forward pass, compared with torch's modules."""

import re
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.models import max_difference, prompt_ids, tiny_gpt
from model import attention
from model.config import Llama3Scaling, RotaryConfig
from model.gpt import GPT
from model.kernels import int8
from model.kernels.compiled import CompiledGPT, Row, ThreadChooser
from model.kernels.forward import MIN_SHARED_ROWS, announce, barrier
from model.kernels.pack import storage
from model.kernels.state import ZEROS
from model.kernels.sums import has_pair_products
from model.sampling import SamplingSettings, sample

SHAPES: list[dict[str, Any]] = [
    {"n_layer": 3, "context_length": 64},
    {"n_head": 1, "n_embd": 5, "activation_function": "gelu"},
    {"n_head": 4, "n_embd": 160, "n_inner": 33, "qkv_bias": False},
    {"scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False, "layer_norm_epsilon": 1e-3},
    {"scale_attn_weights": False, "vocab_size": 300},
    {"activation_function": "relu", "mlp_bias": False},
]
LLAMA: dict[str, Any] = {
    "n_head": 6,
    "n_kv_head": 2,
    "n_embd": 48,
    "n_inner": 40,
    "rotary": RotaryConfig(n_dim=8, theta=100.0),
    "norm": "RMSNorm",
    "activation_function": "silu",
    "gated_mlp": True,
    "qkv_bias": False,
    "attn_proj_bias": False,
    "mlp_bias": False,
}
PYTHIA = {"n_layer": 3, "n_embd": 32, "rotary": RotaryConfig(n_dim=4), "parallel": True, "activation_function": "gelu"}
SCALED = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context_length=16)
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "llama 3": LLAMA | {"rotary": RotaryConfig(n_dim=8, theta=100.0, scaling=SCALED)},
    "one key head, odd sizes": LLAMA | {"n_head": 3, "n_kv_head": 1, "head_dim": 10, "n_inner": 33},
    "35 heads, one key": LLAMA | {"n_head": 35, "n_kv_head": 1, "head_dim": 4, "rotary": RotaryConfig(n_dim=4)},
    "qwen 2": LLAMA | {"qkv_bias": True, "tie_word_embeddings": False},
    "qwen 3": LLAMA | {"qk_norm": True, "head_dim": 16, "rotary": RotaryConfig(n_dim=16)},
    "windows": LLAMA | {"n_layer": 3, "windows": (1, None, 5)},
    "pythia": PYTHIA | {"tie_word_embeddings": False},
    "one after the other": PYTHIA | {"parallel": False},
}
SHAPES += FAMILIES.values()
NEEDS_PAIRS = pytest.mark.skipif(not has_pair_products(), reason="this processor cannot multiply pairs of bfloat16")
IN_PAIRS = pytest.mark.parametrize(
    "in_pairs", [False, pytest.param(True, marks=NEEDS_PAIRS)], ids=["float32", "bfloat16"]
)


def read_all(
    compiled: CompiledGPT, ids: Sequence[int], slot: int = 0, *, record: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Every token of a text in one pass."""
    found = compiled.read([(token, slot, i, True, i if record else -1) for i, token in enumerate(ids)])
    return compiled.logits[: len(ids)].clone(), None if found is None else torch.from_numpy(found.array())


def rounded(numbers: Tensor) -> Tensor:
    return numbers.bfloat16().float()


def torch_reads(gpt: GPT, ids: Sequence[int], head_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    result = gpt(torch.tensor([ids]), record=range(gpt.config.n_layer), head_mask=head_mask)
    return result.logits[0], torch.stack([weights[0] for weights in result.attention.values()])


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_and_attention_equal_torch(shape: dict[str, Any]) -> None:
    gpt = tiny_gpt(**shape)
    compiled = CompiledGPT(gpt, n_slots=3, max_rows=32)
    ids = prompt_ids(30)
    logits, attention = read_all(compiled, ids, slot=2, record=True)
    expected, weights = torch_reads(gpt, ids)
    assert max_difference(logits, expected) < 1e-5 * max(10, float(expected.abs().max()))  # rounding grows with them
    assert attention is not None and max_difference(attention, weights) < 1e-4
    best, most, total = torch.from_numpy(compiled.summary[: len(ids)]).unbind(1)
    assert best.long().tolist() == logits.argmax(-1).tolist() and most.tolist() == logits.max(-1).values.tolist()
    assert max_difference(total, logits.double().logsumexp(-1)) < 1e-5


@IN_PAIRS
@pytest.mark.parametrize(
    "shape",
    [{"n_layer": 3, "n_embd": 96, "n_head": 3}, LLAMA, PYTHIA, FAMILIES["one key head, odd sizes"]],
    ids=["GPT-2", "Llama", "Pythia", "one key head"],
)
def test_a_text_is_the_same_to_the_last_bit_alone_in_pieces_among_others_and_on_two_threads(
    shape: dict[str, Any], in_pairs: bool
) -> None:
    gpt = tiny_gpt(**shape)
    if in_pairs:
        gpt.bfloat16()
    ids = prompt_ids(24)
    expected, _ = read_all(CompiledGPT(gpt, 1, 32, in_pairs=in_pairs), ids)
    compiled = CompiledGPT(gpt, n_slots=16, max_rows=64, max_threads=2, in_pairs=in_pairs)
    for n_threads in (1, 2):
        compiled.threads.choose = lambda _rows, n=n_threads: n  # type: ignore[method-assign, misc]
        found = []
        for i, token in enumerate(ids):
            others = [((token + slot) % 65, slot, i, False, -1) for slot in range(16) if slot != 7 and i % 3]
            compiled.read([*others[:5], (token, 7, i, True, -1), *others[5:]])
            found.append(compiled.logits[0].clone())
        assert torch.equal(torch.stack(found), expected)
    compiled.close()
    del compiled.threads.choose
    assert torch.equal(read_all(compiled, ids)[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float32", pytest.param("bfloat16", marks=NEEDS_PAIRS), "int8"])
@pytest.mark.parametrize("shape", [{}, LLAMA, PYTHIA], ids=["GPT-2", "Llama", "Pythia"])
def test_threads_share_the_inputs_of_a_long_prompt(
    shape: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt is long enough that each thread prepares half of the rows that both multiply."""
    gpt = tiny_gpt(**shape | {"context_length": 64})
    if kind == "int8":
        int8.quantize(gpt)
    elif kind == "bfloat16":
        gpt.bfloat16()
    ids = prompt_ids(2 * MIN_SHARED_ROWS - 3)
    alone, compiled = (CompiledGPT(gpt, 1, len(ids), n, in_pairs=kind == "bfloat16") for n in (1, 2))
    expected, weights = read_all(alone, ids, record=True)
    monkeypatch.setattr(compiled.threads, "choose", lambda _rows: 2)
    monkeypatch.setattr(compiled.threads, "took", lambda *_: None)
    logits, attention = read_all(compiled, ids, record=True)
    assert attention is not None and weights is not None
    assert torch.equal(logits, expected) and torch.equal(attention, weights)
    compiled.close()


def test_what_was_recorded_earlier_stays() -> None:
    """Recordings of single tokens lie in the same memory, one after another."""
    compiled, ids = CompiledGPT(tiny_gpt(), n_slots=1, max_rows=32), prompt_ids(30)
    _, together = read_all(compiled, ids, record=True)
    found = [compiled.read([(token, 0, i, True, 0)]) for i, token in enumerate(ids)]
    for i, weights in enumerate(found):
        assert together is not None and weights is not None
        assert np.array_equal(weights.array()[:, :, 0], together[:, :, i, : i + 1])


def test_head_masks_per_row() -> None:
    gpt = tiny_gpt(n_head=4, n_embd=32)
    compiled = CompiledGPT(gpt, n_slots=2, max_rows=64)
    ids = prompt_ids(10)
    masks = [torch.ones(2, 4), torch.tensor([[0.0, 1, 0.5, 1], [2, 1, -1, 0]])]
    rows = [(token, slot, i, True, -1) for slot in range(2) for i, token in enumerate(ids)]
    mask = torch.stack([masks[slot] for _, slot, *_ in rows], 1).numpy()
    compiled.read(rows, np.ascontiguousarray(mask))
    for slot, head_mask in enumerate(masks):
        assert max_difference(compiled.logits[slot * 10 :][:10], torch_reads(gpt, ids, head_mask)[0]) < 1e-4


def test_weights_take_up_as_few_bytes_as_is_exact() -> None:
    gpt = tiny_gpt()
    matrices = [module for module in gpt.modules() if isinstance(module, torch.nn.Linear)]
    assert storage(matrices) == np.float32
    gpt.half().float()
    assert storage(matrices) == np.int16
    gpt.bfloat16().float()
    gpt.h[0].mlp.c_fc.weight[0] = 2.0**-60  # below float16
    assert storage(matrices) == np.uint32


@pytest.mark.parametrize(
    "shape", [*({"n_embd": n, "n_head": 2} for n in (32, 36, 90)), FAMILIES["qwen 3"], FAMILIES["pythia"]]
)
def test_int8_equals_torch(shape: dict[str, Any]) -> None:
    """Torch divides by a scale where the loops multiply by its inverse, so that now and then one of them rounds up."""
    gpt = tiny_gpt(**shape)
    int8.quantize(gpt)
    found, _ = read_all(CompiledGPT(gpt, 1, 32), prompt_ids(20))
    expected, _ = torch_reads(gpt, prompt_ids(20))
    assert max_difference(found, expected) < 0.02
    assert (found - expected).abs().median() < 1e-5


@NEEDS_PAIRS
@torch.inference_mode()
@pytest.mark.parametrize("shape", [{"n_embd": 32}, FAMILIES["qwen 3"], FAMILIES["pythia"]])
def test_products_of_bfloat16_equal_torch_with_rounded_inputs(
    shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums in another order differ in their last bits, so that now and then an input is rounded the other way."""
    gpt, ids = tiny_gpt(**shape).bfloat16(), prompt_ids(20)
    found, _ = read_all(CompiledGPT(gpt, 1, 32, in_pairs=True), ids)
    exact, _ = read_all(CompiledGPT(gpt, 1, 32), ids)
    gpt.float()
    assert max_difference(exact, torch_reads(gpt, ids)[0]) < 1e-4
    for module in gpt.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _module, given: (rounded(given[0]),))
    split, product = attention.MultiHeadAttention.split, attention.product_by_group
    monkeypatch.setattr(
        attention.MultiHeadAttention, "split", lambda *given: type(parts := split(*given))(*map(rounded, parts))
    )
    monkeypatch.setattr(  # attention weights are rounded, but not queries times the scale
        attention, "product_by_group", lambda a, b: product(a if b.shape[-1] == len(ids) else rounded(a), b)
    )
    expected, _ = torch_reads(gpt, ids)
    assert max_difference(found, expected) < 0.02 and (found - expected).abs().median() < 1e-4
    assert (found - expected).abs().mean() < 0.2 * (exact - expected).abs().mean()


@pytest.mark.parametrize("prompt", [1, 7, 8, 9, 20, 31])
def test_attention_of_a_prompt_equals_that_of_single_tokens_to_the_last_bit(prompt: int) -> None:
    compiled, ids = CompiledGPT(tiny_gpt(), n_slots=2, max_rows=32), prompt_ids(prompt)
    logits, together = read_all(compiled, ids, record=True)
    for i, token in enumerate(ids):
        alone = compiled.read([(token, 1, i, True, 0)])
        assert together is not None and alone is not None
        assert np.array_equal(alone.array()[:, :, 0], together[:, :, i, : i + 1])
        assert torch.equal(compiled.logits[0], logits[i])


@pytest.mark.parametrize("shape", [{}, LLAMA, PYTHIA])
def test_logits_and_attention_are_the_same_where_only_some_rows_need_them(shape: dict[str, Any]) -> None:
    compiled, ids = CompiledGPT(tiny_gpt(**shape), n_slots=2, max_rows=64), prompt_ids(20)
    logits, attention = read_all(compiled, ids, record=True)
    wanted, recorded = [2, 11, 19], [5, 11]
    places = {i: place for place, i in enumerate(recorded)}
    rows = [(token, 0, i, i in wanted, places.get(i, -1)) for i, token in enumerate(ids)]
    found = compiled.read([*rows[:12], (7, 1, 0, True, -1), *rows[12:]])
    assert torch.equal(compiled.logits[[0, 1, 3]], logits[wanted])
    assert attention is not None and found is not None
    assert np.array_equal(found.array(), attention[:, :, recorded, : recorded[-1] + 1])
    compiled.read([(token, 0, i, False, -1) for i, token in enumerate(ids[:10])])
    compiled.read([(token, 0, 10 + i, i == 9, -1) for i, token in enumerate(ids[10:])])
    assert torch.equal(compiled.logits[0], logits[-1])


@pytest.mark.parametrize("shape", [{"n_embd": 96, "n_head": 3}, LLAMA, FAMILIES["one key head, odd sizes"]])
@pytest.mark.parametrize("n", [1, 31, 32, 45])
@IN_PAIRS
def test_a_copied_beginning_is_the_same_to_the_last_bit(shape: dict[str, Any], n: int, in_pairs: bool) -> None:
    gpt = tiny_gpt(**shape | {"context_length": 69})
    compiled, ids = CompiledGPT(gpt.bfloat16() if in_pairs else gpt, 3, 64, in_pairs=in_pairs), prompt_ids(50)
    expected, _ = read_all(compiled, ids)
    compiled.copy(0, 2, n)
    compiled.read([(token, 2, n + i, True, -1) for i, token in enumerate(ids[n:])])
    assert torch.equal(compiled.logits[: len(ids) - n], expected[n:])


def test_zeros_added_to_scores_reach_as_far_as_the_context() -> None:
    weights = CompiledGPT(tiny_gpt(context_length=500), 1, 1).weights
    assert len(weights.biases) - weights.biases_at[-1, ZEROS] >= 500


@IN_PAIRS
def test_slots_are_reused_regardless_of_their_content(in_pairs: bool) -> None:
    gpt = tiny_gpt()
    compiled = CompiledGPT(gpt.bfloat16() if in_pairs else gpt, n_slots=1, max_rows=32, in_pairs=in_pairs)
    expected, _ = read_all(compiled, prompt_ids(9))
    for memory in (compiled.memory.keys, compiled.memory.values):
        memory.view(np.uint32)[:] = 0x7FFF7FFF  # NaN in both precisions
    assert torch.equal(read_all(compiled, prompt_ids(9))[0], expected)


def test_non_finite_logits_show_in_the_summary() -> None:
    gpt = tiny_gpt()
    gpt.h[1].mlp.c_fc.weight[3] = 3e38
    compiled = CompiledGPT(gpt, 1, 32)
    expected = torch_reads(gpt, prompt_ids(9))[0].isfinite().all(1)
    read_all(compiled, prompt_ids(9))
    assert np.isfinite(compiled.summary[:9, 2]).tolist() == expected.tolist()
    assert not expected.all()


@pytest.mark.parametrize("temperature", [0.2, 1.0, 7.0])
def test_draws_equal_sampling(temperature: float) -> None:
    gpt = tiny_gpt(vocab_size=1_000)
    compiled = CompiledGPT(gpt, 1, 32)
    logits, _ = read_all(compiled, [5])
    settings = SamplingSettings(temperature=temperature)

    class Drawn:
        """A generator that returns a given number."""

        def __init__(self, number: float) -> None:
            self.number = number

        def random(self) -> float:
            return self.number

    for uniform in [0.0, *np.linspace(0.0005, 0.9995, 200), 1 - 2**-53]:
        expected = sample(logits[0], settings, Drawn(uniform))  # type: ignore[arg-type]
        assert compiled.draw(0, compiled.summary[0, 1], temperature, uniform, 1_000) == expected


def test_threads_that_keep_each_other_waiting_are_given_up_for_a_while() -> None:
    chooser = ThreadChooser(max_threads=2)
    assert chooser.choose(1) == 1  # the first pass measures the time of one thread
    chooser.took(1, 1, 1.0)
    assert chooser.choose(1) == 2
    chooser.took(1, 2, 0.6)
    assert chooser.choose(1) == 2 and chooser.choose(16) == 1
    chooser.took(1, 2, 40.0)
    chosen = [chooser.choose(1) for _ in range(100)]
    assert chosen == [1] * 64 + [2] * 36
    chooser.took(1, 2, 40.0)
    assert [chooser.choose(1) for _ in range(200)].count(1) == 128
    chooser.took(16, 1, 1.0)
    assert chooser.choose(16) == 2  # passes of another size are measured separately
    assert chooser.choose(500) == 2  # nobody waits long for a thread if a pass takes long
    assert ThreadChooser(max_threads=1).choose(1) == ThreadChooser(max_threads=1).choose(500) == 1


def test_followers_that_see_a_pass_see_all_that_was_written_before() -> None:
    # On processors with weak ordering, such as ARM's, a plain store may become visible before those that precede it.
    def llvm(function: Any, *types: Any) -> str:
        fresh = numba.njit(function.py_func)
        fresh.compile(types)
        return next(iter(fresh.inspect_llvm().values()))

    control = numba.int64[::1]
    assert re.search(r"store atomic i64 .* release", llvm(announce, control, numba.int64))
    loads = re.findall(r"load atomic i64.*", llvm(barrier, control, numba.int64, numba.int64))
    assert loads and all(" acquire" in load for load in loads)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ((40, 0, 0, True, -1), "token 40 "),
        ((-1, 0, 0, True, -1), "token -1 "),
        ((0, 2, 0, True, -1), "slot 2,"),
        ((0, -1, 0, True, -1), "slot -1,"),
        ((0, 0, 16, True, -1), "position 16 "),
        ((0, 0, -1, True, -1), "position -1 "),
        ((0, 0, 0, True, 1), "recorded as 1:"),
        ((0, 0, 0, True, -2), "recorded as -2:"),
    ],
)
def test_rows_out_of_bounds_are_refused(row: Row, found: str) -> None:
    compiled = CompiledGPT(tiny_gpt(vocab_size=40, context_length=16), n_slots=2, max_rows=4)
    before = read_all(compiled, [1, 2, 3])[0]
    with pytest.raises(ValueError, match=re.escape(found) + ".*token ids below 40, slots below 2, positions below 16"):
        compiled.read([row])
    assert torch.equal(compiled.logits[:3], before)
    with pytest.raises(ValueError, match="a pass reads 1 to 4 tokens, found 5"):
        read_all(compiled, [0] * 5)
    with pytest.raises(ValueError, match="a pass reads 1 to 4 tokens, found 0"):
        compiled.read([])
    with pytest.raises(ValueError, match="head mask of shape"):
        compiled.read([(0, 0, 0, True, -1)], np.ones((1, 1, 1), np.float32))
