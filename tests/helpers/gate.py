"""An engine that takes a step only when a test allows it, and containers that a test can wait on."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

from model import LoadedModel
from model.serving.engine import Engine
from model.serving.sequence import TextSequence
from web.serving.engines import Engines
from web.serving.generation import Generation

PATIENCE = 20  # seconds after which something that should have happened has not


class News:
    """Wakes the threads that wait for a condition whenever anything has changed."""

    def __init__(self) -> None:
        self.changed = threading.Condition()

    def tell(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def wait_until(self, true: Callable[[], Any], timeout: float | None = PATIENCE) -> None:
        with self.changed:
            assert self.changed.wait_for(true, timeout), "it never happened"


class Gate:
    """Lets one step through for each release."""

    def __init__(self, news: News) -> None:
        self.news, self.n_open = news, 0

    def release(self, n_steps: int = 1) -> None:
        with self.news.changed:
            self.n_open += n_steps
            self.news.changed.notify_all()

    def shut(self) -> None:
        with self.news.changed:
            self.n_open = 0

    def pass_through(self, give_up: Callable[[], bool]) -> bool:
        """Wait for a release; return False if ``give_up`` becomes true first."""
        with self.news.changed:
            self.news.changed.wait_for(lambda: self.n_open or give_up())
            if not self.n_open:
                return False
            self.n_open -= 1
            return True


class GatedEngine(Engine):
    """Takes a step each time the test opens its gate, so that a test can look in between."""

    def __init__(self, loaded: LoadedModel, **settings: Any) -> None:
        super().__init__(loaded, **settings)
        self.news = News()
        self.gate = Gate(self.news)

    def submit(self, *sequences: TextSequence) -> None:
        for sequence in sequences:
            self.watch(sequence)
        super().submit(*sequences)
        self.news.tell()

    def watch(self, sequence: TextSequence) -> None:
        """Wake a cancelled text that waits at the gate."""
        cancel = sequence.cancel

        def cancel_and_tell() -> None:
            cancel()
            self.news.tell()

        sequence.cancel = cancel_and_tell  # type: ignore[method-assign]

    def step(self) -> None:
        super().step()
        self.news.tell()

    def forward(self, planned: Sequence[TextSequence]) -> None:
        self.news.tell()  # the running ones are known
        # A text that was cancelled meanwhile needs no step.
        if self.gate.pass_through(lambda: all(sequence.cancelled for sequence in planned)):
            super().forward(planned)


class WatchedSet(set[Any]):
    """A set that a test can wait on."""

    def __init__(self) -> None:
        super().__init__()
        self.news = News()

    def add(self, item: Any) -> None:
        super().add(item)
        self.news.tell()

    def discard(self, item: Any) -> None:
        super().discard(item)
        self.news.tell()


def wait_for_end(generation: Generation) -> None:
    """Wait until all texts of a generation have ended."""
    asyncio.run_coroutine_threadsafe(generation.ended.wait(), generation.loop).result(PATIENCE)


class FollowedGeneration(Generation):
    """A generation that is in the set ``running`` while its texts are followed."""

    running: WatchedSet

    async def __aenter__(self) -> Self:
        entered = await super().__aenter__()
        self.running.add(self)
        return entered

    async def __aexit__(self, *error: Any) -> None:
        await super().__aexit__(*error)
        self.running.discard(self)


def follow_generations(engines: Engines) -> WatchedSet:
    """The generations of these engines whose texts are being followed."""
    generate, running = engines.generate, WatchedSet()

    def generate_followed(*args: Any, **options: Any) -> Generation:
        generation = generate(*args, **options)
        generation.__class__ = FollowedGeneration
        generation.running = running  # type: ignore[attr-defined]
        return generation

    engines.generate = generate_followed  # type: ignore[method-assign]
    return running
