"""Exact numbers of any run: as they were recorded, or recomputed where they were not kept."""

import itertools

from torch import Tensor

from model.lens.pictures import last_rows, layers_of, picture
from model.lens.residuals import Residuals

from ..settings import MAX_LOGITS
from .residual_cache import ResidualCache
from .run import Run


class ExactNumbers:
    """Weights and logits of runs as float32 bytes."""

    def __init__(self) -> None:
        self.residuals = ResidualCache()

    def read(self, run: Run, least: int) -> Residuals:
        """One pass over at least the ``least`` first tokens of a run."""
        return self.residuals.get(run.id, run.loaded, run.readable_ids, least, run.head_mask)

    def picture(self, run: Run, layer: int, column: int, start: int) -> bytes:
        """One picture (``model.lens.pictures``), rows ``start`` to the newest. Raises ``ValueError`` for no picture."""
        config = run.loaded.config

        def recompute(n_rows: int) -> Tensor:
            residuals = self.read(run, n_rows)
            needed = layers_of(layer, column, config.n_layer, config.n_head)
            return picture((residuals.attention(i, n_rows) for i in needed), column, config.n_head)

        return run.recording.picture(layer, column, start, recompute)

    def query(self, run: Run, query: int) -> bytes:
        """What one query looks at in every picture, ``(n_pictures, query + 1)``. Raises ``ValueError`` for no row."""

        def recompute(n_rows: int) -> Tensor:
            residuals = self.read(run, n_rows)
            return last_rows(residuals.attention(layer, n_rows) for layer in range(run.loaded.config.n_layer))

        return run.recording.query(query, recompute)

    def logits(self, run: Run, position: int, count: int = 1) -> bytes:
        """The logits behind the tokens from ``position`` on, from each of which the next one was drawn.

        At most ``count`` rows of ``vocab_size``: fewer where the text ends, or where there would be more numbers than
        ``MAX_LOGITS``. Raises ``ValueError`` where there is no such token.
        """
        n_tokens = len(run.readable_ids)
        if not 0 <= position < n_tokens:
            raise ValueError(f"there is no token {position}: the text has {len(run.ids)}")
        most = max(1, MAX_LOGITS // run.loaded.config.vocab_size)
        stop = min(position + max(1, min(count, most)), n_tokens)
        recent = {place: logits for place, logits in list(run.recent_logits) if position <= place < stop}
        if position in recent:  # the newest may still be missing
            rows = itertools.takewhile(lambda place: place in recent, range(position, stop))
            return b"".join(recent[place].cpu().numpy().tobytes() for place in rows)
        return self.read(run, stop).logits(position, stop).numpy().tobytes()
