"""Clients take turns at having the event loop parse what they send."""

import asyncio
import time
from collections.abc import Hashable
from typing import Protocol

SHARE = 0.25  # of the event loop's time that one client may use in the long run
BURST_SECONDS = 0.02  # that it may use at once


class Parsing(Protocol):
    """A connection with data to parse."""

    payer: Hashable  # the client that the time counts for

    def parse_on(self) -> None: ...


class ParseShares:
    """Lets each client parse for a quarter of the time. Not thread-safe: used only from the event loop.

    Some requests are cheap to send and expensive to parse, such as bodies in chunks of one byte. A client's connections
    that must wait are called again in turn. Time is what passes, not the processor's: on a busy machine both the share
    and what others lose grow with it.
    """

    def __init__(self) -> None:
        self.used: dict[Hashable, tuple[float, float]] = {}  # seconds by client, and as of when
        self.waiting: dict[Hashable, dict[Parsing, None]] = {}  # by client; the first has waited longest

    def owed(self, client: Hashable) -> float:
        """The seconds by which a client has used more than its share."""
        used, at = self.used.get(client, (0.0, 0.0))
        return max(0.0, used - SHARE * (time.monotonic() - at))

    def charge(self, client: Hashable, seconds: float) -> None:
        self.used[client] = self.owed(client) + seconds, time.monotonic()

    def may_parse(self, connection: Parsing, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this connection may parse; otherwise its ``parse_on`` will be called."""
        client = connection.payer
        if client not in self.waiting:
            if self.owed(client) <= BURST_SECONDS:
                return True
            self.waiting[client] = {}
            self.call_later(client, loop)
        self.waiting[client][connection] = None
        return False

    def call_later(self, client: Hashable, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(max(0.0, self.owed(client) - BURST_SECONDS / 2) / SHARE, self.serve, client, loop)

    def serve(self, client: Hashable, loop: asyncio.AbstractEventLoop) -> None:
        """Let the connections of a client that have waited longest parse on."""
        waiting = self.waiting.pop(client)
        while waiting and self.owed(client) <= BURST_SECONDS:
            connection = next(iter(waiting))
            del waiting[connection]
            connection.parse_on()
        if waiting:
            again = self.waiting.get(client)
            self.waiting[client] = waiting | (again or {})
            if again is None:
                self.call_later(client, loop)

    def forget(self) -> None:
        """Forget clients that owe nothing."""
        self.used = {client: used for client, used in self.used.items() if self.owed(client)}
