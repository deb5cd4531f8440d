"""What a page that shows the ladder needs beside the rungs: terms of sums, recipes with a seed, times, a real head.

Nothing here is a rung of its own: it takes the rungs of :mod:`model.ladder` apart, so that each number of theirs can be
followed to the numbers that made it.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor

from ..attention import MultiHeadAttention
from ..gpt import Block
from ..lens.residuals import Residuals
from .attention import (
    StackedHeads,
    WeightSplits,
    causal_by_minus_infinity,
    causal_by_renormalising,
    merge_heads,
    pack_weight_splits,
    split_heads,
    transfer_heads,
)
from .averages import Attention, mask_future, naive_softmax, stable_softmax
from .text import TokenAndPositionEmbedding, WordTokenizer

Made = TypeVar("Made")
_seeding = threading.Lock()


def seeded(seed: int, make: Callable[[], Made]) -> Made:
    """What ``make`` builds when torch's global CPU generator starts at ``seed``, as the published recipes have it.

    All threads share that generator: one recipe at a time, and it is left as it was found.
    """
    with _seeding, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


def largest_difference(a: Tensor, b: Tensor) -> float:
    """The largest absolute difference of two tensors of one shape: how equal two ways to one result are."""
    return (a - b).abs().max().item()


def dot_product_terms(a: Tensor, b: Tensor) -> Tensor:
    """The products whose sum is each cell of ``a b^T``: ``(..., T, C)`` and ``(..., S, C)`` give ``(..., T, S, C)``."""
    return a[..., :, None, :] * b[..., None, :, :]


class SoftmaxTerms(NamedTuple):
    """Softmax of ``(..., T, S)`` scores taken apart: ``exponentials / sums[..., None]`` are the attention weights."""

    largest: Tensor  # (..., T), taken from each score first
    exponentials: Tensor  # (..., T, S)
    sums: Tensor  # (..., T)


def softmax_terms(attn_scores: Tensor) -> SoftmaxTerms:
    """The numbers between the scores and :func:`stable_softmax` of them."""
    largest = attn_scores.amax(dim=-1)
    exponentials = (attn_scores - largest[..., None]).exp()
    return SoftmaxTerms(largest, exponentials, exponentials.sum(dim=-1))


def naive_terms(attn_scores: Tensor) -> tuple[Tensor, Tensor]:
    """The exponentials ``(..., T, S)`` and their sums ``(..., T)`` behind :func:`naive_softmax`: they overflow."""
    exponentials = attn_scores.exp()
    return exponentials, exponentials.sum(dim=-1)


class Normalised(NamedTuple):
    """Scores ``(..., T, T)`` made ``factor`` times larger, and the two softmaxes of them."""

    scores: Tensor
    naive: Tensor
    stable: Tensor


def normalise_larger(attn_scores: Tensor, factor: float) -> Normalised:
    """What becomes of softmax when the scores are large: the naive one overflows to NaN."""
    larger = attn_scores * factor
    return Normalised(larger, naive_softmax(larger), stable_softmax(larger))


class CausalStages(NamedTuple):
    """Both ways to causal attention weights, step by step, ``(..., T, T)`` each; ``left`` ``(..., T)``."""

    all_weights: Tensor  # softmax over all keys
    cut: Tensor  # the future set to 0
    left: Tensor  # what a row then adds up to
    renormalised: Tensor
    masked: Tensor  # scores before the scale, the future at minus infinity
    weights: Tensor


def causal_stages(attn_scores: Tensor, scale: float) -> CausalStages:
    """What :func:`causal_by_renormalising` and :func:`causal_by_minus_infinity` go through."""
    all_weights = stable_softmax(attn_scores * scale)
    cut = all_weights.tril()
    return CausalStages(
        all_weights,
        cut,
        cut.sum(dim=-1),
        causal_by_renormalising(attn_scores, scale),
        mask_future(attn_scores),
        causal_by_minus_infinity(attn_scores, scale),
    )


class EmbeddedWords(NamedTuple):
    """A sentence of ``T`` words: ids ``(T,)``, and ``(T, n_embd)`` token and position embeddings with their sum."""

    ids: Tensor
    token: Tensor
    position: Tensor
    x: Tensor


def embed_words(words: list[str], n_embd: int = 3, seed: int = 123) -> EmbeddedWords:
    """Untrained vectors for the words of one sentence, whose sorted words are the vocabulary."""
    ids = torch.tensor(WordTokenizer(" ".join(words)).encode(" ".join(words)))
    vocab_size = int(ids.max()) + 1
    embedding = seeded(seed, lambda: TokenAndPositionEmbedding(vocab_size, len(ids), n_embd))
    with torch.no_grad():
        return EmbeddedWords(ids, embedding.token(ids), embedding.position.weight, embedding(ids))


def scores_of_one_query(head_dim: int, n_keys: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Attention weights ``(n_keys,)`` of a random normal query over random normal keys: without the scale, and with."""
    query = torch.randn(head_dim, generator=generator)
    attn_scores = torch.randn(n_keys, head_dim, generator=generator) @ query
    return stable_softmax(attn_scores), stable_softmax(attn_scores * head_dim**-0.5)


