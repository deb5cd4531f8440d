"""Rungs 4 to 9 of the ladder, averages to the GPT's attention, compared with the published numbers."""

import torch
from torch import Tensor, nn

from helpers.oracles import published
from helpers.oracles.published import assert_close
from model import ladder

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


def test_softmax_sharpens_with_the_size_of_the_scores() -> None:
    scores = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
    assert_close(ladder.stable_softmax(scores), published.SOFTMAX_DIFFUSE)
    assert_close(ladder.stable_softmax(scores * 8), published.SOFTMAX_SHARP)


# ---- Rung 7 ----------------------------------------------------------------------------------------------------------


def test_causal_two_ways(journey: Tensor, linear: ladder.SelfAttentionV2) -> None:
    scores = linear.attend(journey).scores
    masked = ladder.mask_future(scores)
    assert_close(masked[5], published.V2_SCORES_MASKED_ROW_5)
    assert torch.equal(masked.isinf(), torch.ones(6, 6).triu(1).bool())
    for causal in (ladder.causal_by_renormalising, ladder.causal_by_minus_infinity):
        assert_close(causal(scores, linear.scale), published.CAUSAL_WEIGHTS)


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
