"""The pool in which clients take turns at whatever the server does for them, apart from writing texts."""

import asyncio
import contextvars
import functools
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from model.errors import Busy
from model.serving.fair_queue import FairQueue

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False)
class Place:
    """A client's place in a pool, once it has been ``given``. That raises ``Busy`` if it went to another client."""

    client: Hashable
    continues: bool
    given: Future[None] = field(default_factory=Future)
    is_held: bool = False


class FairPool:
    """A pool of ``n_places``, in which clients take turns. Thread-safe.

    One client may have at most ``max_per_client`` places, by default all. ``max_waiting`` more may wait; beyond
    that, the newest of the client with the most is refused, with the error that ``busy`` makes.
    """

    def __init__(
        self,
        n_places: int,
        max_waiting: int,
        max_per_client: int | None = None,
        busy: Callable[[], Busy] = Busy,
    ) -> None:
        self.busy = busy
        self.n_places, self.max_waiting, self.max_per_client = n_places, max_waiting, max_per_client or n_places
        self.queue: FairQueue[Place] = FairQueue()
        self.active: Counter[Hashable] = Counter()  # places taken, by client
        self.lock = threading.RLock()

    # ---- For any thread ----------------------------------------------------------------------------------------------

    def join(self, client: Hashable, *, continues: bool = False) -> Place:
        """A place, which the caller must ``leave``. Raises ``Busy``, unless it ``continues`` work that has begun."""
        place = Place(client, continues)
        with self.lock:
            for refused in () if continues else self.to_refuse(client):
                self.queue.remove(refused)
                if refused.given.set_running_or_notify_cancel():
                    refused.given.set_exception(self.busy())
            self.queue.append(place)
            self.fill_places()
        return place

    def leave(self, place: Place) -> None:
        """Free a place, or give up waiting for it."""
        with self.lock:
            if not place.is_held:
                self.give_up(place)
                return
            place.is_held = False
            self.active = self.active - Counter([place.client])
            self.fill_places(place.client)

    def give_up(self, place: Place) -> None:
        """Take a place out of the queue, if it is still there."""
        with self.lock:
            if place in self.queue:
                self.queue.remove(place)
                place.given.cancel()

    def check_room(self, client: Hashable) -> None:
        """Raise ``Busy`` if a new place of this client would be refused."""
        with self.lock:
            self.to_refuse(client)

    def in_order(self) -> list[Place]:
        """Those who wait, in the order in which they come if no active one ends before."""
        with self.lock:
            return self.queue.in_order(self.active)

    def has_room_for(self, client: Hashable) -> bool:
        return self.active.total() < self.n_places and self.active[client] < self.max_per_client

    def fill_places(self, *left: Hashable) -> None:
        """Give the free places to those who wait; a client that just ``left`` comes after others with as many."""
        while self.queue and self.active.total() < self.n_places:
            at_most = Counter({client: self.n_places for client, n in self.active.items() if n >= self.max_per_client})
            counts = self.active + Counter(left) + at_most
            if self.active[self.queue.next_client(counts)] >= self.max_per_client:
                return
            place = self.queue.take(counts)
            if place.given.set_running_or_notify_cancel():
                place.is_held = True
                self.active[place.client] += 1
                place.given.set_result(None)

    def to_refuse(self, client: Hashable) -> list[Place]:
        """Those that must leave the queue to make room for this client. Raises ``Busy`` if that fails."""
        if self.has_room_for(client):
            return []
        waiting = [place for place in self.queue if not place.continues]
        counts = self.active + Counter(place.client for place in waiting)
        try:
            return self.queue.to_refuse(
                client, len(waiting) + 1 - self.max_waiting, counts, lambda place: not place.continues
            )
        except Busy:
            raise self.busy() from None

    # ---- For an event loop -------------------------------------------------------------------------------------------

    async def take_place(self, client: Hashable, *, continues: bool = False) -> Place:
        """Wait for a place, which the caller must ``leave``. Raises ``Busy``."""
        place = self.join(client, continues=continues)
        try:
            if not place.given.done():
                await asyncio.wrap_future(place.given)
        except BaseException:  # the client may leave just as it gets the place
            self.leave(place)
            raise
        return place

    @asynccontextmanager
    async def place(self, client: Hashable) -> AsyncIterator[None]:
        """Wait for a place and hold it inside the ``async with`` block. Raises ``Busy``."""
        place = await self.take_place(client)
        try:
            yield
        finally:
            self.leave(place)


class FairThreads(FairPool):
    """A pool whose places are threads of its own: those of the event loop record the texts that are being written."""

    def __init__(self, n_threads: int, max_waiting: int) -> None:
        super().__init__(n_threads, max_waiting)
        self.threads = ThreadPoolExecutor(n_threads, thread_name_prefix="worker")

    async def run(self, client: Hashable, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``function`` in a thread when it is this client's turn, and return its result. Raises ``Busy``."""
        return await self.compute(client, functools.partial(function, *args, **kwargs))

    async def resume(self, client: Hashable, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like ``run``, for the next part of a computation that has begun: it waits its turn but is never refused."""
        return await self.compute(client, functools.partial(function, *args, **kwargs), continues=True)

    async def compute(self, client: Hashable, function: Callable[[], T], *, continues: bool = False) -> T:
        place = await self.take_place(client, continues=continues)
        in_context = functools.partial(contextvars.copy_context().run, function)
        work = asyncio.get_running_loop().run_in_executor(self.threads, in_context)
        # A thread cannot be interrupted, so the place is held until the function returns, even if the client leaves.
        work.add_done_callback(lambda _: self.leave(place))
        # No caller may be left: mark the error as retrieved.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(work)
