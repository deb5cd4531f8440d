"""Keeps the float32 attention weights of a text that grows row by row: all of them, or those asked for last."""

import mmap
from collections import deque

import torch
from torch import Tensor

MAX_KEPT_PICTURES = 4  # pictures whose weights are kept, unless all are; fewer if they are larger than this together:
MAX_KEPT_BYTES = 32_000_000
MAX_NEWEST = 12  # newest rows of all pictures, kept in that case while the text is written


def mapped(n_rows: int, n_columns: int) -> Tensor:
    """Float32 zeros ``(n_rows, n_columns)`` that occupy memory only once written to, and return it when freed.

    Allocating such blocks on the heap would fragment it, and a server's memory would grow to many times its data.
    """
    size = n_rows * n_columns
    if not size:
        return torch.zeros(n_rows, n_columns)
    return torch.frombuffer(mmap.mmap(-1, 4 * size), dtype=torch.float32, count=size).view(n_rows, n_columns)


def triangle(n: int) -> int:
    """The number of cells in the first ``n`` rows of a lower triangle."""
    return n * (n + 1) // 2


def lower_triangle(square: Tensor) -> Tensor:
    """The cells ``(T * (T + 1) / 2,)`` of a picture ``(T, T)``, row after row."""
    return square[torch.ones_like(square, dtype=torch.bool).tril()]


class WeightBuffer:
    """Float32 lower triangles, row after row.

    With ``keep_all``, all rows of all pictures are kept. Otherwise only the newest rows of all pictures are kept, and
    all rows of the most recently requested ones, which must be recomputed up to the row at which they were first
    requested.
    """

    def __init__(self, n_pictures: int, capacity: int, *, keep_all: bool) -> None:
        self.n_pictures, self.capacity = n_pictures, capacity
        self.max_kept = max(1, min(MAX_KEPT_PICTURES, MAX_KEPT_BYTES // (4 * triangle(capacity) or 1)))
        self.weights = mapped(n_pictures, triangle(capacity)) if keep_all else None
        self.kept_pictures: dict[int, Tensor] = {}
        self.newest: deque[tuple[int, Tensor]] = deque(maxlen=MAX_NEWEST)  # (query, its row in every picture)

    @property
    def nbytes(self) -> int:
        """The maximum number of bytes that it will hold."""
        return self.max_kept * triangle(self.capacity) * 4 if self.weights is None else self.weights.nbytes

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Keep the rows from ``first`` on of some pictures, ``(pictures, rows, keys)``."""
        new = block.numpy()  # whose copies of a few numbers take much less time than torch's
        kept = [] if self.weights is None else [(self.weights[pictures].numpy(), new)]
        for index, picture in self.kept_pictures.items():
            if 0 <= index - pictures.start < len(block):
                kept.append((picture.numpy(), new[index - pictures.start]))
        for i in range(block.shape[1]):
            cells = slice(triangle(first + i), triangle(first + i + 1))
            for target, rows in kept:
                target[..., cells] = rows[..., i, : first + i + 1]

    def add_newest(self, first: int, block: Tensor) -> None:
        """Keep the newest rows of all pictures from ``first`` on, ``(n_pictures, rows, keys)``."""
        self.newest += ((first + i, block[:, i]) for i in range(block.shape[1]))

    def release_all(self, shown: int | None) -> None:
        """Keep from now on what is kept without ``keep_all``, of the earlier rows only the picture ``shown``."""
        if self.weights is not None:
            if shown is not None:
                self.kept_pictures[shown] = mapped(1, triangle(self.capacity))[0].copy_(self.weights[shown])
            self.weights = None

    def keep_picture(self, index: int) -> Tensor:
        """A buffer for one picture's weights, which are kept from now on; the picture kept longest is dropped."""
        rows = mapped(1, triangle(self.capacity))[0]
        if len(self.kept_pictures) == self.max_kept:
            del self.kept_pictures[next(iter(self.kept_pictures))]
        self.kept_pictures[index] = rows
        return rows

    def picture(self, index: int, start: int, stop: int) -> Tensor | None:
        """The cells of one picture's rows from ``start`` to ``stop``, or None if they are not kept."""
        rows = self.kept_pictures.get(index) if self.weights is None else self.weights[index]
        return None if rows is None else rows[triangle(start) : triangle(stop)]

    @property
    def keeps_all(self) -> bool:
        return self.weights is not None

    def rows(self, start: int, stop: int) -> Tensor:
        """Rows ``start`` to ``stop`` of all pictures, if all are kept: ``(n_pictures, stop - start, stop)``."""
        assert self.weights is not None, "all are kept"
        block = torch.zeros(self.n_pictures, stop - start, stop)
        for i, row in enumerate(range(start, stop)):
            block[:, i, : row + 1] = self.weights[:, triangle(row) : triangle(row + 1)]
        return block

    def query(self, query: int) -> Tensor | None:
        """One row of every picture, ``(n_pictures, query + 1)``, or None if it is not kept."""
        if self.weights is not None:
            return self.weights[:, triangle(query) : triangle(query + 1)]
        return next((rows[:, : query + 1] for place, rows in self.newest if place == query), None)
