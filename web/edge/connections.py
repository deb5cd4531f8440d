"""Closes stalled connections and limits how many are open.

uvicorn has a timeout only between requests. Here, a client that opens a connection and sends nothing, stops in the
middle of a request, or does not read its response is dropped about a second after ``STALL_SECONDS``.
"""

import asyncio
import logging
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Hashable
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..client import client_at, client_in, set_client_address
from ..serving.budget import Budget
from ..settings import UPLOAD_SECONDS
from .bodies import DROP

STALL_SECONDS = 15.0  # after which a connection is closed if it waits for a client that does nothing
MAX_BODY_SECONDS = UPLOAD_SECONDS + 5.0  # within which a request body must have arrived
RESERVED_DESCRIPTORS = 200  # for files, pipes, and connections accepted but not yet counted

log = logging.getLogger(__name__)

SWEEP_SECONDS = 1.0
MIN_CONNECTIONS = 16
RESET = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # SO_LINGER: on, for 0 seconds
WRITE_AHEAD = 16_384  # unread bytes at which writing to a client pauses


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

    def protocol(self, *args: Any, **options: Any) -> "Connection":
        """A new connection, for ``uvicorn.Config(http=...)``."""
        return Connection(self, *args, **options)

    def add(self, connection: "Connection") -> None:
        """Add a connection, and close one if there are too many."""
        self.open[connection] = None
        self.counts[connection.owner] += 1
        if not self.is_swept:
            self.is_swept = True
            connection.loop.call_later(SWEEP_SECONDS, self.sweep, connection.loop)
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

    def belongs_to(self, connection: "Connection", owner: Hashable) -> None:
        """Record the client that a connection belongs to, as a request on it has shown."""
        if connection in self.open and owner != connection.owner:
            self.forget_owner(connection)
            self.counts[owner] += 1
        connection.owner = owner

    def remove(self, connection: "Connection") -> None:
        if connection in self.open:
            del self.open[connection]
            self.forget_owner(connection)

    def forget_owner(self, connection: "Connection") -> None:
        self.counts[connection.owner] -= 1
        if not self.counts[connection.owner]:
            del self.counts[connection.owner]

    def sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Drop stalled connections, once a second."""
        loop.call_later(SWEEP_SECONDS, self.sweep, loop)  # first, so that an exception below cannot end the sweeps
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
        loop.run_in_executor(None, self.budget.trim)


class GatheredWrites:
    """A ``transport`` that sends together what is written in one turn of the event loop, up to ``WRITE_AHEAD`` bytes.

    uvicorn writes headers, body and end of a response one by one. Each write would be a system call, during which other
    threads take Python's lock.
    """

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.parts: list[bytes] = []
        self.n_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)

    def write(self, data: bytes) -> None:
        if not self.parts:
            self.loop.call_soon(self.flush)
        self.parts.append(data)
        self.n_bytes += len(data)
        if self.n_bytes > WRITE_AHEAD:
            self.flush()

    def flush(self) -> None:
        data, self.n_bytes = b"".join(self.parts), 0
        self.parts.clear()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def get_write_buffer_size(self) -> int:
        return self.n_bytes + int(self.transport.get_write_buffer_size())


class Connection(H11Protocol):
    """A uvicorn connection that also keeps track of its client and of when data last moved on it."""

    def __init__(self, connections: Connections, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.all = connections
        self.owner: Hashable = None  # the client, once it is known
        self.routed = self.app
        self.app = self.serve
        now = time.monotonic()
        self.idle_since = self.heard_at = self.asked_at = self.written_at = now
        self.n_unsent = 0

    def connection_made(self, transport: Any) -> None:
        gathered: Any = GatheredWrites(transport, self.loop)
        super().connection_made(gathered)
        transport.set_write_buffer_limits(WRITE_AHEAD)
        self.owner = client_at(self.client[0]) if self.client else None
        self.all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.all.remove(self)

    def data_received(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        super().data_received(data)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, after setting the address in its scope to the client's rather than a proxy's."""
        self.asked_at = time.monotonic()
        set_client_address(scope, self.all.n_proxies)
        self.all.belongs_to(self, client_in(scope))
        scope.setdefault("extensions", {})[DROP] = self.drop
        await self.routed(scope, receive, send)

    def on_response_complete(self) -> None:
        self.idle_since = time.monotonic()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """Whether the connection is waiting for a request, or for the rest of a request's headers."""
        return self.cycle is None or self.cycle.response_complete

    def is_stalled(self, now: float) -> bool:
        n_unsent = self.transport.get_write_buffer_size()
        if n_unsent < self.n_unsent or not n_unsent:
            self.written_at = now
        self.n_unsent = n_unsent
        if now - self.written_at > STALL_SECONDS:
            return True
        if self.is_idle:
            return now - self.idle_since > STALL_SECONDS and not n_unsent
        if self.cycle.more_body and not self.flow.read_paused:
            return now - self.heard_at > STALL_SECONDS or now - self.asked_at > MAX_BODY_SECONDS
        return False

    def drop(self) -> None:
        """Close the connection at once, discarding unsent data."""
        self.all.remove(self)
        if self.transport.get_write_buffer_size():
            # Without this, the system would keep what it has taken, megabytes, for minutes, and count it for no one.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()


def room_for_connections() -> int:
    """How many connections leave enough file descriptors for everything else."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource  # not available on Windows

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(MIN_CONNECTIONS, limit - RESERVED_DESCRIPTORS) if limit != resource.RLIM_INFINITY else sys.maxsize
