"""The exact attention weights of every picture, or of the few that somebody looks at."""

from collections import deque

import torch
from torch import Tensor

from .mapped import mapped

MAX_FOLLOWED = 4  # pictures whose weights are kept where not all are
MAX_NEWEST = 12  # rows of all pictures that are kept there while the text is written


def triangle(n: int) -> int:
    """The number of cells in the first ``n`` rows of a lower triangle."""
    return n * (n + 1) // 2


class WeightBuffer:
    """Float32 lower triangles, row after row.

    With ``keep_all`` those of all pictures stay. Otherwise only those of the pictures last asked for, which must be
    recomputed up to the row at which they were first wanted, and the newest rows of all pictures.
    """

    def __init__(self, n_pictures: int, capacity: int, *, keep_all: bool) -> None:
        self.n_pictures, self.capacity = n_pictures, capacity
        self.weights = mapped(n_pictures, triangle(capacity)) if keep_all else None
        self.followed: dict[int, Tensor] = {}
        self.newest: deque[tuple[int, Tensor]] = deque(maxlen=MAX_NEWEST)  # (query, its row of every picture)

    @property
    def nbytes(self) -> int:
        """The most bytes that it will hold."""
        return MAX_FOLLOWED * triangle(self.capacity) * 4 if self.weights is None else self.weights.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Keep the rows from ``first`` on of some pictures, ``(pictures, rows, keys)``."""
        for i in range(block.shape[1]):
            cells = slice(triangle(first + i), triangle(first + i + 1))
            if self.weights is not None:
                self.weights[pictures, cells] = block[:, i, : first + i + 1]
            for index in range(self.n_pictures)[pictures]:
                if index in self.followed:
                    self.followed[index][cells] = block[index - pictures.start, i, : first + i + 1]

    def add_newest(self, first: int, block: Tensor) -> None:
        """Keep the last few rows from ``first`` on of all pictures, ``(n_pictures, rows, keys)``."""
        if self.weights is None:
            for i in range(max(0, block.shape[1] - MAX_NEWEST), block.shape[1]):
                self.newest.append((first + i, block[:, i, : first + i + 1].contiguous()))

    def follow(self, index: int) -> Tensor:
        """Room for one picture's weights, which are kept from now on; the one followed longest makes way."""
        rows = mapped(1, triangle(self.capacity))[0]
        if len(self.followed) == MAX_FOLLOWED:
            del self.followed[next(iter(self.followed))]
        self.followed[index] = rows
        return rows

    def picture(self, index: int, start: int, stop: int) -> Tensor | None:
        """The cells of one picture's rows from ``start`` to ``stop``, None where it is not kept."""
        rows = self.followed.get(index) if self.weights is None else self.weights[index]
        return None if rows is None else rows[triangle(start) : triangle(stop)]

    @property
    def keeps_all(self) -> bool:
        return self.weights is not None

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows ``start`` to ``stop`` of all pictures, where all are kept: ``(n_pictures, stop - start, stop)``."""
        assert self.weights is not None, "all are kept"
        block = torch.zeros(self.n_pictures, stop - start, stop)
        for i, row in enumerate(range(start, stop)):
            block[:, i, : row + 1] = self.weights[:, triangle(row) : triangle(row + 1)]
        return block

    def query(self, query: int) -> Tensor | None:
        """One row of every picture, ``(n_pictures, query + 1)``, None where it is not kept."""
        if self.weights is not None:
            return self.weights[:, triangle(query) : triangle(query + 1)]
        return next((rows for place, rows in self.newest if place == query), None)


def lower_triangle(square: Tensor) -> Tensor:
    """The cells ``(T * (T + 1) / 2,)`` of a picture ``(T, T)``, row after row."""
    return square[torch.ones_like(square, dtype=torch.bool).tril()]
