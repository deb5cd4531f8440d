"""Float32 copies, for Ask's computations, of models that are served in another precision."""

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
    """Thread-safe cache of float32 copies, keyed by the identity of a model. The least recently used are dropped first.

    All copies in memory, including dropped ones that a question still uses, take at most ``max_bytes``, unless there is
    only one. ``on_drop`` frees everything else that was made with a copy.
    """

    def __init__(self, max_bytes: int, on_drop: Callable[[Hashable], None]) -> None:
        self.max_bytes, self.on_drop = max_bytes, on_drop
        self.kept: OrderedDict[Hashable, GPT] = OrderedDict()
        self.in_memory: WeakValueDictionary[Hashable, GPT] = WeakValueDictionary()
        self.sizes: WeakKeyDictionary[GPT, int] = WeakKeyDictionary()  # in bytes, of all copies in memory
        self.lock = threading.Lock()  # never held during a conversion
        self.converting = threading.Lock()  # held during a conversion: one at a time, so that room is made for one
        self.wanted: Hashable = None  # the key being converted; None once it has been dropped

    @property
    def nbytes(self) -> int:
        return sum(self.sizes.values())

    def get(self, key: Hashable, loaded: LoadedModel) -> GPT:
        """``loaded.gpt``, or a float32 copy of it. Raises ``NoRoom`` if copies in use leave too little memory."""
        n_bytes = float32_bytes(loaded.gpt)
        if not n_bytes:
            return loaded.gpt
        copy = self.find(key)
        if copy is not None:
            return copy
        with self.converting:
            copy = self.find(key)  # another caller may have made it meanwhile
            if copy is not None:
                return copy
            self.make_room(n_bytes)
            self.wanted = key
            copy = in_float32(loaded.gpt)
            with self.lock:
                self.in_memory[key], self.sizes[copy] = copy, n_bytes
                if self.wanted == key:
                    self.kept[key] = copy
            return copy

    def find(self, key: Hashable) -> GPT | None:
        """The copy in memory, even if it was dropped while a question was using it; None if there is none."""
        with self.lock:
            copy = self.in_memory.get(key)
            if copy is not None:
                self.kept[key] = copy
                self.kept.move_to_end(key)
            return copy

    def make_room(self, n_bytes: int) -> None:
        while self.nbytes + n_bytes > self.max_bytes:
            with self.lock:
                if not self.kept:
                    break
                key = next(iter(self.kept))
                del self.kept[key]  # not popitem, whose result would keep the copy alive
            self.on_drop(key)
        if self.nbytes and self.nbytes + n_bytes > self.max_bytes:
            gc.collect()  # reference cycles may hold a copy
            if self.nbytes:
                raise NoRoom

    def drop(self, key: Hashable) -> None:
        """Keep no copy under ``key``, not even one that is being made. Does not wait for a conversion to finish."""
        with self.lock:
            self.kept.pop(key, None)
            if self.wanted == key:
                self.wanted = None
