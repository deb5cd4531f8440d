"""Texts that were read once and may be looked into again, bounded in bytes."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from torch import Tensor

from model import LoadedModel
from model.lens.residuals import Residuals

from ..settings import MAX_RESIDUAL_BYTES


class ResidualCache:
    """The newest residual streams by run; the least recently used goes first, the newest never."""

    def __init__(self, max_bytes: int = MAX_RESIDUAL_BYTES) -> None:
        self.max_bytes = max_bytes
        self.kept: OrderedDict[str, Residuals] = OrderedDict()
        self.lock = threading.Lock()

    def get(
        self, run_id: str, loaded: LoadedModel, ids: Sequence[int], least: int, head_mask: Tensor | None = None
    ) -> Residuals:
        """One pass over at least the ``least`` first of ``ids``, which are all that the run has so far.

        One that is kept serves as long as it is long enough, so that a text being written is not read again for each
        token. Two callers who ask together wait for one pass.
        """
        with self.lock:
            residuals = self.kept.pop(run_id, None)
            if residuals is None or len(residuals.ids) < least:
                residuals = Residuals(loaded.gpt, ids, head_mask)
            self.kept[run_id] = residuals
            while len(self.kept) > 1 and sum(other.nbytes for other in self.kept.values()) > self.max_bytes:
                self.kept.popitem(last=False)
            return residuals

    def forget(self, run_id: str) -> None:
        with self.lock:
            self.kept.pop(run_id, None)
