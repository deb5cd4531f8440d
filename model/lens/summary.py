"""All pictures of a text at a glance: a thumbnail and the metrics of each."""

import torch
from torch import Tensor

from .metrics import METRICS, metric_sums
from .thumbnails import Thumbnails


class Summary:
    """Thumbnails and metrics of ``n_pictures`` lower triangles that grow row by row, up to ``capacity`` rows."""

    def __init__(self, n_pictures: int, capacity: int) -> None:
        self.thumbnails = Thumbnails(n_pictures, capacity)
        self.sums = torch.zeros(n_pictures, len(METRICS))

    @property
    def nbytes(self) -> int:
        return self.thumbnails.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Measure and pool the rows from ``first`` on of some pictures, ``(pictures, rows, keys)``."""
        self.sums[pictures] += metric_sums(block, first)
        self.thumbnails.add(pictures, first, block)
