"""Exact numbers of any run: as recorded, or recomputed if they were not kept."""

import itertools
from collections.abc import Callable
from operator import attrgetter

import torch
from torch import Tensor

from model import InputError, LoadedModel
from model.drawing.pictures import last_rows, layers_of, rollout
from model.lens.text_pass import TextPass

from ..serving.bounded_cache import BoundedCache
from ..settings import MIN_RUN_PASS_BYTES
from .run import Run

MAX_LOGITS = 65_536  # numbers in a response with the logits of several tokens

Key = tuple[str, LoadedModel]  # the id of a run, and its model


class ExactNumbers:
    """Weights and logits of runs as float32 bytes. ``on_read`` is called after a text was read."""

    def __init__(
        self, max_bytes: int | Callable[[], int] = MIN_RUN_PASS_BYTES, on_read: Callable[[], object] = lambda: None
    ) -> None:
        self.n_read = 0  # how often a text was read
        self.on_read = on_read
        self.text_passes = BoundedCache[Key, TextPass](max_bytes=max_bytes, size=attrgetter("nbytes"))

    def text_pass(self, run: Run, n_tokens: int) -> TextPass:
        """One pass over at least the first ``n_tokens`` of a run.

        A cached pass is used while it is long enough, so a text being written is not read again for each token.
        """

        n_read = self.n_read

        def read() -> TextPass:
            self.n_read += 1
            return TextPass(run.loaded.gpt, run.readable_ids, run.head_mask)

        text_pass = self.text_passes.get_or_compute(
            (run.id, run.loaded),
            read,
            lambda text_pass: len(text_pass.ids) >= n_tokens,
        )
        if self.n_read > n_read:
            self.on_read()
        return text_pass

    def forget(self, run: Run) -> None:
        """Remove the cached passes of a run."""
        self.text_passes.remove(lambda key, _: key == (run.id, run.loaded))

    def forget_models(self, is_gone: Callable[[LoadedModel], bool]) -> None:
        """Remove the cached passes of models for which ``is_gone`` is true, including those being computed."""
        self.text_passes.remove(lambda key, _: is_gone(key[1]))

    def picture(self, run: Run, layer: int, column: int, start: int, until: int | None = None) -> bytes:
        """Rows of a picture (``model.drawing.pictures``) from ``start`` on, at least to ``until`` if that is given.

        Raises ``InputError`` if there is no such picture.
        """
        config = run.loaded.config

        def recompute(n_rows: int) -> Tensor:
            text_pass = self.text_pass(run, n_rows)
            if column < config.n_head:
                return text_pass.attention(layer, n_rows, heads=[column])[0]
            layers = layers_of(layer, column, config.n_layer, config.n_head)
            means = (text_pass.mean_attention(i, n_rows) for i in layers)
            return rollout(means) if column == config.n_head + 1 else sum(means, start=torch.zeros(())) / len(layers)

        return run.recording.picture(layer, column, start, recompute, until)

    def query(self, run: Run, query: int) -> bytes:
        """A query's row of every picture, ``(n_pictures, query + 1)``. Raises ``InputError`` if there is none."""

        def recompute(n_rows: int) -> Tensor:
            text_pass, first = self.text_pass(run, n_rows), 0 if run.recording.has_rollout else n_rows - 1
            return last_rows(
                text_pass.attention(layer, n_rows, first=first) for layer in range(run.loaded.config.n_layer)
            )

        return run.recording.query(query, recompute)

    def logits(self, run: Run, position: int, count: int = 1) -> bytes:
        """The logits at ``position`` and after it; the next token was drawn from each.

        At most ``count`` rows of ``vocab_size``: fewer where the text ends, or where there would be more numbers than
        ``MAX_LOGITS``. Raises ``InputError`` if there is no such token.
        """
        n_tokens = len(run.readable_ids)
        if not 0 <= position < n_tokens:
            raise InputError("position", f"There is no token {position}; the text has {len(run.ids)}.")
        most = max(1, MAX_LOGITS // run.loaded.config.vocab_size)
        stop = min(position + max(1, min(count, most)), n_tokens)
        recent = {place: logits for place, logits in list(run.recent_logits) if position <= place < stop}
        if position in recent:  # the newest may still be missing
            rows = itertools.takewhile(lambda place: place in recent, range(position, stop))
            return b"".join(recent[place].cpu().numpy().tobytes() for place in rows)
        return self.text_pass(run, stop).logits(position, stop).numpy().tobytes()
