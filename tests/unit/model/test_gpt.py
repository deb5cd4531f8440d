"""The forward pass: causality, ties, masks, what is recorded, the start of training."""

import pytest
import torch

from helpers.models import batch, max_difference, tiny_config, tiny_gpt
from model.gpt import GPT
from model.modules.initial_weights import init_weights


def test_later_tokens_change_no_earlier_logits() -> None:
    gpt = tiny_gpt()
    ids = batch(1, 16)
    before = gpt(ids).logits
    for position in (1, 7, 15):
        changed = ids.clone()
        changed[:, position:] = (changed[:, position:] + 1) % 65
        after = gpt(changed).logits
        assert max_difference(after[:, :position], before[:, :position]) <= 1e-5
        assert max_difference(after[:, position], before[:, position]) > 1e-2


def test_batch_items_are_independent() -> None:
    gpt = tiny_gpt()
    ids = batch(3, 8)
    together = gpt(ids).logits
    for row in range(3):
        assert max_difference(together[row], gpt(ids[row : row + 1]).logits[0]) <= 1e-5


@pytest.mark.parametrize("record", [(), (1,), (0, 2), range(3)])
def test_recording_changes_no_logits(record: tuple[int, ...]) -> None:
    gpt = tiny_gpt(n_layer=3)
    ids = batch(2, 8)
    result = gpt(ids, record=record)
    assert sorted(result.attention) == list(record)
    assert all(weights.shape == (2, 2, 8, 8) for weights in result.attention.values())
    assert max_difference(result.logits, gpt(ids).logits) <= 1e-5


def test_head_mask_scales_heads() -> None:
    gpt = tiny_gpt()
    ids = batch(2, 8)
    plain = gpt(ids).logits
    assert torch.equal(gpt(ids, head_mask=torch.ones(2, 2)).logits, plain)
    seen = [plain]
    for layer in range(2):
        for head in range(2):
            for factor in (0.0, 0.5):
                mask = torch.ones(2, 2)
                mask[layer, head] = factor
                found = gpt(ids, head_mask=mask).logits
                assert max_difference(found, gpt(ids, head_mask=mask, record=range(2)).logits) <= 1e-5
                assert all(max_difference(found, other) > 1e-3 for other in seen)
                seen.append(found)
    masks = torch.rand(2, 2, 2, generator=torch.Generator().manual_seed(0))  # (n_layer, B, n_head)
    together = gpt(ids, head_mask=masks).logits
    for row in range(2):
        assert max_difference(together[row], gpt(ids[row : row + 1], head_mask=masks[:, row]).logits[0]) <= 1e-5


def test_removing_a_head_equals_zeroing_its_way_out() -> None:
    gpt = tiny_gpt()
    ids = batch(1, 8)
    mask = torch.ones(2, 2)
    mask[1, 0] = 0
    masked = gpt(ids, head_mask=mask).logits
    gpt.h[1].attn.c_proj.weight[:, :8] = 0
    assert max_difference(masked, gpt(ids).logits) <= 1e-5


@pytest.mark.parametrize("tied", [True, False])
def test_tied_head_shares_the_embedding(tied: bool) -> None:
    gpt = GPT(tiny_config(tie_word_embeddings=tied))
    assert (gpt.lm_head.weight is gpt.wte.weight) == tied
    assert sum(parameter.numel() for parameter in gpt.parameters()) == gpt.config.n_parameters


@pytest.mark.parametrize(
    "changes",
    [{"qkv_bias": False}, {"n_inner": 5}, {"n_embd": 15, "n_head": 5}, {"n_layer": 1, "context_length": 1}],
)
def test_number_of_weights_equals_the_config(changes: dict[str, object]) -> None:
    gpt = GPT(tiny_config(**changes))
    assert sum(parameter.numel() for parameter in gpt.parameters()) == gpt.config.n_parameters


def test_initial_weights_have_gpt2s_deviations() -> None:
    torch.manual_seed(0)
    gpt = GPT(tiny_config(n_embd=64, n_layer=2))
    init_weights(gpt, n_layer=2)
    for name, parameter in gpt.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "ln_" in name:
            assert (parameter == 1).all(), name
        else:
            expected = 0.02 / 2 if name.endswith("c_proj.weight") else 0.02
            assert abs(float(parameter.detach().std()) / expected - 1) < 0.05, name


def test_dropout_only_in_training() -> None:
    gpt = tiny_gpt(embd_pdrop=0.2, attn_pdrop=0.2, resid_pdrop=0.2)
    ids = batch(1, 8)
    assert torch.equal(gpt(ids).logits, gpt(ids).logits)
    assert max_difference(gpt(ids).logits, tiny_gpt()(ids).logits) == 0
    gpt.train()
    assert not torch.equal(gpt(ids).logits, gpt(ids).logits)


def test_attention_scale_by_layer() -> None:
    config = tiny_config(scale_attn_by_inverse_layer_idx=True)
    assert [config.attention_scale(layer) for layer in range(2)] == [8**-0.5, 8**-0.5 / 2]
    assert tiny_config(scale_attn_weights=False).attention_scale(1) == 1.0
    assert [block.attn.scale for block in GPT(config).h] == [8**-0.5, 8**-0.5 / 2]
