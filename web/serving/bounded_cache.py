"""A cache of the most recently used values, limited by their number or their bytes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by key; thread-safe. The least recently used are evicted first; the newest is never evicted.

    ``max_bytes`` may be a function, as the limit may change. ``size`` gives the bytes of a value, which may grow while
    it is cached. ``can_evict`` may protect a value that is in use. ``shrink`` releases a part of a value: it is tried
    on the values, in the same order, before any is evicted. ``on_evict`` is called, without holding the lock, for each
    value evicted to make room.
    """

    def __init__(
        self,
        *,
        max_entries: int | None = None,
        max_bytes: int | Callable[[], int] | None = None,
        size: Callable[[V], int] = lambda _: 0,
        can_evict: Callable[[V], bool] = lambda _: True,
        shrink: Callable[[V], object] | None = None,
        on_evict: Callable[[V], object] = lambda _: None,
    ) -> None:
        self.max_entries, self.max_bytes = max_entries, max_bytes
        self.size, self.can_evict, self.shrink, self.on_evict = size, can_evict, shrink, on_evict
        self.entries: OrderedDict[K, V] = OrderedDict()  # the least recently used first
        self.computations: dict[K, Computation[V]] = {}  # running ones whose results will be cached
        self.lock = threading.Lock()  # never held during a computation

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def nbytes(self) -> int:
        return sum(map(self.size, self.values()))

    def values(self) -> list[V]:
        """All values, the least recently used first."""
        with self.lock:
            return list(self.entries.values())

    def get(self, key: K) -> V | None:
        with self.lock:
            if key in self.entries:
                self.entries.move_to_end(key)
            return self.entries.get(key)

    def put(self, key: K, value: V) -> None:
        with self.lock:
            self.entries[key] = value
            self.entries.move_to_end(key)
        self.trim()

    def get_or_compute(self, key: K, compute: Callable[[], V], is_valid: Callable[[V], bool] = lambda _: True) -> V:
        """Return the value cached under ``key`` if it ``is_valid``; otherwise compute, cache and return a new one.

        Callers that ask for the same key in the meantime wait for that value; if the computation fails, or the value is
        not valid for them, each computes its own.
        """
        while True:
            with self.lock:
                if key in self.entries and is_valid(self.entries[key]):
                    self.entries.move_to_end(key)
                    return self.entries[key]
                running = self.computations.get(key)
                if running is None:
                    own = self.computations[key] = Computation[V]()
                    break
            running.ended.wait()
            if running.result and is_valid(running.result[0]):
                return running.result[0]
        try:
            value = compute()
            own.result.append(value)
            with self.lock:
                if self.computations.get(key) is own:  # ``remove`` has not removed it in the meantime
                    self.entries[key] = value
                    self.entries.move_to_end(key)
        finally:
            with self.lock:
                if self.computations.get(key) is own:
                    del self.computations[key]
            own.ended.set()
        self.trim()
        return value

    def remove(self, predicate: Callable[[K, V | None], bool]) -> list[V]:
        """Remove all entries with ``predicate(key, value)``, and return their values; ``on_evict`` is not called.

        A value that is still being computed is passed to ``predicate`` as None. If it is removed, callers that wait for
        it still get it, but it is not cached, and later calls compute it again.
        """
        with self.lock:
            for key in [key for key in self.computations if predicate(key, None)]:
                del self.computations[key]
            return [self.entries.pop(key) for key in [key for key in self.entries if predicate(key, self.entries[key])]]

    def trim(self) -> None:
        """Shrink and evict values until the rest is within the limits, or no more can be evicted."""
        evicted: list[V] = []
        with self.lock:
            most = self.max_bytes() if callable(self.max_bytes) else self.max_bytes
            excess = 0 if most is None else sum(map(self.size, self.entries.values())) - most  # bytes
            oldest = [] if self.is_within(excess) else list(self.entries.items())[:-1]
            for _, value in oldest:
                if excess <= 0 or self.shrink is None:
                    break
                if self.can_evict(value):
                    excess -= self.size(value)
                    self.shrink(value)
                    excess += self.size(value)
            for key, value in oldest:
                if self.is_within(excess):
                    break
                if self.can_evict(value):
                    del self.entries[key]
                    evicted.append(value)
                    excess -= self.size(value)
        for value in evicted:
            self.on_evict(value)

    def is_within(self, excess: int) -> bool:
        """Whether the entries are within the limits, if they have this many bytes more than their maximum."""
        return excess <= 0 and (self.max_entries is None or len(self.entries) <= self.max_entries)


class Computation(Generic[V]):
    """A value that is being computed."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.result: list[V] = []  # one value, or none if the computation failed
