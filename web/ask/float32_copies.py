"""Float32 copies of models that are served in another precision: what Ask computes with."""

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from weakref import WeakKeyDictionary, WeakValueDictionary

from model import LoadedModel
from model.gpt import GPT
from model.lens.float32 import float32_bytes, in_float32

from ..serving.budget import NoRoom


class Float32Copies:
    """Float32 copies by the identity of a model, for any thread. The least recently used are dropped first.

    All that are in memory, those that a question is still using included, take at most ``max_bytes``, or there is only
    one. ``on_drop`` frees whatever else was made with a copy.
    """

    def __init__(self, max_bytes: int, on_drop: Callable[[Hashable], None]) -> None:
        self.max_bytes, self.on_drop = max_bytes, on_drop
        self.kept: OrderedDict[Hashable, GPT] = OrderedDict()
        self.in_memory: WeakValueDictionary[Hashable, GPT] = WeakValueDictionary()
        self.sizes: WeakKeyDictionary[GPT, int] = WeakKeyDictionary()  # in bytes, of all that are in memory
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return sum(self.sizes.values())

    def get(self, key: Hashable, loaded: LoadedModel) -> GPT:
        """``loaded`` in float32, itself if it is. Raises ``NoRoom`` while copies that are in use leave too little."""
        n_bytes = float32_bytes(loaded.gpt)
        if not n_bytes:
            return loaded.gpt
        with self.lock:  # callers who ask for the same copy wait for it
            copy = self.in_memory.get(key)  # one that was dropped may still be in use
            if copy is None:
                self.make_room(n_bytes)
                self.in_memory[key] = copy = in_float32(loaded.gpt)
                self.sizes[copy] = n_bytes
            self.kept[key] = copy
            self.kept.move_to_end(key)
            return copy

    def make_room(self, n_bytes: int) -> None:
        while self.kept and self.nbytes + n_bytes > self.max_bytes:
            key = next(iter(self.kept))
            del self.kept[key]
            self.on_drop(key)
        if self.nbytes and self.nbytes + n_bytes > self.max_bytes:
            gc.collect()  # there may be reference cycles
            if self.nbytes:
                raise NoRoom

    def drop(self, key: Hashable) -> None:
        with self.lock:
            self.kept.pop(key, None)
