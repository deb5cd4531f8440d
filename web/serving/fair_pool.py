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
class Turn:
    """A client's place in a pool, once it has been ``given``. That raises ``Busy`` if the turn had to make room."""

    client: Hashable
    begun: bool
    given: Future[None] = field(default_factory=Future)
    has_place: bool = False


class FairPool:
    """A pool of ``n_places``, in which clients take turns. Thread-safe.

    One client may have at most ``max_per_client`` places, by default all. ``max_waiting`` turns more may wait; beyond
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
        self.queue: FairQueue[Turn] = FairQueue()
        self.active: Counter[Hashable] = Counter()  # places taken, by client
        self.lock = threading.RLock()

    # ---- For any thread ----------------------------------------------------------------------------------------------

    def join(self, client: Hashable, *, begun: bool = False) -> Turn:
        """A turn, which must ``leave``. Raises ``Busy``, unless the work has ``begun`` and this is its next part."""
        turn = Turn(client, begun)
        with self.lock:
            for refused in () if begun else self.to_refuse(client):
                self.queue.remove(refused)
                if refused.given.set_running_or_notify_cancel():
                    refused.given.set_exception(self.busy())
            self.queue.append(turn)
            self.fill_places()
        return turn

    def leave(self, turn: Turn) -> None:
        """End a turn, or give it up."""
        with self.lock:
            if not turn.has_place:
                self.give_up(turn)
                return
            turn.has_place = False
            self.active = self.active - Counter([turn.client])
            self.fill_places(turn.client)

    def give_up(self, turn: Turn) -> None:
        """Take a turn out of the queue, if it is still there."""
        with self.lock:
            if turn in self.queue:
                self.queue.remove(turn)
                turn.given.cancel()

    def check_room(self, client: Hashable) -> None:
        """Raise ``Busy`` if a new turn of this client would be refused."""
        with self.lock:
            self.to_refuse(client)

    def in_order(self) -> list[Turn]:
        """The waiting turns in the order in which they come if no active one ends before."""
        with self.lock:
            return self.queue.in_order(self.active)

    def has_room_for(self, client: Hashable) -> bool:
        return self.active.total() < self.n_places and self.active[client] < self.max_per_client

    def fill_places(self, *left: Hashable) -> None:
        """Give the free places to waiting turns; a client that just ``left`` comes after others with as many places."""
        while self.queue and self.active.total() < self.n_places:
            counts = self.active + Counter(left)
            if self.active[self.queue.next_client(counts)] >= self.max_per_client:
                return
            turn = self.queue.take(counts)
            if turn.given.set_running_or_notify_cancel():
                turn.has_place = True
                self.active[turn.client] += 1
                turn.given.set_result(None)

    def to_refuse(self, client: Hashable) -> list[Turn]:
        """The turns that must leave the queue to make room for this client. Raises ``Busy`` if that fails."""
        if self.has_room_for(client):
            return []
        waiting = [turn for turn in self.queue if not turn.begun]
        counts = self.active + Counter(turn.client for turn in waiting)
        try:
            return self.queue.to_refuse(
                client, len(waiting) + 1 - self.max_waiting, counts, lambda turn: not turn.begun
            )
        except Busy:
            raise self.busy() from None

    # ---- For an event loop -------------------------------------------------------------------------------------------

    async def take_turn(self, client: Hashable, *, begun: bool = False) -> Turn:
        """Wait for a turn, which must ``leave``. Raises ``Busy``."""
        turn = self.join(client, begun=begun)
        try:
            if not turn.given.done():
                await asyncio.wrap_future(turn.given)
        except BaseException:  # the client may leave just as its turn comes
            self.leave(turn)
            raise
        return turn

    @asynccontextmanager
    async def place(self, client: Hashable) -> AsyncIterator[None]:
        """Wait for a turn and hold it inside the ``async with`` block. Raises ``Busy``."""
        turn = await self.take_turn(client)
        try:
            yield
        finally:
            self.leave(turn)


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
        return await self.compute(client, functools.partial(function, *args, **kwargs), begun=True)

    async def compute(self, client: Hashable, function: Callable[[], T], *, begun: bool = False) -> T:
        turn = await self.take_turn(client, begun=begun)
        in_context = functools.partial(contextvars.copy_context().run, function)
        work = asyncio.get_running_loop().run_in_executor(self.threads, in_context)
        # A thread cannot be interrupted, so the turn lasts until the function returns, even if the client leaves.
        work.add_done_callback(lambda _: self.leave(turn))
        # No caller may be left: mark the error as retrieved.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(work)
