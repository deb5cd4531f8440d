"""Texts that were read once and may be looked into again, bounded in bytes."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from model import LoadedModel
from model.reading import Reading

from .settings import MAX_READING_BYTES


class Readings:
    """The newest readings by run; the one longest unused goes first, the newest never."""

    def __init__(self, max_bytes: int = MAX_READING_BYTES) -> None:
        self.max_bytes = max_bytes
        self.kept: OrderedDict[str, Reading] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, run_id: str, gpt: LoadedModel, ids: Sequence[int], least: int) -> Reading:
        """A reading of at least the ``least`` first of ``ids``, which are all of the run there is.

        One that is kept serves while it is long enough, so that a text being written is not read anew for each token.
        Two who ask together wait for one pass.
        """
        with self.lock:
            reading = self.kept.pop(run_id, None)
            if reading is None or len(reading.ids) < least:
                reading = Reading(gpt.gpt, ids)
            self.kept[run_id] = reading
            while len(self.kept) > 1 and sum(other.nbytes for other in self.kept.values()) > self.max_bytes:
                self.kept.popitem(last=False)
            return reading
