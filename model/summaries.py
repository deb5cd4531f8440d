"""What many attention weights come to: a number for how a head looks, means over heads, and attention rollout."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from .memory import mapped

METRICS = ("entropy", "distance", "first", "previous", "uniform")


def metric_sums(rows: Tensor, first: int) -> Tensor:
    """What each of ``METRICS`` is for the queries ``first``, ``first + 1``, ... summed: ``(heads, len(METRICS))``.

    ``rows`` ``(heads, n, S)`` holds their attention weights, zero beyond the query itself. For one query

    - entropy: of its weights, in bits;
    - distance: the mean number of tokens that it looks back;
    - first, previous: the weight on the first token, and on the one before it;
    - uniform: how far it is from looking everywhere alike, the total variation distance, 0 to 1.

    The first query does not count: it has nothing but itself to look at.
    """
    heads, n, S = rows.shape
    if first == 0:
        rows, first, n = rows[:, 1:], 1, n - 1
    if not n:
        return torch.zeros(heads, len(METRICS))
    queries = torch.arange(first, first + n)
    keys = torch.arange(S)
    back = queries[:, None] - keys
    even = (1 / (queries + 1))[:, None]
    away = (rows - even).abs_().masked_fill_(back < 0, 0).sum(-1) / 2
    previous = rows[:, torch.arange(n), queries - 1]
    entropy = torch.special.entr(rows).sum(-1) / math.log(2)
    parts = (entropy, (rows * back).sum(-1), rows[:, :, 0], previous, away)
    return torch.stack([part.sum(-1) for part in parts], -1)


class Rollout:
    """Attention rollout (Abnar & Zuidema 2020), one layer or one token more at a time.

    Up to layer ``l`` it is ``R[l] = (A[l] + I) / 2 @ R[l - 1]``, with ``A`` the mean over the layer's heads and half of
    each token passed by in the residual stream: how much of each token's position is in each position after ``l``.
    """

    def __init__(self, n_layer: int, capacity: int) -> None:
        self.n_layer = n_layer
        # The last layer's is never needed again. Nothing looks ahead: above the diagonal it stays zero.
        self.below = mapped((n_layer - 1) * capacity, capacity).view(n_layer - 1, capacity, capacity)

    def extend(self, means: Tensor, first: int, layer: int = 0) -> Tensor:
        """The rollout's rows of the queries from ``first`` on in ``layer`` and those after it.

        ``means`` and the result are ``(layers, n, S)``, ``S = first + n``; earlier rows and layers came before.
        """
        _, n, S = means.shape
        result = torch.empty_like(means)
        for i, mean in enumerate(means):
            if layer + i == 0:
                result[i] = mean
                result[i, torch.arange(n), first + torch.arange(n)] += 1
            else:
                below = self.below[layer + i - 1, :S, :S]
                torch.matmul(mean, below, out=result[i]).add_(below[first:])
            result[i] /= 2
            if layer + i < self.n_layer - 1:
                self.below[layer + i, first:S, :S] = result[i]
        return result


def rollout(means: Iterable[Tensor]) -> Tensor:
    """Attention rollout through the layers whose mean attention weights ``(T, T)`` are ``means``: ``(T, T)``."""
    result = None
    for mean in means:
        below = torch.eye(mean.shape[-1]) if result is None else result
        result = (mean @ below + below) / 2
    assert result is not None, "no layers"
    return result
