"""The texts of one model that another engine writes, on an event loop in a thread of its own."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import aclosing, suppress

import httpx

from model import GenerationRequest, LoadedModel, PromptError
from model.generate import FinishReason
from model.serving.engine import Busy, Engine
from model.serving.read_along import ReadAlong
from model.serving.sequence import NO_SLOT, Cut, Event, Failure, Listener, TextSequence

from .address import EngineAddress
from .upstream import TIMEOUT, EngineLost, Upstream, prompt_text

log = logging.getLogger(__name__)


class RemoteText(TextSequence):
    """A text that another engine writes, and what has come of it."""

    def __init__(
        self,
        request: GenerationRequest,
        loaded: LoadedModel,
        listener: Listener,
        client: Hashable,
        deadline: float,
        wake: Callable[[], None],
    ) -> None:
        super().__init__(request, loaded, listener, client, deadline)
        self.wake = wake
        room = self.context_length - len(request.prompt)
        self.max_sent = max(1, min(request.max_new_tokens, room))
        self.max_new_tokens = room + 1  # what was asked for is counted there, in tokens that need not be these
        self.task: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        self.arrived: list[str] = []
        self.came_to: FinishReason | Exception | None = None  # how it ended there
        self.stopping = False

    def cancel(self) -> None:
        super().cancel()
        self.wake()

    def stop_soon(self) -> None:
        """End with what has come."""
        self.stopping = True
        if not self.is_at_work:
            self.cancel()
        self.wake()


class RemoteEngine(Engine):
    """Has texts written elsewhere and reads along, for as many at a time as an engine here would write.

    A text that is at work keeps its slot to its end: it could not be taken up again elsewhere where it was left.
    """

    def __init__(
        self, loaded: LoadedModel, address: EngineAddress, *, max_batch: int = 16, max_waiting: int = 64
    ) -> None:
        super().__init__(loaded, max_batch=max_batch, max_waiting=max_waiting)
        self.address = address
        self.loop: asyncio.AbstractEventLoop | None = None
        self.news = asyncio.Event()

    def text(self, request: GenerationRequest, listener: Listener, client: Hashable, deadline: float) -> TextSequence:
        return RemoteText(request, self.loaded, listener, client, deadline, self.wake)

    def submit(self, *sequences: TextSequence) -> None:
        super().submit(*sequences)
        self.wake()

    def close(self, grace: float = 0.0) -> None:
        super().close(grace)
        self.wake()

    def wake(self) -> None:
        """Have the loop look at its texts. From any thread."""
        if self.loop:
            with suppress(RuntimeError):  # it has ended
                self.loop.call_soon_threadsafe(self.news.set)

    def run(self) -> None:
        asyncio.run(self.follow_all())

    async def follow_all(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=httpx.Limits(max_connections=None)) as client:
            upstream = Upstream(self.loaded.name, self.address, client)
            while True:
                with self.changed:
                    self.drop_ended()
                    self.admit()
                    texts = [text for text in self.at_work if isinstance(text, RemoteText)]
                    if self.closed and not self.queue and not texts:
                        return
                    soonest = min((text.deadline for text in [*self.queue, *texts]), default=float("inf"))
                for text in texts:
                    text.task = text.task or asyncio.create_task(self.follow(text, upstream))
                    text.news.set()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.news.wait(), min(soonest - time.monotonic(), 3600))
                self.news.clear()

    def admit(self) -> None:
        """Give free slots to texts that wait."""
        while self.queue and None in self.slots:
            sequence = self.queue.take(Counter(sequence.client for sequence in self.at_work))
            sequence.slot, sequence.turn = self.slots.index(None), next(self.turns)
            self.slots[sequence.slot] = sequence

    def release_slot(self, sequence: TextSequence) -> None:
        self.slots[sequence.slot] = None
        sequence.slot = NO_SLOT

    def end(self, sequence: TextSequence, event: Event) -> None:
        super().end(sequence, event)
        task = sequence.task if isinstance(sequence, RemoteText) else None
        if task and task is not asyncio.current_task():
            task.cancel()
        self.news.set()  # for those that wait

    async def follow(self, text: RemoteText, upstream: Upstream) -> None:
        """Have a text written, read along, and end it."""
        receiving = asyncio.create_task(self.receive(text, upstream))
        try:
            event = await self.read_along(text)
        except PromptError as error:  # characters that the model here does not know
            why = f"The engine that writes for {self.loaded.name} wrote what this model cannot read: {error}"
            event = Failure(EngineLost(why))
        except Exception as error:
            log.exception("reading along failed")
            event = Failure(error)
        finally:
            receiving.cancel()  # closes the connection
            with suppress(asyncio.CancelledError):
                await receiving
        with self.changed:
            if text.is_at_work:
                self.end(text, event)

    async def receive(self, text: RemoteText, upstream: Upstream) -> None:
        try:
            prompt = prompt_text(self.loaded, text.request)
            async with aclosing(upstream.write(prompt, text.request, text.max_sent)) as pieces:
                async for piece, reason in pieces:
                    text.arrived.append(piece)
                    text.came_to = reason
                    text.news.set()
        except (EngineLost, Busy) as error:
            text.came_to = error
        except Exception as error:
            log.exception("following another engine failed")
            text.came_to = error
        text.news.set()

    async def read_along(self, text: RemoteText) -> Event:
        """Report a text as it comes, up to the event that ends it."""
        reader, ended = ReadAlong(self.loaded, text), False
        while True:
            while reader.is_behind:
                n_read, n_written = reader.n_read, len(text.written)
                reader.advance()
                self.tokens_read += reader.n_read - n_read
                self.tokens_written += len(text.written) - n_written
                await asyncio.sleep(0)  # meanwhile others read, and more of this text comes
            if reader.reason:
                return Cut(reader.reason, "")
            if ended:
                break
            await text.news.wait()
            text.news.clear()
            ended = text.stopping or text.came_to is not None
            arrived, text.arrived = "".join(text.arrived), []
            reader.take(arrived)
            if ended:
                reader.finish()
        if isinstance(text.came_to, Exception):
            return Failure(text.came_to)
        rest = text.out.finish()
        return Cut("stop" if text.out.stopped or text.came_to is None else text.came_to, rest)
