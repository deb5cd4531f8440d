"""The attention weights of one text, recorded while it is written."""

import math
import threading
from collections.abc import Callable

import torch
from torch import Tensor

from ..errors import InputError
from .pictures import GrowingRollout, n_pictures, picture_index
from .summary import Summary
from .thumbnails import ThumbnailRows
from .weight_buffer import MAX_NEWEST, WeightBuffer, lower_triangle, triangle

FLUSH_ROWS = 32  # rows collected before they are pooled, unless they are requested earlier
MAX_EXTRA_ROWS = 4  # extra rows that a viewer may get, which avoids a separate summary
POOLED_AT_ONCE = 250_000  # weights measured and pooled at a time: they fit a processor's cache


class Recording:
    """Every picture of a text, growing by one row per token read; one thread may add to it while others ask for it.

    A row holds the weights that one query gives to all keys up to itself. ``pictures.py`` defines the pictures. With
    ``keep_weights``, all their float32 weights stay, otherwise only those requested last; thumbnails and metrics always
    stay. Without ``has_rollout``, which takes memory while the text grows, the weights and metrics of rollouts are NaN.
    With ``is_square``, every query sees all keys; all rows are then added at once, and no weights are kept.
    """

    def __init__(
        self,
        n_layer: int,
        n_head: int,
        capacity: int,
        *,
        keep_weights: bool = True,
        has_rollout: bool = True,
        is_square: bool = False,
    ) -> None:
        self.n_layer, self.n_head, self.capacity = n_layer, n_head, capacity
        self.n_pictures = n_pictures(n_layer, n_head)
        self.n_rows = 0
        self.summary = Summary(self.n_pictures, capacity, is_square=is_square)
        self.earlier: Summary | None = None  # of the first ``n_earlier`` rows
        self.n_earlier = 0
        self.buffer = WeightBuffer(self.n_pictures, capacity, keep_all=keep_weights)
        self.shown: int | None = None  # the picture that was requested last
        self.has_rollout, self.is_finished = has_rollout, False
        self.rollout = GrowingRollout(n_layer, capacity) if has_rollout else None
        self.total: Tensor | None = None  # over the heads of the layers added so far
        self.pending: list[Tensor] = []
        self.lock = threading.Lock()
        self.keep_lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """The maximum number of bytes that this recording will hold once it is finished."""
        return 2 * self.summary.nbytes + self.buffer.nbytes

    @property
    def keeps_weights(self) -> bool:
        """Whether all weights are kept."""
        return self.buffer.keeps_all

    @property
    def working_bytes(self) -> int:
        """The additional bytes this recording needs until it is finished."""
        return GrowingRollout.nbytes(self.n_layer, self.capacity) if self.rollout else 0

    def append(self, row: Tensor) -> None:
        """Add the newest token's row ``(n_layer, n_head, n_rows + 1)``."""
        with self.lock:
            self.pending.append(row.cpu())
            self.n_rows += 1
            if len(self.pending) >= FLUSH_ROWS:
                self.flush()

    def extend(self, attention: Tensor, layers: range | None = None) -> None:
        """Add the weights of the next ``n`` tokens, ``(len(layers), n_head, n, n_rows + n)``, all layers by default.

        Layers may be added in consecutive groups, from the first on; the rows count once the last layer is added.
        """
        layers = range(self.n_layer) if layers is None else layers
        with self.lock:
            self.flush()
            # Of a prompt the page looks at the last row first: the next token is drawn after it.
            self.store(attention.cpu(), attention.shape[-1] - attention.shape[-2], layers, n_newest=1)
            if layers.stop == self.n_layer:
                self.n_rows = attention.shape[-1]

    def finish(self) -> None:
        """Release the memory that only further rows would need; no rows can be added afterwards."""
        with self.lock:
            self.flush()
            self.rollout, self.is_finished = None, True
            self.buffer.newest.clear()

    def release_weights(self) -> None:
        """Keep no more than without ``keep_weights``: thumbnails, metrics, and the picture that was requested last.

        Does nothing while another thread uses them.
        """
        if self.lock.acquire(blocking=False):
            self.buffer.release_all(self.shown)
            self.earlier = None
            self.lock.release()

    def thumbnails(self, start: int = 0, until: int | None = None) -> ThumbnailRows:
        """The part of all thumbnails that rows from ``start`` on affect.

        With ``until``, they are as of about that many rows, if that state is still stored: for a viewer to whom the
        text is shown more slowly than it is written.
        """
        with self.lock:
            summary, n_rows = self.summary_at(until)
            return summary.thumbnails.rows(start, n_rows)

    def metrics(self, until: int | None = None) -> Tensor:
        """The mean over the queries of each of ``FRAME_MEASURES``: ``(n_pictures, len(FRAME_MEASURES))``."""
        with self.lock:
            summary, n_rows = self.summary_at(until)
            return summary.means(n_rows)

    def summary_at(self, until: int | None) -> tuple[Summary, int]:
        """The summary of ``until`` rows, or the newest one, and its number of rows; the caller holds the lock."""
        n_rows = self.store_rows(until)
        if until is None or until >= n_rows - MAX_EXTRA_ROWS or not self.buffer.keeps_all:
            self.earlier = None
            return self.summary, n_rows
        if self.earlier is None or self.n_earlier > until:
            self.earlier, self.n_earlier = Summary(self.n_pictures, self.capacity), 0
        if self.n_earlier < until:
            self.earlier.add(slice(None), self.n_earlier, self.buffer.rows(self.n_earlier, until))
            self.n_earlier = until
        return self.earlier, self.n_earlier

    def picture(
        self, layer: int, column: int, start: int, recompute: Callable[[int], Tensor], until: int | None = None
    ) -> bytes:
        """The float32 weights of one picture, from row ``start`` to the newest, row after row.

        With ``until``, at least to that row, if it exists. ``recompute(n)`` returns the weights ``(n, n)`` for the
        first ``n`` tokens; it is called if they were not kept. Raises ``InputError`` if there is no such picture.
        """
        index = picture_index(layer, column, self.n_layer, self.n_head)
        with self.keep_lock:
            while True:  # all weights may be released between two steps
                with self.lock:
                    n_rows, self.shown = self.store_rows(until), index
                    cells = self.buffer.picture(index, start, n_rows)
                    if cells is not None:
                        return cells.numpy().tobytes()
                    rows = self.buffer.keep_picture(index)
                rows[: triangle(n_rows)] = lower_triangle(recompute(n_rows))

    def query(self, query: int, recompute: Callable[[int], Tensor]) -> bytes:
        """The float32 weights that one query has in every picture: ``(n_pictures, query + 1)``.

        ``recompute(n)`` returns them for the last of the first ``n`` tokens; it is called if they were not kept. Raises
        ``InputError`` if there is no such row.
        """
        with self.lock:
            if not 0 <= query < self.n_rows:
                raise InputError("query", f"There is no row {query}; the recording has {self.n_rows}.")
            self.flush()
            kept = self.buffer.query(query)
            if kept is not None:
                return kept.numpy().tobytes()
        return recompute(query + 1).numpy().tobytes()

    def store_rows(self, until: int | None) -> int:
        """Store the pending rows unless ``until`` rows are stored already; the caller holds the lock.

        Returns the number of stored rows. Storing a few at a time takes much longer than storing many at once.
        """
        if until is None or self.n_rows - len(self.pending) < until:
            self.flush()
        return self.n_rows - len(self.pending)

    def flush(self) -> None:
        """Store the pending rows; the caller holds the lock."""
        if not self.pending:
            return
        first = self.n_rows - len(self.pending)
        block = torch.zeros(self.n_layer, self.n_head, len(self.pending), self.n_rows)
        cells = block.numpy()  # whose copies of a few numbers take much less time than torch's
        for i, row in enumerate(self.pending):
            cells[:, :, i, : first + i + 1] = row
        self.pending.clear()
        self.store(block, first, range(self.n_layer), n_newest=MAX_NEWEST)

    def store(self, attention: Tensor, first: int, layers: range, *, n_newest: int) -> None:
        """Store rows from ``first`` on, ``(len(layers), n_head, n, S)``, in all pictures; the caller holds the lock.

        Up to ``n_newest`` of them are also kept among the newest rows.
        """
        assert not self.is_finished, "a finished recording takes no more rows"
        n, S = attention.shape[-2:]
        newest = slice(max(0, n - n_newest), n)
        keeps_newest = len(layers) == self.n_layer and not self.keeps_weights
        at_once = max(1, POOLED_AT_ONCE // (self.n_head * n * S))
        kept = []
        for layer, some in zip(layers[::at_once], attention.split(at_once), strict=True):
            pictures = self.store_layers(some, first, layer)
            if keeps_newest:
                kept.append(pictures[:, newest].clone())
        if keeps_newest:
            self.buffer.add_newest(first + newest.start, torch.cat(kept))

    def store_layers(self, attention: Tensor, first: int, layer: int) -> Tensor:
        """Store rows of the layers from ``layer`` on, ``(layers, n_head, n, S)``; returns their pictures.

        With the last layer, these include the mean of all heads.
        """
        means = attention.mean(1)
        self.total = means.sum(0) if self.total is None else self.total + means.sum(0)
        rolled = self.rollout.extend(means, first, layer) if self.rollout else torch.full_like(means, math.nan)
        n, H = len(attention) * (self.n_head + 2), self.n_head
        is_last = layer + len(attention) == self.n_layer
        pictures = attention.new_empty(n + is_last, *attention.shape[-2:])
        by_layer = pictures[:n].unflatten(0, (-1, H + 2))
        by_layer[:, :H], by_layer[:, H], by_layer[:, H + 1] = attention, means, rolled
        if is_last:
            torch.div(self.total, self.n_layer, out=pictures[n])
            self.total = None
        start = layer * (H + 2)
        self.add(slice(start, start + len(pictures)), first, pictures)
        return pictures

    def add(self, pictures: slice, first: int, block: Tensor) -> None:
        """Keep, measure and pool rows of some pictures from ``first`` on, ``(pictures, rows, keys)``."""
        self.buffer.add(pictures, first, block)
        at_once = max(1, POOLED_AT_ONCE // (block.shape[1] * block.shape[2]))
        for start, some in zip(range(pictures.start, self.n_pictures, at_once), block.split(at_once), strict=False):
            self.summary.add(slice(start, start + len(some)), first, some)
