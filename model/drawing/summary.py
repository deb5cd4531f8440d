"""Thumbnails and metrics of pictures that grow row by row."""

import importlib.util
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .metrics import DISTANCES, FIRST_QUERIES, FRAME_MEASURES, distance_sums, metric_sums
from .thumbnails import Thumbnails

BACK = np.array(DISTANCES)


class Summary:
    """Thumbnails and metrics of ``n_pictures`` lower triangles that grow row by row, up to ``capacity`` rows.

    With ``is_square``, of squares in which every query sees all ``capacity`` keys. Torch measures and pools, or the
    compiled loops once ``compile_summaries`` has compiled them.
    """

    summarise: ClassVar[Callable[..., None] | None] = None

    def __init__(self, n_pictures: int, capacity: int, *, is_square: bool = False) -> None:
        self.is_square = is_square
        self.thumbnails = Thumbnails(n_pictures, capacity, is_square=is_square)
        self.sums = torch.zeros(n_pictures, len(FRAME_MEASURES))

    @property
    def nbytes(self) -> int:
        return self.thumbnails.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Measure and pool rows of some pictures from ``first`` on, ``(pictures, rows, keys)``."""
        self.thumbnails.make_room(first + block.shape[1])
        if Summary.summarise:
            sums, cells = self.sums[pictures].numpy(), self.thumbnails.cells[pictures].numpy()
            largest = np.zeros(block.shape[2], np.float32)
            Summary.summarise(block.numpy(), first, self.is_square, BACK, sums, self.thumbnails.factor, cells, largest)
            return
        self.sums[pictures] += torch.cat(
            [metric_sums(block, first, is_square=self.is_square), distance_sums(block, first)], -1
        )
        self.thumbnails.add(pictures, first, block)

    def means(self, n_rows: int) -> Tensor:
        """The mean over the queries of ``n_rows`` rows of each of the ``FRAME_MEASURES``: ``(n_pictures, n_measures)``.

        Queries without such a key are left out: the first query, and the first ``n`` for the distance of ``n`` tokens.
        """
        return self.sums / (n_rows - FIRST_QUERIES).clamp_min(1)


def compile_summaries() -> None:
    """Compile the loops for summaries if possible; like the others, they are kept if ``keep_compiled_code`` says so."""
    if importlib.util.find_spec("numba") is None:
        return
    from ..kernels import jit

    if jit.is_supported() and Summary.summarise is None:
        from ..kernels.summaries import summarise

        one = np.zeros((1, 1, 1), np.float32)
        loops: Callable[..., None] = summarise
        loops(one, 0, False, BACK, one[0], 1, one.astype(np.uint8), one[0, 0])
        Summary.summarise = staticmethod(loops)
