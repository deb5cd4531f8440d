"""Intermediate results of the ladder, so that each result can be traced to the terms that produced it."""

import threading
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from .averages import naive_softmax, stable_softmax, sum_normalise
from .text import TokenAndPositionEmbedding, WordTokenizer

Made = TypeVar("Made")
seeding = threading.Lock()


def seeded(seed: int, make: Callable[[], Made]) -> Made:
    """The result of ``make`` with torch's global CPU generator seeded with ``seed``, as in the published recipes.

    All threads share that generator, so a lock serialises the calls. Its state is restored afterwards.
    """
    with seeding, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


def largest_difference(a: Tensor, b: Tensor) -> float:
    """The largest absolute difference between two tensors of the same shape."""
    return (a - b).abs().max().item()


def dot_product_terms(a: Tensor, b: Tensor) -> Tensor:
    """The products whose sum is each cell of ``a b^T``: ``(..., T, C)`` and ``(..., S, C)`` give ``(..., T, S, C)``."""
    return a[..., :, None, :] * b[..., None, :, :]


class SoftmaxTerms(NamedTuple):
    """The terms of a softmax over ``(..., T, S)`` scores: ``exponentials / sums[..., None]`` is the result."""

    largest: Tensor  # (..., T), subtracted from each score first
    exponentials: Tensor  # (..., T, S)
    sums: Tensor  # (..., T)


def softmax_terms(attn_scores: Tensor) -> SoftmaxTerms:
    """The intermediate results of ``stable_softmax``."""
    largest = attn_scores.amax(dim=-1)
    exponentials = (attn_scores - largest[..., None]).exp()
    return SoftmaxTerms(largest, exponentials, exponentials.sum(dim=-1))


def naive_terms(attn_scores: Tensor) -> tuple[Tensor, Tensor]:
    """The exponentials ``(..., T, S)`` and their sums ``(..., T)`` in ``naive_softmax``, which can overflow."""
    exponentials = attn_scores.exp()
    return exponentials, exponentials.sum(dim=-1)


class ScaledSoftmax(NamedTuple):
    """Scores ``(..., T, T)`` multiplied by a factor, and both softmaxes of them."""

    scores: Tensor
    naive: Tensor
    stable: Tensor


def scaled_softmax(attn_scores: Tensor, factor: float) -> ScaledSoftmax:
    """Both softmaxes of ``attn_scores * factor``: if the scores are large, the naive one overflows to NaN."""
    scaled = attn_scores * factor
    return ScaledSoftmax(scaled, naive_softmax(scaled), stable_softmax(scaled))


class CausalStages(NamedTuple):
    """Both computations of masked attention weights, by step: ``(..., T, T)`` each, except ``left`` ``(..., T)``."""

    all_weights: Tensor  # softmax over all keys
    cut: Tensor  # these weights with the hidden ones set to 0
    left: Tensor  # the sum of each row after that
    renormalised: Tensor  # the rows divided by their sum
    masked: Tensor  # unscaled scores with the hidden ones set to minus infinity
    weights: Tensor  # softmax of the scaled masked scores


def causal_stages(attn_scores: Tensor, scale: float, mask: Tensor | None = None) -> CausalStages:
    """The intermediate results of ``causal_by_renormalising`` and ``causal_by_minus_infinity``.

    ``mask`` ``(T, T)`` is true where the query of the row may look at the key of the column: by default at itself and
    at what comes before.
    """
    if mask is None:
        mask = torch.ones(attn_scores.shape[-2:], dtype=torch.bool).tril()
    all_weights = stable_softmax(attn_scores * scale)
    cut = all_weights * mask
    masked = attn_scores.masked_fill(~mask, -torch.inf)
    return CausalStages(all_weights, cut, cut.sum(dim=-1), sum_normalise(cut), masked, stable_softmax(masked * scale))


class EmbeddedWords(NamedTuple):
    """A sentence of ``T`` words: ids ``(T,)``, token and position embeddings, and their sum, ``(T, n_embd)`` each."""

    ids: Tensor
    token: Tensor
    position: Tensor
    x: Tensor


def embed_words(words: list[str], n_embd: int = 3, seed: int = 123) -> EmbeddedWords:
    """Untrained embeddings of the words of a sentence, with the sorted words as the vocabulary."""
    ids = torch.tensor(WordTokenizer(" ".join(words)).encode(" ".join(words)))
    vocab_size = int(ids.max()) + 1
    embedding = seeded(seed, lambda: TokenAndPositionEmbedding(vocab_size, len(ids), n_embd))
    with torch.no_grad():
        return EmbeddedWords(ids, embedding.token(ids), embedding.position.weight, embedding(ids))


class RandomQuery(NamedTuple):
    """A random query over random keys: scores ``(n_keys,)``, and attention weights without and with the scale."""

    scores: Tensor
    unscaled: Tensor
    scaled: Tensor


def weights_of_random_query(head_dim: int, n_keys: int, generator: torch.Generator) -> RandomQuery:
    """The attention weights of a random query over random keys, each of ``head_dim`` standard normal numbers."""
    query = torch.randn(head_dim, generator=generator)
    attn_scores = torch.randn(n_keys, head_dim, generator=generator) @ query
    return RandomQuery(attn_scores, stable_softmax(attn_scores), stable_softmax(attn_scores * head_dim**-0.5))


class SpreadTerms(NamedTuple):
    """The terms of the variance of the scores, and of the rows' mean largest weight."""

    n_scores: int
    mean: float
    squares: float  # the sum of squared distances from the mean; divided by n_scores - 1 it is the variance
    n_rows: int
    largest: float  # the sum of the rows' largest weights


def spread_terms(
    head_dim: int, n_tokens: int, generator: torch.Generator | None = None
) -> tuple[SpreadTerms, SpreadTerms]:
    """The terms of the results of ``scale_demonstration``, for the scores that it draws with the same generator."""
    query = torch.randn(n_tokens, head_dim, generator=generator)
    key = torch.randn(n_tokens, head_dim, generator=generator)
    spreads = []
    for scores in (query @ key.T, query @ key.T * head_dim**-0.5):
        mean = scores.mean()
        squares = (scores - mean).square().sum()
        largest = stable_softmax(scores).amax(dim=-1).sum()
        spreads.append(SpreadTerms(scores.numel(), mean.item(), squares.item(), n_tokens, largest.item()))
    return spreads[0], spreads[1]
