"""Rungs 4 to 9 of the ladder, from averages to the GPT's attention, each compared with an equivalent computation."""

import pytest
import torch
from torch import Tensor

from helpers.oracles.published import assert_close
from model import ladder


def test_public_names_exist() -> None:
    assert len(set(ladder.__all__)) == len(ladder.__all__)
    assert all(hasattr(ladder, name) for name in ladder.__all__)


def test_mask_future_needs_as_many_keys_as_queries() -> None:
    for shape in ((2, 3), (3,)):
        with pytest.raises(ValueError, match=r"\(\.\.\., T, T\), found \(" + str(shape[0])):
            ladder.mask_future(torch.zeros(shape))


def test_softmax_of_large_scores() -> None:
    scores = torch.tensor([1000.0, 999.0, -1000.0])
    assert ladder.naive_softmax(scores).isnan().any()
    assert_close(ladder.stable_softmax(scores), torch.softmax(scores, dim=0), atol=1e-7)


def test_the_ladder_refuses_bad_sizes(journey: Tensor, linear: ladder.SelfAttentionV2) -> None:
    with pytest.raises(ValueError, match=r"token vectors must be \(\.\.\., T, 3\), found \(6, 2\)"):
        linear(journey[:, :2])
    with pytest.raises(ValueError, match=r"found \(3,\)"):
        linear(journey[0])
    with pytest.raises(ValueError, match="has no biases: .* qkv_bias=False"):
        ladder.transfer_weights(ladder.SelfAttentionV2(3, 2, qkv_bias=True), ladder.SelfAttentionV1(3, 2))
    with pytest.raises(ValueError, match="divisible by n_head, found d_out=3, n_head=2"):
        ladder.WeightSplits(3, 3, 2)
    with pytest.raises(ValueError, match="n_head must be at least 1, found 0"):
        ladder.StackedHeads(3, 1, 0)
    with pytest.raises(ValueError, match="the target has 1 heads, but the source has 2"):
        ladder.transfer_heads(ladder.StackedHeads(3, 1, 2), ladder.WeightSplits(3, 2, 1))
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, found 1"):
        ladder.CausalAttention(3, 2, dropout=1.0)
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, found -0.1"):
        ladder.drop_weights(torch.ones(2, 2), -0.1)
    for a, b in ((torch.ones(2, 3), torch.ones(2, 3)), (torch.ones(1, 2, 3, 4), torch.ones(1, 1, 3, 4))):
        for product in (ladder.product_batched, ladder.product_head_by_head):
            with pytest.raises(ValueError, match=r"\(B, n_head, T, head_dim\) .* found \(.*\) and \(.*\)"):
                product(a, b)


@pytest.mark.parametrize("head_dim", [16, 64])
def test_the_scale_keeps_the_variance_at_1(head_dim: int) -> None:
    unscaled, scaled = ladder.scale_demonstration(head_dim, 1000, torch.Generator().manual_seed(1337))
    assert unscaled.variance == pytest.approx(head_dim, rel=0.05)
    assert scaled.variance == pytest.approx(1, rel=0.05)
    assert unscaled.largest_weight > 10 * scaled.largest_weight


def test_only_minus_infinity_survives_a_future_with_all_the_weight() -> None:
    scores = torch.tensor([[0.0, 200.0], [0.0, 0.0]])
    assert ladder.causal_by_renormalising(scores)[0].isnan().any()
    assert ladder.causal_by_minus_infinity(scores).tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_dropout_doubles_what_it_keeps() -> None:
    generator = torch.Generator().manual_seed(123)
    dropped = ladder.drop_weights(torch.ones(300, 300), 0.5, generator)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert ladder.drop_weights(torch.ones(300, 300), 0.2, generator).unique().tolist() == [0.0, 1.25]
    assert torch.equal(ladder.drop_weights(torch.ones(3, 3), 0.0), torch.ones(3, 3))


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_weight_splits_are_stacked_heads(qkv_bias: bool) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 7, 12)
    stacked = ladder.StackedHeads(12, 4, 3, qkv_bias=qkv_bias)
    splits = ladder.WeightSplits(12, 12, 3, qkv_bias=qkv_bias)
    before = splits.out_proj.weight.clone()
    ladder.transfer_heads(stacked, splits)
    context = splits.attend(x).context
    assert context.shape == (2, 3, 7, 4)
    assert_close(ladder.merge_heads(context), stacked(x), atol=1e-6)
    assert torch.equal(ladder.split_heads(ladder.merge_heads(context), 3), context)
    assert torch.equal(splits.out_proj.weight, before)


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_packing_keeps_every_number(qkv_bias: bool) -> None:
    torch.manual_seed(2)
    x = torch.randn(2, 9, 10)
    splits = ladder.WeightSplits(10, 12, 3, qkv_bias=qkv_bias, dropout=0.1).eval()
    packed = ladder.pack_weight_splits(splits)
    context, weights = packed(x, need_weights=True)
    assert_close(context, splits(x), atol=1e-6)
    assert_close(weights, splits.attend(x).weights, atol=1e-6)
    assert_close(packed(x)[0], splits(x), atol=1e-6)
    assert packed.dropout == 0.1 and not packed.training
