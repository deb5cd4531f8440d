"""All pictures of a text at a glance: a thumbnail and the metrics of each."""

import torch
from torch import Tensor

from .metrics import DISTANCES, MEASURES, METRICS, distance_sums, metric_sums
from .thumbnails import Thumbnails


class Summary:
    """Thumbnails and metrics of ``n_pictures`` lower triangles that grow row by row, up to ``capacity`` rows."""

    def __init__(self, n_pictures: int, capacity: int) -> None:
        self.thumbnails = Thumbnails(n_pictures, capacity)
        self.sums = torch.zeros(n_pictures, len(MEASURES))

    @property
    def nbytes(self) -> int:
        return self.thumbnails.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Measure and pool the rows from ``first`` on of some pictures, ``(pictures, rows, keys)``."""
        self.sums[pictures] += torch.cat([metric_sums(block, first), distance_sums(block, first)], -1)
        self.thumbnails.add(pictures, first, block)

    def means(self, n_rows: int) -> Tensor:
        """The mean over the queries of ``n_rows`` rows of each of ``MEASURES``: ``(n_pictures, len(MEASURES))``.

        Queries that have no such key are left out: the first one, and the first ``n`` of ``n`` tokens back.
        """
        left_out = torch.tensor([1] * len(METRICS) + list(DISTANCES))
        return self.sums / (n_rows - left_out).clamp_min(1)
