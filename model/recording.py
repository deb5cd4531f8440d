"""The attention weights of one text, gathered while it is written and given out as thumbnails and exact numbers."""

import threading
from collections import deque
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from .memory import mapped
from .summaries import METRICS, Rollout, metric_sums, rollout
from .trace import encode_weights, pool

THUMBNAIL_SIDE = 65  # cells, at most: the first token's own, and 64
FLUSH_ROWS = 32  # rows gathered before they are pooled together, where nobody asks sooner
MAX_FOLLOWED = 4  # pictures whose weights are kept where not all are
MAX_NEWEST = 12  # rows of all pictures that are kept there while the text is written


class Recording:
    """Attention weights of every head, one row more for each token read; safe for one writer and many readers.

    A row is what one query gives to all keys up to itself, so a picture is a lower triangle, stored row after row.
    Each layer has ``n_head + 2`` pictures: its heads, their mean, and the attention rollout up to this layer; after
    those of all layers comes one more, the mean of all heads. ``index`` numbers them.

    Thumbnails have a cell for the first token and pool the others by ``factor``, the least power of two that makes the
    side at most ``THUMBNAIL_SIDE``; they are coded in bytes. With ``keep_weights`` all float32 weights stay, else only
    those of the pictures last asked for.
    """

    def __init__(self, n_layer: int, n_head: int, capacity: int, *, keep_weights: bool = True) -> None:
        self.n_layer, self.n_head, self.capacity = n_layer, n_head, capacity
        self.n_pictures = n_pictures(n_layer, n_head)
        self.n_rows = 0
        self.factor = 1
        side = min(capacity, THUMBNAIL_SIDE)
        self.pooled = torch.zeros(self.n_pictures, side, side, dtype=torch.uint8)
        self.sums = torch.zeros(self.n_pictures, len(METRICS))
        self.weights = mapped(self.n_pictures, triangle(capacity)) if keep_weights else None
        self.rollout: Rollout | None = Rollout(n_layer, capacity)
        self.total: Tensor | None = None  # of the heads in the layers that came so far
        self.followed: dict[int, Tensor] = {}
        self.newest: deque[tuple[int, Tensor]] = deque(maxlen=MAX_NEWEST)  # (query, its row of every picture)
        self.pending: list[Tensor] = []
        self.lock = threading.Lock()
        self.follow_lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The most bytes this recording will hold once it is finished."""
        weights = MAX_FOLLOWED * triangle(self.capacity) * 4 if self.weights is None else self.weights.nbytes
        return self.pooled.nbytes + weights

    def index(self, layer: int, column: int) -> int:
        """The number of a picture: ``column`` is a head, ``n_head`` for the mean, ``n_head + 1`` for the rollout.

        ``layer = n_layer, column = n_head`` is the mean of all heads. Raises ``ValueError`` for any other.
        """
        whole = (layer, column) == (self.n_layer, self.n_head)
        if not whole and not (0 <= layer < self.n_layer and 0 <= column < self.n_head + 2):
            raise ValueError(f"there is no picture in layer {layer}, column {column}")
        return self.n_pictures - 1 if whole else layer * (self.n_head + 2) + column

    def append(self, row: Tensor) -> None:
        """Add the newest token's row ``(n_layer, n_head, n_rows + 1)``."""
        with self.lock:
            self.pending.append(row.cpu())
            self.n_rows += 1
            if len(self.pending) >= FLUSH_ROWS:
                self.flush()

    def extend(self, attention: Tensor, layers: range | None = None) -> None:
        """Add the weights of the next ``n`` tokens, ``(len(layers), n_head, n, n_rows + n)``, all layers by default.

        Layers may come one group after the other, from the first on; the rows count when the last layer is in.
        """
        layers = range(self.n_layer) if layers is None else layers
        with self.lock:
            self.flush()
            self.take(attention.cpu(), attention.shape[-1] - attention.shape[-2], layers)
            if layers.stop == self.n_layer:
                self.n_rows = attention.shape[-1]

    def finish(self) -> None:
        """No more rows will come: let go of what only they would need."""
        with self.lock:
            self.flush()
            self.rollout = None
            self.newest.clear()

    def thumbnails(self, start: int = 0) -> tuple[int, int, int, bytes]:
        """How many rows there are, the factor, the first pooled row that rows from ``start`` on touch, and the bytes.

        They are all pictures' from there on, one after the other, each the pooled rows of its lower triangle.
        """
        with self.lock:
            self.flush()
            first, end = tile(start, self.factor), tile(self.n_rows - 1, self.factor) + 1
            below = torch.ones(end, end, dtype=torch.bool).tril()[first:]
            return self.n_rows, self.factor, first, self.pooled[:, first:end, :end][:, below].numpy().tobytes()

    def metrics(self) -> Tensor:
        """The mean over all queries but the first of each of ``METRICS``: ``(n_pictures, len(METRICS))``."""
        with self.lock:
            self.flush()
            return self.sums / max(self.n_rows - 1, 1)

    def head(self, layer: int, column: int, start: int, recompute: Callable[[int], Tensor]) -> bytes:
        """The exact float32 weights of one picture, rows ``start`` to the newest, one after the other.

        ``recompute(n)`` gives them ``(n, n)`` for the first ``n`` tokens, for when they were not kept.
        """
        index = self.index(layer, column)
        with self.follow_lock:
            if self.weights is None and index not in self.followed:
                self.follow(index, recompute)
            with self.lock:
                self.flush()
                rows = self.followed[index] if self.weights is None else self.weights[index]
                return rows[triangle(start) : triangle(self.n_rows)].numpy().tobytes()

    def query(self, query: int, recompute: Callable[[int], Tensor]) -> bytes:
        """The exact float32 weights that one query has in every picture: ``(n_pictures, query + 1)``.

        ``recompute(n)`` gives them for the last of the first ``n`` tokens, for when they were not kept.
        """
        with self.lock:
            if not 0 <= query < self.n_rows:
                raise ValueError(f"there is no row {query}, the recording has {self.n_rows}")
            self.flush()
            if self.weights is not None:
                return self.weights[:, triangle(query) : triangle(query + 1)].numpy().tobytes()
            for place, rows in self.newest:
                if place == query:
                    return rows.numpy().tobytes()
        return recompute(query + 1).numpy().tobytes()

    def follow(self, index: int, recompute: Callable[[int], Tensor]) -> None:
        """Keep one picture's weights from now on, those so far recomputed; the follow lock is held."""
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
        block = torch.zeros(self.n_layer, self.n_head, len(self.pending), self.n_rows)
        for i, row in enumerate(self.pending):
            block[:, :, i, : first + i + 1] = row
        self.pending.clear()
        self.take(block, first, range(self.n_layer))

    def take(self, attention: Tensor, first: int, layers: range) -> None:
        """Store rows from ``first`` on, ``(len(layers), n_head, n, S)``, and what they add up to; the lock is held."""
        assert self.rollout is not None, "a finished recording takes no more rows"
        means = attention.mean(1)
        total = means.sum(0) if self.total is None else self.total + means.sum(0)
        rolled = self.rollout.extend(means, first, layers.start)
        pictures = torch.cat([attention, means[:, None], rolled[:, None]], 1).flatten(0, 1)
        start = layers.start * (self.n_head + 2)
        self.store(slice(start, start + len(pictures)), first, pictures)
        if layers.stop == self.n_layer:
            self.store(slice(self.n_pictures - 1, None), first, total[None] / self.n_layer)
        self.total = total if layers.stop < self.n_layer else None
        if self.weights is None and len(layers) == self.n_layer:
            for i in range(max(0, total.shape[0] - MAX_NEWEST), total.shape[0]):
                row = torch.cat([pictures[:, i], total[None, i] / self.n_layer])
                self.newest.append((first + i, row[:, : first + i + 1].contiguous()))

    def store(self, pictures: slice, first: int, block: Tensor) -> None:
        """Keep, measure and pool the rows from ``first`` on of some pictures, ``(pictures, rows, keys)``."""
        for i in range(block.shape[1]):
            cells = slice(triangle(first + i), triangle(first + i + 1))
            if self.weights is not None:
                self.weights[pictures, cells] = block[:, i, : first + i + 1]
            for index in range(self.n_pictures)[pictures]:
                if index in self.followed:
                    self.followed[index][cells] = block[index - (pictures.start), i, : first + i + 1]
        self.sums[pictures] += metric_sums(block, first)
        while tile(first + block.shape[1] - 1, self.factor) >= THUMBNAIL_SIDE:
            self.coarsen()
        # Tiles end at multiples of the factor; the first has one cell.
        top = tile(first, self.factor)
        before = first - ((top - 1) * self.factor + 1) if top else self.factor - 1
        tiles = encode_weights(pool(torch.nn.functional.pad(block, (self.factor - 1, 0, before, 0)), self.factor))
        target = self.pooled[pictures, top : top + tiles.shape[1], : tiles.shape[2]]
        torch.maximum(target, tiles, out=target)

    def coarsen(self) -> None:
        """Double the factor: the largest of 2 x 2 tiles is the largest of the weights below them."""
        self.factor *= 2
        self.pooled = torch.nn.functional.pad(self.pooled, (1, 0, 1, 0))  # the first token's cell stays alone
        halved = pool(self.pooled.float(), 2).to(torch.uint8)
        self.pooled = torch.zeros(self.n_pictures, THUMBNAIL_SIDE, THUMBNAIL_SIDE, dtype=torch.uint8)
        self.pooled[:, : halved.shape[1], : halved.shape[2]] = halved


