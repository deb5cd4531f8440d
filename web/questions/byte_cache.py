"""The most recently used values, bounded in bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ByteCache(Generic[T]):
    """Values by key. The least recently used are dropped first, the newest never, however large it is."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes in list(self.kept.values()))

    def get(self, key: Hashable) -> T | None:
        with self.lock:
            if key not in self.kept:
                return None
            self.kept.move_to_end(key)
            return self.kept[key][0]

    def put(self, key: Hashable, value: T, nbytes: int) -> None:
        with self.lock:
            self.kept[key] = value, nbytes
            self.kept.move_to_end(key)
            while len(self.kept) > 1 and sum(each for _, each in self.kept.values()) > self.max_bytes:
                self.kept.popitem(last=False)

    def drop(self, if_true: Callable[[Any], bool]) -> None:
        """Let go of what is kept under keys for which this is true."""
        with self.lock:
            for key in [key for key in self.kept if if_true(key)]:
                del self.kept[key]

    def get_or_make(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The value kept under ``key``, or a new one. Threads that ask for the same one at once may each make it."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value, size(value))
        return value
