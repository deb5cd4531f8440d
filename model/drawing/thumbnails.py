"""Thumbnails: the attention weights of every picture, pooled into cells of one byte."""

import torch
from torch import Tensor
from torch.nn import functional as F

SIDE = 65  # most cells: one for the first token, and 64


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
        while tile(first + block.shape[1] - 1, self.factor) >= SIDE:
            self.coarsen()
        # Tiles end at multiples of the factor; the first has one cell.
        top = tile(first, self.factor)
        before = first - ((top - 1) * self.factor + 1) if top else self.factor - 1
        tiles = encode_weights(pool(F.pad(block, (self.factor - 1, 0, before, 0)), self.factor).nan_to_num_(0))
        target = self.cells[pictures, top : top + tiles.shape[1], : tiles.shape[2]]
        torch.maximum(target, tiles, out=target)

    def coarsen(self) -> None:
        """Double the factor: the maximum of 2 x 2 cells is the maximum of all their weights."""
        self.factor *= 2
        padded = F.pad(self.cells, (1, 0, 1, 0))  # the first token's cell stays separate
        halved = pool(padded.float(), 2).to(torch.uint8)
        self.cells = torch.zeros(len(self.cells), SIDE, SIDE, dtype=torch.uint8)
        self.cells[:, : halved.shape[1], : halved.shape[2]] = halved

    def rows(self, start: int, n_rows: int) -> tuple[int, bytes]:
        """The first pooled row that rows from ``start`` on affect, and the bytes from there to the newest row.

        The bytes are the pooled rows of each lower triangle, or square, one picture after the other.
        """
        first, end = tile(start, self.factor), tile(n_rows - 1, self.factor) + 1
        below = torch.ones(end, end, dtype=torch.bool)
        below = (below if self.is_square else below.tril())[first:]
        return first, self.cells[:, first:end, :end][:, below].numpy().tobytes()


def tile(position: int, factor: int) -> int:
    """The thumbnail cell of a token: the first has a separate cell, each ``factor`` of the others share one."""
    return -(-position // factor)


def pool(attention: Tensor, factor: int) -> Tensor:
    """The largest weight of each ``factor x factor`` tile: ``(..., T, T) -> (..., ceil(T / factor), same)``.

    The maximum, not the mean, because a head that attends to a single token must still be visible in a thumbnail.
    """
    if factor == 1:
        return attention
    flat = attention.flatten(0, -3)[None]
    pooled = F.max_pool2d(flat, factor, ceil_mode=True)[0]
    return pooled.unflatten(0, attention.shape[:-2])


def encode_weights(attention: Tensor) -> Tensor:
    """Weights in [0, 1] as one byte each: 255 * sqrt(weight), rounded, so that small weights stay distinguishable."""
    return attention.clamp(0, 1).sqrt().mul(255).round().to(torch.uint8)
