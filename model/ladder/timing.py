"""Rung 8 of the ladder, timed: how long each construction of the same attention takes, and each stage."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .terms import largest_difference, seeded
from .trainable_attention import StackedHeads, WeightSplits, merge_heads, pack_weight_splits, transfer_heads


class Times(NamedTuple):
    """How long each construction takes, and each stage of the weight splits, in seconds."""

    constructions: dict[str, float]
    stages: dict[str, float]
    difference: float  # the largest difference between the results of the constructions
    rounds: int  # each time is the fastest of at least this many runs


@torch.no_grad()
def time_attention(n_head: int, n_embd: int = 256, n_tokens: int = 256, seconds: float = 0.4) -> Times:
    """Time the same causal attention, built in three ways, on a random text ``(1, n_tokens, n_embd)``.

    Takes about twice ``seconds``. The stacked heads get an output projection too, so that all three compute the same.
    Raises ``ValueError`` if ``n_embd`` is not divisible by ``n_head``.
    """
    splits = seeded(1, lambda: WeightSplits(n_embd, n_embd, n_head)).eval()
    stacked = seeded(1, lambda: StackedHeads(n_embd, n_embd // n_head, n_head)).eval()
    transfer_heads(stacked, splits)
    packed = pack_weight_splits(splits)
    x = torch.randn(1, n_tokens, n_embd, generator=torch.Generator().manual_seed(1))
    constructions: dict[str, Callable[[], Tensor]] = {
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
    results = [construct() for construct in constructions.values()]
    difference = max(largest_difference(results[0], other) for other in results[1:])
    constructions_seconds, constructions_rounds = fastest_seconds(constructions, seconds)
    stages_seconds, stages_rounds = fastest_seconds(stages, seconds)
    return Times(constructions_seconds, stages_seconds, difference, min(constructions_rounds, stages_rounds))


def fastest_seconds(functions: dict[str, Callable[[], Tensor]], seconds: float) -> tuple[dict[str, float], int]:
    """The shortest run of each function, since other load can only make a run longer, and the number of runs.

    The functions run in turn, so that a temporary load affects all of them, at least three times and for ``seconds``.
    """
    fastest = dict.fromkeys(functions, math.inf)
    until, rounds = time.perf_counter() + seconds, 0
    while rounds < 3 or time.perf_counter() < until:
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            fastest[name] = min(fastest[name], time.perf_counter() - start)
        rounds += 1
    return fastest, rounds
