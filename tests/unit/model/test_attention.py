"""The two paths of attention give the same context vectors, and neither looks ahead."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from helpers.models import max_difference, randomise, tiny_config
from model.attention import MultiHeadAttention
from model.modules.cache import KVCache
from model.modules.mask import causal_mask

SIZES = [(16, 16, 2), (4, 4, 4), (15, 15, 3), (3, 2, 2), (8, 8, 1), (5, 12, 4)]  # d_in, d_out, n_head


def attention(d_in: int = 16, d_out: int = 16, n_head: int = 2, **options: object) -> MultiHeadAttention:
    layer = MultiHeadAttention(d_in, d_out, n_head, **options)
    randomise(layer, seed=1, std=0.5)
    return layer.eval().requires_grad_(False)


def tokens(n_tokens: int, d_in: int = 16, n_batch: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(n_batch, n_tokens, d_in, generator=torch.Generator().manual_seed(seed))


def by_hand(layer: MultiHeadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    """One sentence, one head and one query at a time, ``(T, d_in)``: context vectors and weights."""
    width = layer.n_head * layer.head_dim
    query, key, value = layer.c_attn(x).split(width, dim=-1)
    weights = torch.zeros(layer.n_head, len(x), len(x))
    context = torch.zeros(len(x), width)
    for head in range(layer.n_head):
        columns = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
        for q in range(len(x)):
            scores = [float(query[q, columns] @ key[k, columns]) * layer.scale for k in range(q + 1)]
            powers = [math.exp(score - max(scores)) for score in scores]
            for k in range(q + 1):
                weights[head, q, k] = powers[k] / sum(powers)
                context[q, columns] += weights[head, q, k] * value[k, columns]
    return layer.c_proj(context), weights


@pytest.mark.parametrize(("d_in", "d_out", "n_head"), SIZES)
@pytest.mark.parametrize("n_tokens", [1, 2, 9])
def test_explicit_equals_fused_equals_by_hand(d_in: int, d_out: int, n_head: int, n_tokens: int) -> None:
    layer = attention(d_in, d_out, n_head)
    x = tokens(n_tokens, d_in)
    fused, none = layer(x)
    explicit, weights = layer(x, need_weights=True)
    assert none is None
    assert max_difference(fused, explicit) <= 1e-5
    for b in range(2):
        expected, expected_weights = by_hand(layer, x[b])
        assert max_difference(explicit[b], expected) <= 1e-5
        assert max_difference(weights[b], expected_weights) <= 1e-6


@pytest.mark.parametrize("chunks", [[7, 1, 1], [1] * 9, [2, 7], [4, 2, 3], [9]])
@pytest.mark.parametrize("need_weights", [False, True])
def test_reading_in_pieces_with_a_cache(chunks: list[int], need_weights: bool) -> None:
    """Prefill, chunked prefill and single steps, by either path, equal one pass without a cache."""
    layer = attention()
    x = tokens(9)
    expected, expected_weights = layer(x, need_weights=True)
    cache = KVCache(tiny_config(n_layer=1), capacity=9, batch_size=2)
    outputs = []
    for chunk in x.split(chunks, dim=1):
        start, end = cache.length, cache.length + chunk.shape[1]
        context, weights = layer(chunk, cache=cache, need_weights=need_weights)
        cache.advance(chunk.shape[1])
        outputs.append(context)
        if need_weights:
            assert max_difference(weights, expected_weights[:, :, start:end, :end]) <= 1e-6
    assert max_difference(torch.cat(outputs, dim=1), expected) <= 1e-5


@pytest.mark.parametrize("n_tokens", [1, 5])
def test_weights_are_probabilities_of_the_past(n_tokens: int) -> None:
    _, weights = attention()(tokens(n_tokens), need_weights=True)
    assert weights.shape == (2, 2, n_tokens, n_tokens)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, n_tokens))
    assert (weights >= 0).all()
    assert (weights.triu(1) == 0).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_later_tokens_change_nothing_before_them(need_weights: bool) -> None:
    layer = attention()
    x = tokens(8)
    before, _ = layer(x, need_weights=need_weights)
    for position in range(8):
        changed = x.clone()
        changed[:, position:] = tokens(8, seed=9)[:, position:] * 100
        after, _ = layer(changed, need_weights=need_weights)
        assert max_difference(after[:, :position], before[:, :position]) <= 1e-6 if position else True
        assert not torch.equal(after[:, position], before[:, position])


@pytest.mark.parametrize("large", [1e3, 1e6])
def test_large_scores_do_not_overflow(large: float) -> None:
    layer = attention()
    fused, _ = layer(tokens(6) * large)
    explicit, weights = layer(tokens(6) * large, need_weights=True)
    assert weights.isfinite().all() and fused.isfinite().all()
    torch.testing.assert_close(fused, explicit, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("need_weights", [False, True])
def test_head_mask_scales_context_vectors(need_weights: bool) -> None:
    """1 keeps a head, 0 removes it, 0.5 halves what it adds: the output is linear in the mask."""
    layer = attention()
    x = tokens(5)

    def masked(*mask: float) -> Tensor:
        return layer(x, head_mask=torch.tensor(mask), need_weights=need_weights)[0] - layer.c_proj.bias

    both, first, second = masked(1, 1), masked(1, 0), masked(0, 1)
    assert torch.equal(both, layer(x, need_weights=need_weights)[0] - layer.c_proj.bias)
    assert max_difference(first + second, both) <= 1e-5
    assert max_difference(masked(0, 0), torch.zeros_like(both)) <= 1e-6
    assert max_difference(masked(0.5, -2), 0.5 * first - 2 * second) <= 1e-5
    assert max_difference(first, both) > 0.01


def test_a_head_mask_does_not_change_the_weights() -> None:
    layer = attention()
    _, plain = layer(tokens(5), need_weights=True)
    _, masked = layer(tokens(5), head_mask=torch.tensor([0.0, 0.5]), need_weights=True)
    assert torch.equal(plain, masked)


def test_head_mask_for_each_of_a_batch() -> None:
    layer = attention()
    x = tokens(5)
    masks = torch.tensor([[1.0, 0.0], [0.25, 1.0]])
    together, _ = layer(x, head_mask=masks)
    for b in range(2):
        assert max_difference(together[b : b + 1], layer(x[b : b + 1], head_mask=masks[b])[0]) <= 1e-6


def test_dropout_only_in_training() -> None:
    layer = attention(dropout=0.5)
    x = tokens(6)
    torch.manual_seed(0)
    first, _ = layer(x)
    assert torch.equal(first, layer(x)[0])
    layer.train()
    assert not torch.equal(layer(x)[0], layer(x)[0])


def test_dropout_is_on_the_weights_and_scales_the_rest() -> None:
    """In training the explicit path runs: the context vectors are those of dropped weights times 1 / (1 - p)."""
    layer = attention(dropout=0.5).train()
    x = tokens(6)
    torch.manual_seed(7)
    found, weights = layer(x, need_weights=True)
    torch.manual_seed(7)
    dropped = F.dropout(weights, 0.5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 6))  # those returned are before dropout
    value = layer.c_attn(x)[..., 32:].view(2, 6, 2, 8).transpose(1, 2)
    expected = layer.c_proj((dropped @ value).transpose(1, 2).reshape(2, 6, 16))
    assert max_difference(found, expected) <= 1e-5
    torch.manual_seed(7)
    assert max_difference(layer(x)[0], expected) <= 1e-5


def test_scale_of_the_scores() -> None:
    assert attention().scale == 8**-0.5
    assert attention(scale=0.25).scale == 0.25
    x = tokens(5)
    assert max_difference(attention(scale=8**-0.5)(x)[0], attention()(x)[0]) == 0
    assert max_difference(attention(scale=2.0)(x)[0], attention(scale=2.0)(x, need_weights=True)[0]) <= 1e-5


def test_indivisible_width_is_refused() -> None:
    with pytest.raises(ValueError, match="d_out=10, n_head=3"):
        MultiHeadAttention(10, 10, 3)


def test_causal_mask_hides_later_tokens() -> None:
    def mask(*sizes: int) -> list[list[bool]] | None:
        found = causal_mask(sizes[0], sizes[1], torch.device("cpu"), *sizes[2:])
        return None if found is None else found.tolist()

    assert mask(2, 4) == mask(2, 4, 4) == [[True, True, True, False], [True] * 4]
    assert mask(2, 4, 2) == [[False, True, True, False], [False, False, True, True]]
    assert mask(1, 4) is mask(1, 4, 4) is None and mask(1, 4, 3) == [[False, True, True, True]]


@pytest.mark.parametrize("window", [1, 3, 6, 7, 9])
def test_a_window_hides_earlier_tokens_on_both_paths(window: int) -> None:
    layer, x = attention(window=window), tokens(7)
    fused, explicit = layer(x)[0], layer(x, need_weights=True)
    assert max_difference(fused, explicit[0]) <= 1e-5
    distance = torch.arange(7)[:, None] - torch.arange(7)
    assert torch.equal(explicit[1][0, 0] > 0, (distance >= 0) & (distance < window))
    query, key, value = layer.queries_keys_values(x)
    last = layer.attention_weights(query[:, :, -1:], key)
    assert max_difference(last, explicit[1][:, :, -1:]) <= 1e-6
    assert max_difference(layer.fused(query[:, :, -1:], key, value), last @ value) <= 1e-5


def test_gradients_agree_on_both_paths() -> None:
    layer = attention().train().requires_grad_(True)
    grads = []
    for need_weights in (False, True):
        layer.zero_grad()
        layer(tokens(7), need_weights=need_weights)[0].square().mean().backward()
        grads.append([parameter.grad.clone() for parameter in layer.parameters()])
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("qkv_bias", [True, False])
def test_the_matrices_of_a_head_compute_what_the_layer_does(qkv_bias: bool) -> None:
    layer, x = attention(16, 24, 3, qkv_bias=qkv_bias), tokens(6)
    of, found = layer.matrices(), layer.queries_keys_values(x)
    expected = layer.c_attn(x).split(24, dim=-1)
    for W, b, ours, whole in zip(of[:3], of[4:7], found, expected, strict=True):
        assert W.shape == (3, 16, 8) and ours.shape == (2, 3, 6, 8)
        assert max_difference(ours.transpose(1, 2).flatten(2), whole) == 0
        assert max_difference(x[:, None] @ W + b[:, None], ours) <= 1e-5
    for head in range(3):
        for one, all_heads in zip(layer.queries_keys_values(x, head=head), found, strict=True):
            assert max_difference(one, all_heads[:, head, None]) <= 1e-5
    context, _ = layer.context(x)
    outputs = context.transpose(1, 2) @ of.W_O  # (B, n_head, T, d_out)
    assert max_difference(outputs.sum(1) + of.b_O, layer(x)[0]) <= 1e-5
