"""Requests in an engine, followed from an event loop."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator
from functools import partial

from model import Step
from model.engine import Busy, Engine
from model.ticket import Cut, Event, Failure, Sink, Ticket

from .metrics import Pace


class Job:
    """One or several tickets that belong together. The loop that made it follows it; any thread may end it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.tickets: list[Ticket] = []
        self.paces: list[Pace] = []  # of each ticket
        self.outcome = "cancelled"  # until another is known
        self.events: deque[tuple[int, Event]] = deque()
        self.news, self.finished = asyncio.Event(), asyncio.Event()
        self.told = False
        self.n_open = 0
        self.cancelled, self.ended = threading.Event(), threading.Event()

    def sink(self) -> Sink:
        """Where the next ticket reports to."""
        self.n_open += 1
        return partial(self.push, self.n_open - 1)

    def start(self, engine: Engine, *tickets: Ticket) -> None:
        """Let tickets that report here join; raises what ``Engine.submit`` raises."""
        self.tickets += tickets
        try:
            engine.submit(*tickets)
        except Busy:
            self.outcome = "busy"
            raise

    def push(self, index: int, event: Event) -> None:
        """Take an event; called by the engine's thread, so nothing here waits."""
        self.events.append((index, event))
        if isinstance(event, Step) and self.paces:
            self.paces[index].token()
        if is_last(event):
            self.n_open -= 1
            if not self.n_open:
                self.ended.set()
                self.loop.call_soon_threadsafe(self.finished.set)
        if not self.told:
            self.told = True
            self.loop.call_soon_threadsafe(self.news.set)

    async def follow(self, pace: float = 0.0) -> AsyncGenerator[list[tuple[int, Event]]]:
        """Yield what has happened, as soon as it has, but not before ``pace`` seconds unless it is the end.

        Raises what ended one of the requests, if it was an error.
        """
        open_ends = len(self.tickets)
        while open_ends:
            await self.news.wait()
            self.news.clear()
            self.told = False  # before the events are taken, or one that comes between would not be told
            events = []
            while self.events:
                events.append(self.events.popleft())
            for _, event in events:
                open_ends -= is_last(event)
                if isinstance(event, Failure):
                    self.outcome = "failed"
                    raise event.error
                if isinstance(event, Cut):
                    self.outcome = event.reason
            if not open_ends and self.outcome == "cancelled" and not self.cancelled.is_set():
                self.outcome = "ok"
            if events:
                yield events
            if pace and open_ends:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.finished.wait(), pace)

    def stop(self) -> None:
        """End each text with its next token, when all before it were read."""
        self.cancelled.set()
        for ticket in self.tickets:
            ticket.finish()

    def cancel(self) -> None:
        """End at once."""
        self.cancelled.set()
        for ticket in self.tickets:
            ticket.cancel()


def is_last(event: Event) -> bool:
    return isinstance(event, Cut | Failure) or (isinstance(event, Step) and event.finish_reason is not None)
