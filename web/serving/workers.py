"""Runs computations in threads: a few at a time, with clients taking turns and a bounded queue."""

import asyncio
import contextvars
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from model.errors import Busy
from model.serving.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False)
class Waiter:
    """A caller that waits for its turn. Unless its computation has ``begun``, ``turn`` may raise ``Busy``."""

    client: Hashable
    begun: bool
    turn: asyncio.Future[None] = field(default_factory=asyncio.Future)


class Workers:
    """Runs at most ``n_places`` computations at once for all clients. Not thread-safe: used only from the event loop.

    One client may have at most ``max_per_client`` of them, by default all. ``max_waiting`` more may wait; beyond that,
    the newest computation of the client with the most is refused.
    """

    def __init__(self, n_places: int, max_waiting: int, max_per_client: int | None = None) -> None:
        self.n_places, self.max_waiting, self.max_per_client = n_places, max_waiting, max_per_client or n_places
        self.queue: FairQueue[Waiter] = FairQueue()
        self.at_work: Counter[Hashable] = Counter()  # computations by client
        # Separate threads, because those of the event loop are also needed to record texts that are being written.
        self.threads = ThreadPoolExecutor(n_places, thread_name_prefix="worker")

    @asynccontextmanager
    async def place(self, client: Hashable) -> AsyncIterator[None]:
        """Wait for a turn and hold it inside the ``async with`` block. Raises ``Busy``."""
        await self.take_turn(client)
        try:
            yield
        finally:
            self.end_turn(client)

    async def run(self, client: Hashable, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``function`` in a thread when it is this client's turn, and return its result. Raises ``Busy``."""
        return await self.compute(client, functools.partial(function, *args, **kwargs))

    async def resume(self, client: Hashable, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like ``run``, for the next part of a computation that has begun: it waits its turn but is never refused."""
        return await self.compute(client, functools.partial(function, *args, **kwargs), begun=True)

    async def compute(self, client: Hashable, function: Callable[[], T], *, begun: bool = False) -> T:
        await self.take_turn(client, begun=begun)
        in_context = functools.partial(contextvars.copy_context().run, function)
        work = asyncio.get_running_loop().run_in_executor(self.threads, in_context)
        # A thread cannot be interrupted, so the turn lasts until the function returns, even if the client leaves.
        work.add_done_callback(lambda _: self.end_turn(client))
        # No caller may be left: mark the error as retrieved.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(work)

    async def take_turn(self, client: Hashable, *, begun: bool = False) -> None:
        waiter = Waiter(client, begun)
        if not self.has_place(client) and not begun:
            for refused in self.to_refuse(client):
                self.queue.remove(refused)
                refused.turn.set_exception(Busy())
        self.queue.append(waiter)
        self.fill_places()
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.cancelled():
                if waiter in self.queue:
                    self.queue.remove(waiter)
            elif waiter.turn.exception() is None:  # the turn came just as the client left
                self.end_turn(client)
            raise

    def end_turn(self, client: Hashable) -> None:
        self.at_work[client] -= 1
        self.at_work = +self.at_work  # drops clients whose count is zero
        self.fill_places()

    def has_place(self, client: Hashable) -> bool:
        return self.at_work.total() < self.n_places and self.at_work[client] < self.max_per_client

    def fill_places(self) -> None:
        """Give free places to waiters."""
        while self.queue and self.has_place(self.queue.next_client(self.at_work)):
            waiter = self.queue.take(self.at_work)
            if not waiter.turn.done():
                self.at_work[waiter.client] += 1
                waiter.turn.set_result(None)

    def check_room(self, client: Hashable) -> None:
        """Raise ``Busy`` if a new computation of this client would be refused."""
        self.to_refuse(client)

    def to_refuse(self, client: Hashable) -> list[Waiter]:
        """The waiters that must leave the queue to make room for this client.

        Raises ``Busy`` if the client itself is to be refused.
        """
        n_waiting = sum(may_be_refused(waiter) for waiter in self.queue)
        return self.queue.to_refuse(client, n_waiting + 1 - self.max_waiting, may_be_refused=may_be_refused)


def may_be_refused(waiter: Waiter) -> bool:
    return not waiter.begun and not waiter.turn.done()
