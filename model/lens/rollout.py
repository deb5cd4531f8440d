"""Attention rollout (Abnar & Zuidema 2020): how much of each token's position is in each position after a layer.

Up to layer ``l`` it is ``R[l] = (A[l] + I) / 2 @ R[l - 1]`` with ``R[-1] = I``: ``A`` is the mean over the layer's
heads, and half of each token passes by in the residual stream.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from .mapped import mapped


def rollout_rows(mean: Tensor, below: Tensor, first: int = 0) -> Tensor:
    """The rollout's rows from ``first`` on after a layer.

    ``mean`` ``(n, S)`` are those rows of the layer's mean attention weights, ``below`` ``(S, S)`` is the rollout of the
    layer before.
    """
    return (mean @ below).add_(below[first:]).div_(2)


def rollout(means: Iterable[Tensor]) -> Tensor:
    """The rollout ``(T, T)`` through the layers whose mean attention weights ``(T, T)`` are ``means``."""
    result = None
    for mean in means:
        result = rollout_rows(mean, torch.eye(mean.shape[-1]) if result is None else result)
    assert result is not None, "no layers"
    return result


class GrowingRollout:
    """The rollout of a text that grows: one layer or one token more at a time."""

    def __init__(self, n_layer: int, capacity: int) -> None:
        self.n_layer = n_layer
        # The last layer's is never needed again. No token looks ahead: above the diagonal it stays zero.
        self.below = mapped((n_layer - 1) * capacity, capacity).view(n_layer - 1, capacity, capacity)

    def extend(self, means: Tensor, first: int, layer: int = 0) -> Tensor:
        """The rows of the queries from ``first`` on in ``layer`` and the layers after it.

        ``means`` and the result are ``(layers, n, S)``, ``S = first + n``; earlier rows and layers came before.
        """
        result = torch.empty_like(means)
        S = means.shape[-1]
        for i, mean in enumerate(means, start=layer):
            below = torch.eye(S) if i == 0 else self.below[i - 1, :S, :S]
            result[i - layer] = rollout_rows(mean, below, first)
            if i < self.n_layer - 1:
                self.below[i, first:S, :S] = result[i - layer]
        return result
