"""One visitor's training, from its place in line to the model that comes of it."""

import asyncio
import shutil
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

from .ask import TrainingAsk
from .process import TrainingProcess

State = Literal["waiting", "starting", "writing", "training", "finishing", "done", "failed"]
ENDED: tuple[State, ...] = ("done", "failed")
REPLACED = {"waiting", "step", "writing"}  # of these, only the newest is of use to somebody who comes later
KEEP_ALIVE_SECONDS = 5.0


class Training:
    """Everything that is known of it, told to all who follow it, from the beginning.

    ``events`` is what is told: what the process reports, and events of the kind "state". The server's loop owns it.
    """

    def __init__(self, visitor: str, name: str, ask: TrainingAsk, work: Path) -> None:
        self.visitor, self.name, self.ask, self.work = visitor, name, ask, work
        self.state: State = "waiting"
        self.events: list[dict[str, Any] | None] = []
        self.newest: dict[str, int] = {}  # the place of the newest event of a kind
        self.news: set[asyncio.Event] = set()  # one of each follower
        self.process: TrainingProcess | None = None
        self.stopping = False
        self.n_followers = 0
        self.seen_at = self.ended_at = time.monotonic()

    @property
    def folder(self) -> Path:
        """The checkpoint that comes of it."""
        return self.work / self.name

    @property
    def text_file(self) -> Path:
        return self.work / "text.txt"

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def tell(self, event: dict[str, Any]) -> None:
        """Take an event and wake those who follow. Every state is kept, but only the newest place in line."""
        kind = "waiting" if event.get("state") == "waiting" else event["kind"]
        if kind in REPLACED and kind in self.newest:
            self.events[self.newest[kind]] = None
        self.newest[kind] = len(self.events)
        self.events.append(event)
        for news in self.news:
            news.set()

    def enter(self, state: State, **more: Any) -> None:
        """Tell that it is in another state; ``more`` is the place in line, or why it failed."""
        self.state = state
        if self.ended:
            self.ended_at = time.monotonic()
        self.tell({"kind": "state", "state": state, "name": self.name, **more})

    async def follow(self) -> AsyncGenerator[dict[str, Any] | None]:
        """All events so far and those to come, to the end; None every few seconds in which there is none."""
        news = asyncio.Event()
        self.news.add(news)
        self.n_followers += 1
        place = 0
        try:
            while True:
                news.clear()
                while place < len(self.events):
                    event = self.events[place]
                    place += 1
                    if event is not None:
                        yield event
                if self.ended:
                    return
                try:
                    await asyncio.wait_for(news.wait(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            self.news.discard(news)
            self.n_followers -= 1
            self.seen_at = time.monotonic()

    def stop(self) -> None:
        """Let it end early; what it has learned so far is kept."""
        self.stopping = True
        if self.process:
            self.process.stop()

    def discard(self) -> None:
        """End it, if it still goes on, and remove its files."""
        if self.process:
            self.process.kill()
        if not self.ended:
            self.enter("failed", why="This training has ended.")
        shutil.rmtree(self.work, ignore_errors=True)
