"""The connections of a server: how many are open for each client, and which are dropped."""

import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Hashable
from typing import Any

from ..seams.uvicorn import Connection
from ..serving.budget import Budget
from .parse_shares import ParseShares

RESERVED_DESCRIPTORS = 200  # for files, pipes, and connections accepted but not yet counted
MIN_CONNECTIONS = 16
SWEEP_SECONDS = 1.0
READ_BYTES = 65_536  # received at a time

log = logging.getLogger(__name__)


class Connections:
    """All connections of one server. Not thread-safe: used only from its event loop.

    At most ``max_open`` may be open, and at most ``max_per_client`` per client unless that is 0. When there are too
    many, one connection of the client with the most is closed: an idle one if there is any, otherwise the newest.
    """

    def __init__(self, budget: Budget, max_open: int, max_per_client: int = 0, n_proxies: int = 0) -> None:
        self.budget = budget
        self.max_open, self.n_proxies = min(max_open, room_for_connections()), n_proxies
        # Behind a proxy, all connections come from the proxy's address.
        self.max_per_client = 0 if n_proxies else max_per_client
        self.open: dict[Connection, None] = {}  # oldest first
        self.counts: Counter[Hashable] = Counter()  # by owner
        self.n_dropped = 0
        self.is_swept = False
        self.lag = 0.0  # seconds by which the last sweep was late
        self.parse_shares = ParseShares()
        self.buffer = bytearray(READ_BYTES)  # each connection copies from it at once what it has received

    def protocol(self, *args: Any, **options: Any) -> Connection:
        """A new connection, for ``uvicorn.Config(http=...)``."""
        return Connection(self, *args, **options)

    def add(self, connection: Connection) -> None:
        """Add a connection, and close one if there are too many."""
        self.open[connection] = None
        self.counts[connection.owner] += 1
        if not self.is_swept:
            self.is_swept = True
            self.sweep_later(connection.loop)
        if self.max_per_client and self.counts[connection.owner] > self.max_per_client:
            self.drop_one(connection.owner)
        elif len(self.open) > self.max_open:
            (owner, _), *_ = self.counts.most_common(1)
            self.drop_one(owner)

    def drop_one(self, owner: Hashable) -> None:
        idle = next((each for each in self.open if each.owner == owner and each.is_idle), None)
        newest = next(each for each in reversed(self.open) if each.owner == owner)
        (idle or newest).drop()
        self.n_dropped += 1

    def belongs_to(self, connection: Connection, owner: Hashable) -> None:
        """Record the client that a connection belongs to, as a request on it has shown."""
        if connection in self.open and owner != connection.owner:
            self.forget_owner(connection)
            self.counts[owner] += 1
        connection.owner = owner

    def remove(self, connection: Connection) -> None:
        if connection in self.open:
            del self.open[connection]
            self.forget_owner(connection)

    def forget_owner(self, connection: Connection) -> None:
        self.counts[connection.owner] -= 1
        if not self.counts[connection.owner]:
            del self.counts[connection.owner]

    def sweep_later(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + SWEEP_SECONDS
        loop.call_at(due, self.sweep, loop, due)

    def sweep(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        """Drop stalled connections, once a second."""
        self.lag = max(0.0, loop.time() - due)
        self.sweep_later(loop)  # first, so that an exception below cannot end the sweeps
        now = time.monotonic()
        for connection in list(self.open):
            try:
                if connection.is_stalled(now):
                    connection.drop()
            except Exception:
                log.exception("A connection could not be checked for stalling, or could not be closed")
        if self.n_dropped:
            log.warning("There were too many connections: %d were closed to make room.", self.n_dropped)
            self.n_dropped = 0
        self.parse_shares.forget()
        loop.run_in_executor(None, self.budget.trim)


def room_for_connections() -> int:
    """How many connections leave enough file descriptors for everything else."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource  # not available on Windows

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(MIN_CONNECTIONS, limit - RESERVED_DESCRIPTORS) if limit != resource.RLIM_INFINITY else sys.maxsize
