"""Remote engines: another server writes the texts of a model, and the local model reads along.

An event loop in a separate thread follows the texts of one model.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from contextlib import aclosing, suppress

import httpx

from model import GenerationRequest, LoadedModel, PromptError
from model.errors import Busy
from model.generate import FinishReason
from model.serving.read_along import ReadAlong
from model.serving.sequence import Cut, Event, Failure, Listener, TextSequence
from model.serving.text_engine import TextEngine

from .engine_addresses import EngineAddress
from .engine_client import TIMEOUT, EngineClient, EngineLost, prompt_text

log = logging.getLogger(__name__)


class RemoteText(TextSequence):
    """A text that a remote engine writes, and the part of it that has arrived."""

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
        self.max_requested = max(1, min(request.max_new_tokens, room))
        self.max_new_tokens = room + 1  # the engine counts the requested tokens, which may differ from the tokens here
        self.task: asyncio.Task[None] | None = None
        self.wakeup = asyncio.Event()
        self.arrived: list[str] = []
        self.outcome: FinishReason | Exception | None = None  # how the engine ended the text
        self.stopping = False

    def cancel(self) -> None:
        super().cancel()
        self.wake()

    def stop_soon(self) -> None:
        """End with the text that has arrived."""
        self.stopping = True
        if not self.is_active:
            self.cancel()
        self.wake()


class RemoteEngine(TextEngine[RemoteText]):
    """Has a remote engine write texts and reads along, with as many texts at a time as a local engine.

    A text keeps its slot until it ends, because the remote engine could not resume it where it was interrupted.
    """

    def __init__(
        self, loaded: LoadedModel, address: EngineAddress, *, max_batch: int = 16, max_waiting: int = 64
    ) -> None:
        super().__init__(loaded, max_batch=max_batch, max_waiting=max_waiting)
        self.address = address
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wakeup = asyncio.Event()

    def new_sequence(
        self, request: GenerationRequest, listener: Listener, client: Hashable, deadline: float
    ) -> RemoteText:
        return RemoteText(request, self.loaded, listener, client, deadline, self.wake)

    def submit(self, *sequences: RemoteText) -> None:
        super().submit(*sequences)
        self.wake()

    def close(self, grace: float = 0.0) -> None:
        super().close(grace)
        self.wake()

    def wake(self) -> None:
        """Have the loop check its texts. Any thread may call this."""
        if self.loop:
            with suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self.wakeup.set)

    def run(self) -> None:
        asyncio.run(self.follow_all())

    async def follow_all(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=httpx.Limits(max_connections=None)) as client:
            engine = EngineClient(self.loaded.name, self.address, client)
            while True:
                with self.changed:
                    self.drop_ended()
                    self.admit()
                    sequences = self.active
                    if self.closed and not self.queue and not sequences:
                        return
                    soonest = min((sequence.deadline for sequence in [*self.queue, *sequences]), default=float("inf"))
                for sequence in sequences:
                    sequence.task = sequence.task or asyncio.create_task(self.follow(sequence, engine))
                    sequence.wakeup.set()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.wakeup.wait(), min(soonest - time.monotonic(), 3600))
                self.wakeup.clear()

    def end(self, sequence: RemoteText, event: Event) -> None:
        super().end(sequence, event)
        if sequence.task and sequence.task is not asyncio.current_task():
            sequence.task.cancel()
        self.wakeup.set()  # a slot is free for a waiting text

    async def follow(self, sequence: RemoteText, engine: EngineClient) -> None:
        """Have the remote engine write a text, read along, and end the text."""
        receiving = asyncio.create_task(self.receive(sequence, engine))
        try:
            event = await self.read_along(sequence)
        except PromptError as error:  # the local model does not know these characters
            why = f"The engine that writes for {self.loaded.name} wrote text that this model cannot read: {error}"
            event = Failure(EngineLost(why))
        except Exception as error:
            log.exception("reading along failed")
            event = Failure(error)
        finally:
            receiving.cancel()  # closes the connection
            with suppress(asyncio.CancelledError):
                await receiving
        with self.changed:
            if sequence.is_active:
                self.end(sequence, event)

    async def receive(self, sequence: RemoteText, engine: EngineClient) -> None:
        try:
            prompt = prompt_text(self.loaded, sequence.request)
            async with aclosing(engine.write(prompt, sequence.request, sequence.max_requested)) as pieces:
                async for piece, reason in pieces:
                    sequence.arrived.append(piece)
                    sequence.outcome = reason
                    sequence.wakeup.set()
        except (EngineLost, Busy) as error:
            sequence.outcome = error
        except Exception as error:
            log.exception("receiving text from the remote engine failed")
            sequence.outcome = error
        sequence.wakeup.set()

    async def read_along(self, sequence: RemoteText) -> Event:
        """Report the events of a text as it arrives. Returns the one that ends it."""
        reading, ended = ReadAlong(self.loaded, sequence), False
        while True:
            while reading.is_behind:
                n_read, n_written = reading.n_read, len(sequence.written)
                reading.advance()
                self.tokens_read += reading.n_read - n_read
                self.tokens_written += len(sequence.written) - n_written
                await asyncio.sleep(0)  # lets other texts be read and more of this one arrive
            if reading.reason:
                return Cut(reading.reason, "")
            if ended:
                break
            await sequence.wakeup.wait()
            sequence.wakeup.clear()
            ended = sequence.stopping or sequence.outcome is not None
            arrived, sequence.arrived = "".join(sequence.arrived), []
            reading.take(arrived)
            if ended:
                reading.finish()
        if isinstance(sequence.outcome, Exception):
            return Failure(sequence.outcome)
        rest = sequence.out.finish()
        return Cut("stop" if sequence.out.stopped or sequence.outcome is None else sequence.outcome, rest)
