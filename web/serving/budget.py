"""One budget in bytes for all that is in flight: bodies, answers that nobody has read yet, texts being recorded."""

import ctypes
import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from model.serving.engine import Busy

from ..settings import KEPT_BYTES, Limits

MEGABYTE = 1_000_000
SHARE = 2  # one client may hold the budget divided by this
WORTH_TRIMMING = 32 * MEGABYTE
M_ARENA_MAX = -8  # in glibc's malloc.h
IDLE_SECONDS = 5.0  # between two times of giving memory back when little was held


class NoRoom(Busy):
    """The budget has no room for this at the moment."""


class Budget:
    """Bytes that may be held, for all clients together, and half of them for one. Any thread."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.held = self.highest = 0  # highest since memory was last given back
        self.trimmed_at, self.used = 0.0, False  # since then
        self.clients: Counter[Hashable] = Counter()
        self.lock = threading.Lock()

    @property
    def most(self) -> int:
        """What one client may hold."""
        return self.n_bytes // SHARE

    def take(self, n_bytes: int, client: Hashable) -> None:
        """Hold that many bytes more; raises ``NoRoom``."""
        with self.lock:
            if self.held + n_bytes > self.n_bytes or self.clients[client] + n_bytes > self.most:
                if not self.clients[client]:
                    del self.clients[client]
                raise NoRoom
            self.held += n_bytes
            self.clients[client] += n_bytes
            self.highest = max(self.highest, self.held)
            self.used = True

    def give_back(self, n_bytes: int, client: Hashable) -> None:
        with self.lock:
            self.held -= n_bytes
            self.clients[client] -= n_bytes
            if not self.clients[client]:
                del self.clients[client]

    @contextmanager
    def hold(self, n_bytes: int, client: Hashable) -> Iterator[None]:
        """Hold that many bytes in here; raises ``NoRoom``."""
        self.take(n_bytes, client)
        try:
            yield
        finally:
            self.give_back(n_bytes, client)

    def trim(self) -> None:
        """Give memory back to the system, if much of what was held has been let go, or now that nothing is held."""
        now = time.monotonic()
        with self.lock:
            is_idle = self.used and not self.held and now - self.trimmed_at > IDLE_SECONDS
            if self.highest - self.held < WORTH_TRIMMING and not is_idle:
                return
            self.highest, self.trimmed_at, self.used = self.held, now, False
        gc.collect()
        trim_heap()


def budget_for(limits: Limits) -> Budget:
    """What the operator allows, without what is always kept."""
    return Budget(limits.memory_budget_mb * MEGABYTE - KEPT_BYTES)


def keep_all_objects() -> None:
    """Let the garbage collector pass over what there is by now: looking through all of it halts everything else."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # a body of many lists is no reason to look for garbage a hundred times
    trim_heap()


def share_heaps() -> None:
    """Let all threads share two heaps; call it before they begin.

    By default glibc gives each of them a heap of its own, and what was freed in one of a hundred is of no use to the
    others.
    """
    if set_option := of_glibc("mallopt"):
        set_option(M_ARENA_MAX, 2)


def trim_heap() -> None:
    """Give back what was freed: glibc keeps it below anything still in use."""
    if trim := of_glibc("malloc_trim"):
        trim(0)


def of_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where that is another one, which needs no such care."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