# ---- Where the time goes ---------------------------------------------------------------------------------------------


class Times(NamedTuple):
    """Seconds of each construction and of each stage of the weight splits, and how far the results differ.

    Each is the fastest of at least ``rounds`` runs.
    """

    constructions: dict[str, float]
    stages: dict[str, float]
    difference: float
    rounds: int


@torch.inference_mode()
def time_attention(n_head: int, n_embd: int = 256, n_tokens: int = 256, seconds: float = 0.4) -> Times:
    """Time the same causal attention built three ways, on one random text ``(1, n_tokens, n_embd)``, twice ``seconds``.

    Stacked heads get an output projection too, that all three give the same result. Raises ``ValueError`` when
    ``n_embd`` is not divisible by ``n_head``.
    """
    splits = seeded(1, lambda: WeightSplits(n_embd, n_embd, n_head)).eval()
    stacked = seeded(1, lambda: StackedHeads(n_embd, n_embd // n_head, n_head)).eval()
    transfer_heads(stacked, splits)
    packed = pack_weight_splits(splits)
    x = torch.randn(1, n_tokens, n_embd, generator=torch.Generator().manual_seed(1))
    ways: dict[str, Callable[[], Tensor]] = {
        "stacked heads": lambda: splits.out_proj(stacked(x)),
        "weight splits": lambda: splits(x),
        "MultiHeadAttention": lambda: packed(x)[0],
    }
    query, key, value = splits.project(x)
    attn_scores = query @ key.mT
    attn_weights = splits.attention_weights(attn_scores)
    context = attn_weights @ value
    stages: dict[str, Callable[[], Tensor]] = {
        "queries, keys, values": lambda: splits.project(x)[2],
        "attention scores": lambda: query @ key.mT,
        "scale, mask, softmax": lambda: splits.attention_weights(attn_scores),
        "context vectors": lambda: attn_weights @ value,
        "output projection": lambda: splits.out_proj(merge_heads(context)),
    }
    results = [way() for way in ways.values()]
    difference = max(largest_difference(results[0], other) for other in results[1:])
    found, rounds = fastest_seconds(ways, seconds)
    found_stages, rounds_of_stages = fastest_seconds(stages, seconds)
    return Times(found, found_stages, difference, min(rounds, rounds_of_stages))


def fastest_seconds(ways: dict[str, Callable[[], Tensor]], seconds: float) -> tuple[dict[str, float], int]:
    """The shortest run of each way, and of how many: what else the machine does can only make a run longer.

    Each way in turn, at least three times, until ``seconds`` are over: a busy moment hits all alike.
    """
    fastest = dict.fromkeys(ways, math.inf)
    until, rounds = time.perf_counter() + seconds, 0
    while rounds < 3 or time.perf_counter() < until:
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            fastest[name] = min(fastest[name], time.perf_counter() - began)
        rounds += 1
    return fastest, rounds


# ---- A head of a real model ------------------------------------------------------------------------------------------


class RealHead(NamedTuple):
    """One head of a trained model: queries and keys ``(T, head_dim)``, the scale, and its attention, float32."""

    query: Tensor
    key: Tensor
    scale: float
    attention: Attention


@torch.inference_mode()
def head_by_ladder(reading: Residuals, layer: int, head: int) -> RealHead:
    """A head of the model that made ``reading``, computed with the ladder's steps instead of the model's own."""
    block = cast(Block, reading.gpt.h[layer])
    attn: MultiHeadAttention = block.attn
    wide = attn.c_attn(block.ln_1(reading.stream[layer]))[0].float().cpu()  # (T, 3 C)
    query, key, value = (split_heads(part, attn.n_head)[head] for part in wide.chunk(3, dim=-1))
    attn_scores = query @ key.mT
    attn_weights = causal_by_minus_infinity(attn_scores, attn.scale)
    return RealHead(query, key, attn.scale, Attention(attn_scores, attn_weights, attn_weights @ value))
