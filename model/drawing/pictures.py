"""The attention pictures of a text: one per head, and combinations of several heads.

Each layer has ``n_head + 2`` pictures: its heads, their mean, and the attention rollout up to this layer. The last
picture, after those of all layers, is the mean of all heads.

Attention rollout (Abnar & Zuidema 2020) estimates how much each position contributes to each position after a layer. Up
to layer ``l`` it is ``R[l] = (A[l] + I) / 2 @ R[l - 1]`` with ``R[-1] = I``: ``A`` is the mean over the layer's heads,
and half of each token bypasses attention in the residual stream.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from ..errors import InputError


def n_pictures(n_layer: int, n_head: int) -> int:
    return n_layer * (n_head + 2) + 1


def picture_index(layer: int, column: int, n_layer: int, n_head: int) -> int:
    """The index of a picture: ``column`` is a head, ``n_head`` for the mean, ``n_head + 1`` for the rollout.

    ``layer = n_layer, column = n_head`` is the mean of all heads. Raises ``InputError`` if there is no such picture.
    """
    if (layer, column) == (n_layer, n_head):
        return n_pictures(n_layer, n_head) - 1
    if not (0 <= layer < n_layer and 0 <= column < n_head + 2):
        raise InputError("picture", f"There is no picture in layer {layer}, column {column}.")
    return layer * (n_head + 2) + column


def layers_of(layer: int, column: int, n_layer: int, n_head: int) -> range:
    """The layers whose attention weights a picture is made from."""
    if layer == n_layer:
        return range(n_layer)
    return range(layer + 1) if column == n_head + 1 else range(layer, layer + 1)


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


def last_rows(layers: Iterable[Tensor]) -> Tensor:
    """The last token's row of every picture, ``(n_pictures, T)``, from all layers' weights ``(n_head, n, T)``.

    Rollouts need all rows, ``n = T``; from the last row alone, they are NaN.
    """
    rows: list[Tensor] = []
    means: list[Tensor] = []
    rolled = None
    for attention in layers:
        mean = attention.mean(0)
        if len(mean) < mean.shape[-1]:
            rolled = torch.full_like(mean, math.nan)
        else:
            rolled = rollout_rows(mean, torch.eye(len(mean)) if rolled is None else rolled)
        means.append(mean[-1:])
        rows += [attention[:, -1], mean[-1:], rolled[-1:]]
    return torch.cat([*rows, torch.stack(means).mean(0)])
