"""Texts that an engine writes, read from an event loop."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from model import GenerationRequest, Step
from model.errors import Busy, Closed
from model.serving.sequence import Cut, Event, Failure, Listener, TextSequence, is_last, recorded_bytes
from model.serving.text_engine import TextEngine

from ..prometheus import Metrics, outcome_of


class Generation:
    """Texts that are written together. Entering submits them to the engine; leaving cancels those still running.

    Iterating gives lists of ``(index of the request, event)`` as soon as there are events, but after the first list
    only at multiples of ``pace`` seconds, unless all texts have ended: the event loop then wakes once for all texts of
    all clients. The weights recorded in one list count as taken when the next list is asked for; a text with too many
    untaken ones stalls. Entering raises ``Busy`` or ``Closed``; iterating raises the error that ended one of the texts.
    Only the event loop that enters it may iterate; any thread may stop it. The outcome is counted for ``route``.
    """

    def __init__(
        self,
        engine: TextEngine[Any],
        requests: Sequence[GenerationRequest],
        *,
        client: Hashable,
        deadline: float,
        pace: "Pace",
        route: str,
        metrics: Metrics,
    ) -> None:
        self.engine, self.route, self.metrics = engine, route, metrics
        self.pace: Callable[[Generation], float] = pace if callable(pace) else lambda _: pace
        self.sequences: list[TextSequence] = [
            engine.new_sequence(request, self.listener(i), client, deadline) for i, request in enumerate(requests)
        ]
        self.outcome = "cancelled"  # until another outcome is known
        self.n_running = len(requests)  # texts whose last event has not arrived
        self.n_undelivered = len(requests)  # texts whose last event has not been handed to the caller
        self.events: deque[tuple[int, Event]] = deque()
        self.taking: list[tuple[int, int]] = []  # index and recorded bytes of the events that were handed out last
        self.newest_at = 0.0  # when the newest token was written, in seconds since the epoch
        self.stopped = threading.Event()
        self.next_at = 0.0  # the earliest time for the next list, unless all texts have ended before
        self.is_waiting = False  # for an event, so that the next one must wake the event loop
        self.arrived, self.ended = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        self.times = [time.perf_counter()] * len(self.sequences)  # of each text's newest token
        try:
            self.engine.submit(*self.sequences)
        except (Busy, Closed) as error:
            self.metrics.count(self.route, outcome_of(error))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()
        self.metrics.count(self.route, self.outcome)

    def listener(self, index: int) -> Listener:
        return lambda event: self.push(index, event)

    def push(self, index: int, event: Event) -> None:
        """Queue an event. The engine's thread calls this, so it must not block."""
        self.sequences[index].count_reported(recorded_bytes(event))
        self.events.append((index, event))
        if isinstance(event, Step):
            now, first = time.perf_counter(), len(self.sequences[index].written) == 1
            self.metrics.token(self.engine.loaded.name, now - self.times[index], first=first)
            self.times[index], self.newest_at = now, time.time()
        if is_last(event):
            self.n_running -= 1
            if not self.n_running:
                self.loop.call_soon_threadsafe(self.ended.set)
        if self.is_waiting:
            self.is_waiting = False
            self.loop.call_soon_threadsafe(self.arrived.set)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[tuple[int, Event]]:
        if not self.n_undelivered:
            raise StopAsyncIteration
        for index, n_bytes in self.taking:
            self.sequences[index].count_taken(n_bytes)
        if self.next_at > self.loop.time():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self.next_at):
                    await self.ended.wait()
        while not self.events:
            self.arrived.clear()
            self.is_waiting = True
            if not self.events:  # none has arrived before ``is_waiting`` was set
                await self.arrived.wait()
        self.is_waiting = False
        events = [self.events.popleft()]
        # Events before a failure are handed out first.
        while self.events and not isinstance(self.events[0][1], Failure):
            events.append(self.events.popleft())
        self.taking = [(index, recorded_bytes(event)) for index, event in events]
        for _, event in events:
            self.n_undelivered -= is_last(event)
            if isinstance(event, Failure):
                self.outcome = outcome_of(event.error)
                raise event.error
            if isinstance(event, Cut) and event.is_early:
                self.outcome = event.reason
        if not self.n_undelivered and self.outcome == "cancelled" and not self.stopped.is_set():
            self.outcome = "ok"
        pace = self.pace(self)
        self.next_at = (self.loop.time() // pace + 1) * pace if pace else 0.0
        return events

    def stop(self) -> None:
        """Have each text end with its next token, after all earlier tokens have been read."""
        self.stopped.set()
        for sequence in self.sequences:
            sequence.stop_soon()

    def cancel(self) -> None:
        """End all texts at once."""
        self.stopped.set()
        for sequence in self.sequences:
            sequence.cancel()


Pace = float | Callable[[Generation], float]  # seconds between lists of events
