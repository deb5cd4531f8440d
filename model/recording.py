"""The attention weights of one text, gathered while it is written and given out as thumbnails and exact numbers."""

import mmap
import threading
from collections.abc import Callable

import torch
from torch import Tensor

from .trace import encode_weights, pool

THUMBNAIL_SIDE = 64  # cells, at most
FLUSH_ROWS = 32  # rows gathered before they are pooled together, where nobody asks sooner
MAX_FOLLOWED = 4  # heads whose weights are kept where not all are


class Recording:
    """Attention weights of every head, one row more for each token read; safe for one writer and many readers.

    A row is what one query gives to all keys up to itself, so a head is a lower triangle, stored row after row.
    Thumbnails pool it by ``factor``, the least power of two that makes its side at most ``THUMBNAIL_SIDE``, and are
    coded in bytes. With ``keep_weights`` all float32 weights stay, else only those of the heads last asked for.
    """

    def __init__(self, n_layer: int, n_head: int, capacity: int, *, keep_weights: bool = True) -> None:
        self.n_layer, self.n_head, self.capacity = n_layer, n_head, capacity
        self.n_rows = 0
        self.factor = 1
        side = min(capacity, THUMBNAIL_SIDE)
        self.pooled = torch.zeros(n_layer * n_head, side, side, dtype=torch.uint8)
        self.weights = mapped(n_layer * n_head, triangle(capacity)) if keep_weights else None
        self.followed: dict[int, Tensor] = {}
        self.pending: list[Tensor] = []
        self.lock = threading.Lock()
        self.follow_lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The most bytes this recording will ever hold."""
        weights = MAX_FOLLOWED * triangle(self.capacity) * 4 if self.weights is None else self.weights.nbytes
        return self.pooled.nbytes + weights

    def append(self, row: Tensor) -> None:
        """Add the newest token's row ``(n_layer, n_head, n_rows + 1)``."""
        with self.lock:
            self.pending.append(row.flatten(0, 1).cpu())
            self.n_rows += 1
            if len(self.pending) >= FLUSH_ROWS:
                self.flush()

    def extend(self, attention: Tensor, layers: range | None = None) -> None:
        """Begin with the weights of the first tokens, ``(len(layers), n_head, T, T)``, all layers by default.

        Layers may come one group after the other; the rows count when the last layer is in.
        """
        layers = range(self.n_layer) if layers is None else layers
        with self.lock:
            self.store(slice(layers.start * self.n_head, layers.stop * self.n_head), 0, attention.flatten(0, 1).cpu())
            if layers.stop == self.n_layer:
                self.n_rows = attention.shape[-1]

    def thumbnails(self, start: int = 0) -> tuple[int, int, int, bytes]:
        """How many rows there are, the factor, the first pooled row that rows from ``start`` on touch, and the bytes.

        They are all heads' from there on, head after head, each the pooled rows of its lower triangle.
        """
        with self.lock:
            self.flush()
            first, end = start // self.factor, -(-self.n_rows // self.factor)
            below = torch.ones(end, end, dtype=torch.bool).tril()[first:]
            return self.n_rows, self.factor, first, self.pooled[:, first:end, :end][:, below].numpy().tobytes()

    def head(self, layer: int, head: int, start: int, recompute: Callable[[int], Tensor]) -> bytes:
        """The exact float32 weights of one head, rows ``start`` to the newest, one after the other.

        ``recompute(n)`` gives this head's weights ``(n, n)`` of the first ``n`` tokens, for when they were not kept.
        """
        index = layer * self.n_head + head
        with self.follow_lock:
            if self.weights is None and index not in self.followed:
                self.follow(index, recompute)
            with self.lock:
                self.flush()
                rows = self.followed[index] if self.weights is None else self.weights[index]
                return rows[triangle(start) : triangle(self.n_rows)].numpy().tobytes()

    def follow(self, index: int, recompute: Callable[[int], Tensor]) -> None:
        """Keep one head's weights from now on, those so far recomputed; the follow lock is held."""
        with self.lock:
            self.flush()
            n_rows, rows = self.n_rows, mapped(1, triangle(self.capacity))[0]
            if len(self.followed) == MAX_FOLLOWED:
                del self.followed[next(iter(self.followed))]
            self.followed[index] = rows
        attention = recompute(n_rows)
        rows[: triangle(n_rows)] = attention[torch.ones(n_rows, n_rows, dtype=torch.bool).tril()]

    def flush(self) -> None:
        """Store the rows that are waiting; the lock is held."""
        if not self.pending:
            return
        first = self.n_rows - len(self.pending)
        block = torch.zeros(len(self.pooled), len(self.pending), self.n_rows)
        for i, row in enumerate(self.pending):
            block[:, i, : first + i + 1] = row
        self.pending.clear()
        self.store(slice(None), first, block)

    def store(self, heads: slice, first: int, block: Tensor) -> None:
        """Keep and pool the rows from ``first`` on of some heads, ``(heads, rows, keys)``; the lock is held."""
        for i in range(block.shape[1]):
            cells = slice(triangle(first + i), triangle(first + i + 1))
            if self.weights is not None:
                self.weights[heads, cells] = block[:, i, : first + i + 1]
            for index, rows in self.followed.items():
                rows[cells] = block[index, i, : first + i + 1]
        while self.factor * THUMBNAIL_SIDE < first + block.shape[1]:
            self.coarsen()
        if offset := first % self.factor:  # tiles begin at multiples of the factor
            block = torch.nn.functional.pad(block, (0, 0, offset, 0))
        tiles = encode_weights(pool(block, self.factor))
        top = first // self.factor
        target = self.pooled[heads, top : top + tiles.shape[1], : tiles.shape[2]]
        torch.maximum(target, tiles, out=target)

    def coarsen(self) -> None:
        """Double the factor: the largest of 2 x 2 tiles is the largest of the weights below them."""
        self.factor *= 2
        halved = self.pooled.unfold(1, 2, 2).unfold(2, 2, 2).amax((-1, -2))
        self.pooled.zero_()
        self.pooled[:, : halved.shape[1], : halved.shape[2]] = halved


def mapped(n_rows: int, n_columns: int) -> Tensor:
    """Zeros ``(n_rows, n_columns)`` outside the heap: they take memory once written to, and give it back when freed.

    Blocks of this size from the heap leave holes in it, and a server grows by many times what it keeps.
    """
    size = n_rows * n_columns
    return torch.frombuffer(mmap.mmap(-1, 4 * size), dtype=torch.float32, count=size).view(n_rows, n_columns)


def triangle(n: int) -> int:
    """The number of cells in the first ``n`` rows of a lower triangle."""
    return n * (n + 1) // 2
