"""The pass that all questions share, and the float32 model it is made with."""

import copy

import pytest
import torch

from helpers.models import max_difference, prompt_ids, tiny_gpt, tiny_model
from model.gpt import GPT
from model.kernels.int8 import is_exact, quantize
from model.lens import text_pass
from model.lens.float32 import float32_bytes, in_float32, served_difference
from model.lens.text_pass import TextPass

IDS = prompt_ids(14)
SHAPE = {"n_layer": 3, "n_embd": 24, "n_head": 4}


def in_precision(gpt: GPT, dtype: torch.dtype) -> GPT:
    served = copy.deepcopy(gpt)
    if dtype == torch.int8:
        quantize(served)
        return served
    return served.to(dtype)


@pytest.mark.parametrize("masked", [False, True])
def test_text_pass_equals_a_plain_pass(masked: bool) -> None:
    gpt = tiny_gpt(**SHAPE)
    mask = torch.tensor([[1, 0.5, 1, 0], [2, 1, 1, 1], [1, 1, 0, 1]]) if masked else None
    text, expected = TextPass(gpt, IDS, mask), gpt(torch.tensor([IDS]), head_mask=mask, record=range(3))
    for layer in range(3):
        assert max_difference(text.attention(layer), expected.attention[layer][0]) < 1e-6
        block = text.block(layer)
        value = block.attn.queries_keys_values(block.attention_input(text.stream[layer])).value[0]
        weighted = text.attention(layer) @ value  # (n_head, T, head_dim)
        scale = torch.ones(4) if mask is None else mask[layer]
        assert max_difference(text.context(layer)[0].transpose(0, 1), weighted * scale[:, None, None]) < 1e-5
    logprobs = expected.logits[0, :-1].log_softmax(-1)[torch.arange(13), torch.tensor(IDS[1:])]
    assert max_difference(torch.tensor(text.logprobs()), logprobs) < 1e-5
    assert max_difference(text.losses(text.stream[-1])[0], -logprobs) < 1e-5
    assert max_difference(text.logits(0, 14), expected.logits[0]) < 1e-5
    assert text.nbytes == 4 * 14 * 24 * 4


def test_variants_start_at_any_layer() -> None:
    gpt = tiny_gpt(**SHAPE)
    text = TextPass(gpt, IDS)
    for layer in range(3):
        assert max_difference(text.run_from(layer, text.stream[layer]), text.stream[-1]) < 1e-6
        both = text.run_with_context(layer, text.context(layer).repeat(2, 1, 1, 1))
        assert max_difference(both, text.stream[-1].expand(2, -1, -1)) < 1e-6

    def mute(layer: int, context: torch.Tensor) -> torch.Tensor:
        return context * (layer != 2)

    mask = torch.ones(3, 4)
    mask[2] = 0
    expected = TextPass(gpt, IDS, mask).stream[-1]
    assert max_difference(text.run_from(1, text.stream[1], mute), expected) < 1e-6
    assert max_difference(text.run_with_context(0, text.context(0), mute), expected) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("tied", [True, False])
def test_float32_with_the_weights_as_served(dtype: torch.dtype, tied: bool) -> None:
    if dtype == torch.int8 and not is_exact():
        pytest.skip("int8 products are not exact on this processor")
    gpt = tiny_gpt(**SHAPE, tie_word_embeddings=tied)
    served = in_precision(gpt, dtype)
    exact = in_float32(served)
    assert {tensor.dtype for tensor in exact.state_dict().values()} == {torch.float32}
    assert (exact is served) == (dtype == torch.float32)
    own = {tensor.data_ptr() for tensor in served.state_dict().values()}
    found = {tensor.data_ptr(): tensor.nbytes for tensor in exact.state_dict().values()}
    assert float32_bytes(served) == sum(nbytes for address, nbytes in found.items() if address not in own)
    assert (float32_bytes(served) == 0) == (dtype == torch.float32)
    text = TextPass(exact, IDS)
    assert max_difference(text.logits(0, 14), TextPass(served, IDS).logits(0, 14)) < 0.6
    difference = served_difference(served, text)
    if dtype == torch.float32:
        assert difference < 1e-5
        return
    assert 1e-5 < difference < 0.6
    assert in_float32(exact) is exact
    if dtype == torch.bfloat16:
        expected = copy.deepcopy(served).float()
        assert (exact.lm_head.weight is exact.wte.weight) == tied
        assert max_difference(text.stream[-1], TextPass(expected, IDS).stream[-1]) == 0
    else:
        layer = served.h[1].mlp.c_fc  # type: ignore[union-attr,index]
        rounded = layer.weight.float() * layer.scale[:, None]  # type: ignore[union-attr,operator,index]
        assert torch.equal(exact.h[1].mlp.c_fc.weight, rounded)  # type: ignore[union-attr,index]
        assert exact.wte.weight.data_ptr() == served.wte.weight.data_ptr()


def test_text_of_one_token() -> None:
    gpt = tiny_gpt(**SHAPE)
    text = TextPass(gpt, IDS[:1])
    assert text.losses(text.stream[-1]).shape == (1, 0) and served_difference(gpt, text) == 0


def test_prefixes_equal_their_own_trace() -> None:
    tiny = tiny_model(n_layer=3, n_embd=12, n_head=4)
    ids = prompt_ids(12)
    text_pass = TextPass(tiny.gpt, ids)
    for n in (1, 5, 12):
        trace = tiny.trace(ids[:n])
        for layer in range(3):
            assert max_difference(text_pass.attention(layer, n), trace.attention[layer]) <= 1e-6
        assert max_difference(text_pass.logits(0, n), trace.logits) <= 1e-5
    assert text_pass.nbytes == 4 * 4 * 12 * 12


@pytest.mark.parametrize("n", [1, 2, 64, 65, 66, 200])
def test_logprobs_of_all_tokens_but_the_first(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pass, "LOGITS_AT_ONCE", 64 * 65)
    tiny = tiny_model(context_length=200)
    ids = torch.randint(65, (n,), generator=torch.Generator().manual_seed(n)).tolist()
    expected = tiny.trace(ids).logits.log_softmax(-1)
    found = TextPass(tiny.gpt, ids).logprobs()
    assert found == pytest.approx([float(expected[t, ids[t + 1]]) for t in range(n - 1)], abs=1e-5)