def picture(layers: Iterable[Tensor], column: int, n_head: int) -> Tensor:
    """One picture ``(T, T)`` from the attention weights ``(n_head, T, T)`` of the layers up to its own, in order.

    ``column`` is as in ``Recording.index``; for the mean of all heads ``layers`` are all, and for a head or the mean of
    one layer that layer alone will do.
    """
    if column == n_head + 1:
        return rollout(attention.mean(0) for attention in layers)
    if column == n_head:
        means = [attention.mean(0) for attention in layers]
        return torch.stack(means).mean(0)
    *_, last = layers
    return last[column]


def last_rows(layers: Iterable[Tensor]) -> Tensor:
    """What the last token looks at in every picture, ``(n_pictures, T)``, from the ``(n_head, T, T)`` of all layers."""
    rows: list[Tensor] = []
    rolled = total = None
    for attention in layers:
        mean = attention.mean(0)
        below = torch.eye(len(mean)) if rolled is None else rolled
        rolled = (mean @ below + below) / 2
        total = mean[-1:] if total is None else total + mean[-1:]
        rows += [attention[:, -1], mean[-1:], rolled[-1:]]
    assert total is not None, "no layers"
    n_layer = len(rows) // 3
    return torch.cat([*rows, total / n_layer])


def n_pictures(n_layer: int, n_head: int) -> int:
    """How many pictures a recording has."""
    return n_layer * (n_head + 2) + 1


def tile(position: int, factor: int) -> int:
    """The thumbnail cell of a token: the first has its own, the others share one ``factor`` by ``factor``."""
    return -(-position // factor)


def triangle(n: int) -> int:
    """The number of cells in the first ``n`` rows of a lower triangle."""
    return n * (n + 1) // 2
