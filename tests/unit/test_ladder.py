"""Rungs 4 to 9 of the ladder, averages to the GPT's attention: against the published numbers, and each other."""

import ladder_numbers as published
import pytest
import torch
from torch import Tensor, nn

from model import ladder


def assert_close(found: Tensor, expected: object, atol: float = 1.01e-4) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected), atol=atol, rtol=0)


@pytest.fixture
def journey() -> Tensor:
    """The six-word sentence, ``(6, 3)``."""
    return torch.tensor(list(ladder.JOURNEY.values()))


@pytest.fixture
def linear() -> ladder.SelfAttentionV2:
    torch.manual_seed(789)
    return ladder.SelfAttentionV2(3, 2)


def test_every_public_name_is_there() -> None:
    assert len(set(ladder.__all__)) == len(ladder.__all__)
    assert all(hasattr(ladder, name) for name in ladder.__all__)


# ---- Rung 4 ----------------------------------------------------------------------------------------------------------


def test_running_average_three_ways() -> None:
    torch.manual_seed(1337)
    x = torch.randn(4, 8, 2)
    assert_close(x[0], published.AVERAGE_X0)
    by_loop = ladder.average_by_loop(x)
    assert_close(by_loop[0], published.AVERAGE_XBOW0)
    assert_close(ladder.average_by_matrix(x), by_loop, atol=1e-6)
    assert_close(ladder.average_by_softmax(x), by_loop, atol=1e-6)


def test_one_head_without_scale() -> None:
    torch.manual_seed(1337)
    x = torch.randn(4, 8, 32)
    key, query = nn.Linear(32, 16, bias=False), nn.Linear(32, 16, bias=False)
    attn_weights = ladder.causal_by_minus_infinity(query(x) @ key(x).mT)
    assert_close(attn_weights[0, 7], published.ONE_HEAD_WEIGHTS0_ROW_7)


def test_mask_future_needs_as_many_keys_as_queries() -> None:
    for shape in ((2, 3), (3,)):
        with pytest.raises(ValueError, match=r"\(\.\.\., T, T\), found \(" + str(shape[0])):
            ladder.mask_future(torch.zeros(shape))


# ---- Rung 5 ----------------------------------------------------------------------------------------------------------


def test_one_query_without_weights(journey: Tensor) -> None:
    assert list(ladder.JOURNEY) == published.SENTENCE
    assert_close(journey, published.INPUTS)
    scores = journey @ journey[1]
    assert_close(scores, published.SIMPLE_SCORES_1)
    assert_close(ladder.sum_normalise(scores), published.SIMPLE_SUM_NORMALISED_1)
    assert_close(ladder.naive_softmax(scores), published.SIMPLE_WEIGHTS_1)
    assert_close(ladder.stable_softmax(scores), published.SIMPLE_WEIGHTS_1)
    assert_close(ladder.stable_softmax(scores) @ journey, published.SIMPLE_CONTEXT_1)


def test_all_queries_without_weights(journey: Tensor) -> None:
    scores, weights, context = ladder.attention_without_weights(journey)
    assert_close(scores, published.SIMPLE_SCORES)
    assert_close(weights, published.SIMPLE_WEIGHTS)
    assert_close(context, published.SIMPLE_CONTEXT)
    assert_close(context[1], published.SIMPLE_CONTEXT_1)
    assert_close(weights.sum(dim=-1), torch.ones(6), atol=1e-6)


def test_shiny_by_hand() -> None:
    scores, weights, context = ladder.attention_without_weights(torch.tensor(list(published.SHINY.values())))
    shiny = list(published.SHINY).index("shiny")
    assert_close(scores[shiny], published.SHINY_SCORES)
    assert_close(weights[shiny], published.SHINY_WEIGHTS)
    assert_close(context[shiny], published.SHINY_CONTEXT, atol=5e-4)


def test_softmax_of_large_scores() -> None:
    scores = torch.tensor([1000.0, 999.0, -1000.0])
    assert ladder.naive_softmax(scores).isnan().any()
    assert_close(ladder.stable_softmax(scores), torch.softmax(scores, dim=0), atol=1e-7)


# ---- Rung 6 ----------------------------------------------------------------------------------------------------------


def test_attention_with_parameters(journey: Tensor) -> None:
    torch.manual_seed(123)
    attention = ladder.SelfAttentionV1(3, 2)
    query, key, _ = attention.project(journey)
    assert_close(query[1], published.TRAINABLE_QUERY_1)
    assert_close(query[1] @ key[1], published.TRAINABLE_SCORE_11)
    scores, weights, context = attention.attend(journey)
    assert_close(scores[1], published.TRAINABLE_SCORES_1)
    assert_close(weights[1], published.TRAINABLE_WEIGHTS_1)
    assert_close(context[1], published.TRAINABLE_CONTEXT_1)
    assert_close(attention(journey), published.SELF_ATTENTION_V1)


def test_attention_with_linear_layers(journey: Tensor, linear: ladder.SelfAttentionV2) -> None:
    assert_close(linear.attend(journey).weights, published.V2_WEIGHTS)
    assert_close(linear(journey), published.SELF_ATTENTION_V2)
    parameters = ladder.SelfAttentionV1(3, 2)
    assert not torch.allclose(parameters(journey), linear(journey))
    ladder.transfer_weights(linear, parameters)
    assert_close(parameters(journey), linear(journey), atol=1e-6)


