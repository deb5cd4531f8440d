"""One budget in bytes for all data in flight: request bodies, unread responses and texts being recorded."""

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from starlette.types import Scope

from model.errors import Busy

from ..settings import KEPT_BYTES, MEGABYTE, Limits
from .process_memory import trim_heap

WORTH_TRIMMING = 32 * MEGABYTE
MIN_ROOM_BYTES = MEGABYTE // 4  # for something smaller, caches need not make room at once
IDLE_SECONDS = 5.0  # between returns of memory to the system while little is held
SLOW_SECONDS = 2.0  # in which the newest pieces of an answer should be read; slower readers give way to others
DROP = "headscope.drop"  # in a scope's extensions: closes the connection


class NoRoom(Busy):
    """The budget has no room for this now."""

    def __init__(
        self, message: str = "The server's memory budget for requests is used up. Try again in a moment."
    ) -> None:
        super().__init__(message)


class Sending:
    """Bytes held for an answer while its client reads it."""

    def __init__(self, n_bytes: int, scope: Scope, client: Hashable) -> None:
        self.n_bytes, self.client, self.loop = n_bytes, client, asyncio.get_running_loop()
        self.drop: Callable[[], None] | None = scope.get("extensions", {}).get(DROP)  # absent behind other servers
        self.waited = 0.0  # seconds for the pieces before, of which older ones count less
        self.waits_since: float | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While in here, the client has to take a piece of the answer."""
        self.waits_since = time.monotonic()
        try:
            yield
        finally:
            self.waited, self.waits_since = self.seconds_waited / 2, None

    @property
    def seconds_waited(self) -> float:
        """How long the answer has waited for its client to read about the last two pieces."""
        since = self.waits_since
        return self.waited + (0.0 if since is None else time.monotonic() - since)


class Budget:
    """Bytes that all clients together may hold; one client may hold half of them. Thread-safe."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.held = self.highest = 0  # highest since memory was last given back
        self.trimmed_at, self.used = 0.0, False  # since then
        self.clients: Counter[Hashable] = Counter()
        self.sending: dict[Sending, None] = {}  # answers that can give way
        self.lock = threading.Lock()
        self.make_room: Callable[[], object] = lambda: None  # called when less is free: caches use what nobody holds

    @property
    def free(self) -> int:
        """The number of bytes that nobody holds."""
        return self.n_bytes - self.held

    @property
    def most(self) -> int:
        """The maximum number of bytes that one client may hold."""
        return self.n_bytes // 2  # one client may hold half

    def take(self, n_bytes: int, client: Hashable) -> None:
        """Hold ``n_bytes`` more. Raises ``NoRoom``, with a message if there would never be room."""
        if n_bytes > self.most:
            needed, most = (f"{size / MEGABYTE:,.0f} MB" for size in (n_bytes, self.most))
            raise NoRoom(f"This takes {needed} of memory; a client may hold {most}. Ask for less.")
        with self.lock:
            has_share = self.clients[client] + n_bytes <= self.most
            if has_share:
                self.end_slow_answers(n_bytes, client)
            if not has_share or self.held + n_bytes > self.n_bytes:
                if not self.clients[client]:
                    del self.clients[client]
                raise NoRoom
            self.held += n_bytes
            self.clients[client] += n_bytes
            self.highest = max(self.highest, self.held)
            self.used = True
        if n_bytes >= MIN_ROOM_BYTES:
            self.make_room()

    def is_tight(self, n_bytes: int, client: Hashable) -> bool:
        """Whether ``n_bytes`` more for this client would leave less than an eighth of its share, or of the whole."""
        with self.lock:
            return 8 * (self.held + n_bytes) > 7 * self.n_bytes or 8 * (self.clients[client] + n_bytes) > 7 * self.most

    def give_back(self, n_bytes: int, client: Hashable) -> None:
        with self.lock:
            self.release(n_bytes, client)

    def release(self, n_bytes: int, client: Hashable) -> None:
        self.held -= n_bytes
        self.clients[client] -= n_bytes
        if not self.clients[client]:
            del self.clients[client]

    def end_slow_answers(self, n_bytes: int, client: Hashable) -> None:
        """Make room for ``n_bytes``: drop answers that are read too slowly, of clients that hold more than this one."""
        would_hold = self.clients[client] + n_bytes
        while self.held + n_bytes > self.n_bytes:
            larger = [each for each in self.sending if self.clients[each.client] > would_hold]
            slowest = max(larger, key=lambda each: each.seconds_waited, default=None)
            if slowest is None or slowest.seconds_waited < SLOW_SECONDS:
                return
            del self.sending[slowest]
            self.release(slowest.n_bytes, slowest.client)
            assert slowest.drop is not None
            slowest.loop.call_soon_threadsafe(slowest.drop)

    @contextmanager
    def hold(self, n_bytes: int, client: Hashable) -> Iterator[None]:
        """Hold ``n_bytes`` inside the ``with`` block. Raises ``NoRoom``."""
        self.take(n_bytes, client)
        try:
            yield
        finally:
            self.give_back(n_bytes, client)

    @contextmanager
    def hold_while_sent(self, n_bytes: int, scope: Scope, client: Hashable) -> Iterator[Sending]:
        """Like ``hold``, for the answer to the request in ``scope``. Its memory is for others if it is read slowly."""
        self.take(n_bytes, client)
        sending = Sending(n_bytes, scope, client)
        if sending.drop:
            self.sending[sending] = None
        try:
            yield sending
        finally:
            with self.lock:
                if not sending.drop or sending in self.sending:
                    self.sending.pop(sending, None)
                    self.release(n_bytes, client)

    def trim(self) -> None:
        """Return memory to the system if much of what was held has been freed, or nothing is held any more."""
        now = time.monotonic()
        with self.lock:
            is_idle = self.used and not self.held and now - self.trimmed_at > IDLE_SECONDS
            if self.highest - self.held < WORTH_TRIMMING and not is_idle:
                return
            self.highest, self.trimmed_at, self.used = self.held, now, False
        gc.collect()
        trim_heap()


def budget_for(limits: Limits) -> Budget:
    """The budget for data in flight: the operator's limit, less what the caches may hold."""
    return Budget(limits.memory_budget_mb * MEGABYTE - KEPT_BYTES)
