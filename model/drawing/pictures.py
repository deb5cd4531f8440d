"""The attention pictures of a text: one per head, and combinations of several heads.

Each layer has ``n_head + 2`` pictures: its heads, their mean, and the attention rollout up to this layer. The last
picture, after those of all layers, is the mean of all heads.

Attention rollout (Abnar & Zuidema 2020) estimates how much each position contributes to each position after a layer. Up
to layer ``l`` it is ``R[l] = (A[l] + I) / 2 @ R[l - 1]`` with ``R[-1] = I``: ``A`` is the mean over the layer's heads,
and half of each token bypasses attention in the residual stream.
"""

import itertools
import math
from collections.abc import Iterable

import torch
from torch import Tensor

from ..errors import InputError
from .weight_buffer import mapped, triangle

ROLLOUT_ROWS = 128  # of a block: nothing above the diagonal of the blocks is kept


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


class GrowingRollout:
    """The rollout of a text that grows by one layer or one token at a time."""

    def __init__(self, n_layer: int, capacity: int) -> None:
        self.n_layer = n_layer
        # Of every layer but the last, whose rollout is never read again; each block ends at its last row's diagonal.
        ends = range(ROLLOUT_ROWS, capacity + ROLLOUT_ROWS, ROLLOUT_ROWS)
        self.blocks = [mapped((n_layer - 1) * ROLLOUT_ROWS, end).view(n_layer - 1, ROLLOUT_ROWS, end) for end in ends]

    @staticmethod
    def nbytes(n_layer: int, capacity: int) -> int:
        """The bytes of all blocks."""
        n_blocks = -(-capacity // ROLLOUT_ROWS)
        return 4 * (n_layer - 1) * ROLLOUT_ROWS**2 * triangle(n_blocks)

    def extend(self, means: Tensor, first: int, layer: int = 0) -> Tensor:
        """The rows of the queries from ``first`` on in ``layer`` and the layers after it.

        ``means`` and the result are ``(layers, n, S)``, ``S = first + n``; earlier rows and layers must have been added
        before.
        """
        result, S = torch.zeros_like(means), means.shape[-1]
        ends = [*range((first // ROLLOUT_ROWS + 1) * ROLLOUT_ROWS, S, ROLLOUT_ROWS), S]
        for start, end in itertools.pairwise([first, *ends]):  # the rows of one block
            rows, stored = slice(start - first, end - first), self.stored(start, end)
            found = self.rows(means[:, rows, :end], start, layer)
            result[:, rows, :end] = found
            stored[layer : layer + len(means)] = found[: self.n_layer - 1 - layer]
        return result

    def stored(self, first: int, end: int) -> Tensor:
        """Where the rows from ``first`` on are kept, which are in one block: ``(n_layer - 1, end - first, end)``."""
        i, place = divmod(first, ROLLOUT_ROWS)
        return self.blocks[i][:, place : place + end - first, :end]

    def rows(self, means: Tensor, first: int, layer: int) -> Tensor:
        """The rows from ``first`` on, which are in one block; ``rollout_rows`` computes the same from whole pictures.

        What earlier rows contribute is the same product in all layers; what these contribute follows layer by layer.
        """
        steps, S = means / 2, means.shape[-1]
        steps.diagonal(first, 1, 2).add_(0.5)  # (A + I) / 2
        if not layer and len(steps) == 1:
            return steps
        result = torch.zeros_like(steps)
        if not layer:
            result[0] = steps[0]
        at, below = max(1, layer), result[0] if not layer else self.stored(first, S)[layer - 1]
        later, found = steps[at - layer :], result[at - layer :]
        for start, block in zip(range(0, first, ROLLOUT_ROWS), self.blocks, strict=False):
            end = min(start + ROLLOUT_ROWS, first)
            found[..., :end] += later[..., start:end] @ block[at - 1 : at - 1 + len(later), : end - start, :end]
        for rows, step in zip(found, later[..., first:], strict=True):
            below = rows.addmm_(step, below)
        return result