def test_the_ladder_refuses_bad_sizes(journey: Tensor, linear: ladder.SelfAttentionV2) -> None:
    with pytest.raises(ValueError, match=r"token vectors must be \(\.\.\., T, 3\), found \(6, 2\)"):
        linear(journey[:, :2])
    with pytest.raises(ValueError, match=r"found \(3,\)"):
        linear(journey[0])
    with pytest.raises(ValueError, match="has no biases .* qkv_bias=False"):
        ladder.transfer_weights(ladder.SelfAttentionV2(3, 2, qkv_bias=True), ladder.SelfAttentionV1(3, 2))
    with pytest.raises(ValueError, match="divisible by n_head, found d_out=3, n_head=2"):
        ladder.WeightSplits(3, 3, 2)
    with pytest.raises(ValueError, match="n_head must be at least 1, found 0"):
        ladder.StackedHeads(3, 1, 0)
    with pytest.raises(ValueError, match="the target has 1 heads, found 2 in the source"):
        ladder.transfer_heads(ladder.StackedHeads(3, 1, 2), ladder.WeightSplits(3, 2, 1))
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, found 1"):
        ladder.CausalAttention(3, 2, dropout=1.0)
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1, found -0.1"):
        ladder.drop_weights(torch.ones(2, 2), -0.1)
    for a, b in ((torch.ones(2, 3), torch.ones(2, 3)), (torch.ones(1, 2, 3, 4), torch.ones(1, 1, 3, 4))):
        for product in (ladder.product_batched, ladder.product_head_by_head):
            with pytest.raises(ValueError, match=r"\(B, n_head, T, head_dim\) .* found \(.*\) and \(.*\)"):
                product(a, b)


def test_softmax_sharpens_with_the_size_of_the_scores() -> None:
    scores = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
    assert_close(ladder.stable_softmax(scores), published.SOFTMAX_DIFFUSE)
    assert_close(ladder.stable_softmax(scores * 8), published.SOFTMAX_SHARP)


@pytest.mark.parametrize("head_dim", [16, 64])
def test_the_scale_keeps_the_variance_at_1(head_dim: int) -> None:
    unscaled, scaled = ladder.scale_demonstration(head_dim, 1000, torch.Generator().manual_seed(1337))
    assert unscaled.variance == pytest.approx(head_dim, rel=0.05)
    assert scaled.variance == pytest.approx(1, rel=0.05)
    assert unscaled.largest_weight > 10 * scaled.largest_weight


# ---- Rung 7 ----------------------------------------------------------------------------------------------------------


def test_causal_two_ways(journey: Tensor, linear: ladder.SelfAttentionV2) -> None:
    scores = linear.attend(journey).scores
    masked = ladder.mask_future(scores)
    assert_close(masked[5], published.V2_SCORES_MASKED_ROW_5)
    assert torch.equal(masked.isinf(), torch.ones(6, 6).triu(1).bool())
    for causal in (ladder.causal_by_renormalising, ladder.causal_by_minus_infinity):
        assert_close(causal(scores, linear.scale), published.CAUSAL_WEIGHTS)


def test_only_minus_infinity_survives_a_future_that_takes_everything() -> None:
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


def test_causal_attention(journey: Tensor) -> None:
    batch = torch.stack([journey, journey])
    torch.manual_seed(123)
    attention = ladder.CausalAttention(3, 2, dropout=0.5).eval()
    context = attention(batch)
    assert context.shape == (2, 6, 2)
    assert_close(context, [published.CAUSAL_ATTENTION] * 2)
    sharp = attention.attend(batch).weights
    dropped = attention.train().attend(batch).weights
    assert torch.equal(dropped, torch.where(dropped == 0, 0, 2 * sharp))
    assert (dropped != 2 * sharp).any() and (dropped != 0).any()


# ---- Rung 8 ----------------------------------------------------------------------------------------------------------


def test_stacked_heads(journey: Tensor) -> None:
    torch.manual_seed(123)
    stacked = ladder.StackedHeads(3, 2, 2)
    assert_close(stacked(torch.stack([journey, journey])), [published.STACKED_HEADS] * 2)


def test_weight_splits(journey: Tensor) -> None:
    torch.manual_seed(123)
    splits = ladder.WeightSplits(3, 2, 2)
    assert_close(splits(torch.stack([journey, journey])), [published.WEIGHT_SPLITS] * 2)
    assert_close(splits(journey), published.WEIGHT_SPLITS)


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


def test_batched_product_is_head_by_head() -> None:
    a = torch.tensor(published.HEADS_A)
    assert_close(ladder.product_batched(a, a), published.HEADS_A_PRODUCT)
    assert_close(ladder.product_head_by_head(a, a), published.HEADS_A_PRODUCT)
    a, b = torch.randn(2, 2, 3, 5, 4, generator=torch.Generator().manual_seed(1))
    assert_close(ladder.product_batched(a, b[:, :, :2]), ladder.product_head_by_head(a, b[:, :, :2]), atol=1e-6)


# ---- Rung 9 ----------------------------------------------------------------------------------------------------------


def test_the_attention_of_the_gpt_is_the_published_case(journey: Tensor) -> None:
    batch = torch.stack([journey, journey])
    torch.manual_seed(123)
    packed = ladder.pack_weight_splits(ladder.WeightSplits(3, 2, 2))
    assert type(packed).__module__ == "model.attention"
    for need_weights in (False, True):
        context, weights = packed(batch, need_weights=need_weights)
        assert_close(context, [published.WEIGHT_SPLITS] * 2)
        assert (weights is not None) == need_weights


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
