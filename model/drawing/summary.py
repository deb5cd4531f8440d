"""Thumbnails and metrics of pictures that grow row by row."""

import torch
from torch import Tensor

from .metrics import FIRST_QUERIES, FRAME_MEASURES, distance_sums, metric_sums
from .thumbnails import Thumbnails


class Summary:
    """Thumbnails and metrics of ``n_pictures`` lower triangles that grow row by row, up to ``capacity`` rows.

    With ``is_square``, of squares in which every query sees all ``capacity`` keys.
    """

    def __init__(self, n_pictures: int, capacity: int, *, is_square: bool = False) -> None:
        self.is_square = is_square
        self.thumbnails = Thumbnails(n_pictures, capacity, is_square=is_square)
        self.sums = torch.zeros(n_pictures, len(FRAME_MEASURES))

    @property
    def nbytes(self) -> int:
        return self.thumbnails.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Measure and pool rows of some pictures from ``first`` on, ``(pictures, rows, keys)``."""
        self.sums[pictures] += torch.cat(
            [metric_sums(block, first, is_square=self.is_square), distance_sums(block, first)], -1
        )
        self.thumbnails.add(pictures, first, block)

    def means(self, n_rows: int) -> Tensor:
        """The mean over the queries of ``n_rows`` rows of each of the ``FRAME_MEASURES``: ``(n_pictures, n_measures)``.

        Queries without such a key are left out: the first query, and the first ``n`` for the distance of ``n`` tokens.
        """
        return self.sums / (n_rows - FIRST_QUERIES).clamp_min(1)
