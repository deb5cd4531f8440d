"""Thumbnails: the attention weights of every picture, pooled into cells of one byte."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

SIDE = 65  # most cells: one for the first token, and 64


class ThumbnailRows(NamedTuple):
    """The ``cells`` of all pictures of ``n_rows`` rows from pooled row ``first`` on: see ``Thumbnails.rows``."""

    n_rows: int
    factor: int
    first: int
    cells: bytes


class Thumbnails:
    """Thumbnails of ``n_pictures`` lower triangles that grow row by row, or of whole squares, added all at once.

    The first token has a separate cell, because it is an attention sink for many heads. The others share a cell of
    ``factor`` by ``factor``, the smallest power of two that keeps the side at most ``SIDE``. ``cells``
    ``(n_pictures, side, side)`` holds the codes of ``encode_weights``.
    """

    def __init__(self, n_pictures: int, capacity: int, *, is_square: bool = False) -> None:
        self.is_square = is_square
        side = min(capacity, SIDE)
        self.cells = torch.zeros(n_pictures, side, side, dtype=torch.uint8)
        self.factor = 1

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Pool rows of some pictures from ``first`` on, ``(pictures, rows, keys)``; a NaN counts as 0."""
        # Tiles end at multiples of the factor; the first has one cell.
        top = tile(first, self.factor)
        tiles = encode_weights(pool(block, self.factor, top * self.factor - first + 1, 1).nan_to_num(0))
        target = self.cells[pictures, top : top + tiles.shape[1], : tiles.shape[2]]
        torch.maximum(target, tiles, out=target)

    def make_room(self, n_rows: int) -> None:
        """Have cells for ``n_rows`` rows."""
        while tile(n_rows - 1, self.factor) >= SIDE:
            self.coarsen()

    def coarsen(self) -> None:
        """Double the factor: the maximum of 2 x 2 cells is the maximum of all their weights."""
        self.factor *= 2
        halved = pool(self.cells, 2, 1, 1)  # the first token's cell stays separate
        self.cells = F.pad(halved, (0, SIDE - halved.shape[2], 0, SIDE - halved.shape[1]))

    def rows(self, start: int, n_rows: int) -> ThumbnailRows:
        """The pooled rows from the first one that rows from ``start`` on affect to the newest.

        ``cells`` are those of each lower triangle, or square, one picture after the other.
        """
        first, end = tile(start, self.factor), tile(n_rows - 1, self.factor) + 1
        cells = self.cells[:, first:end, :end].numpy()
        seen = cells if self.is_square else cells[:, lower(end)[first:]]
        return ThumbnailRows(n_rows, self.factor, first, seen.tobytes())


@lru_cache(SIDE)
def lower(side: int) -> NDArray[np.bool_]:
    """Which cells of a square are in its lower triangle."""
    return np.tri(side, dtype=bool)


def tile(position: int, factor: int) -> int:
    """The thumbnail cell of a token: the first token has its own cell; every ``factor`` of the others share one."""
    return -(-position // factor)


def pool(attention: Tensor, factor: int, n_rows: int, n_keys: int) -> Tensor:
    """The largest weight of each ``factor x factor`` tile of ``(..., rows, keys)``.

    The first tiles have only ``n_rows`` rows and ``n_keys`` keys; the last ones what is left. The maximum, not the
    mean, because a head that attends to a single token must still be visible in a thumbnail.
    """
    if factor == 1:
        return attention
    return largest(largest(attention, factor, n_rows, -2), factor, n_keys, -1)


def largest(weights: Tensor, factor: int, n_first: int, dim: int) -> Tensor:
    """The maxima of the ``n_first`` first entries of a dimension, and of each ``factor`` after them."""
    n_first = min(n_first, weights.shape[dim])
    n_whole, n_rest = divmod(weights.shape[dim] - n_first, factor)
    first, whole, rest = weights.split([n_first, n_whole * factor, n_rest], dim)
    parts = [first.amax(dim, keepdim=True), whole.unflatten(dim, (n_whole, factor)).amax(dim)]
    return torch.cat([*parts, rest.amax(dim, keepdim=True)] if n_rest else parts, dim)


def encode_weights(attention: Tensor) -> Tensor:
    """Weights in [0, 1] as one byte each: 255 * sqrt(weight), rounded, so that small weights stay distinguishable."""
    return attention.clamp(0, 1).sqrt().mul(255).round().to(torch.uint8)
