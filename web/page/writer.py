"""Writing a text for the page: one generator of pointers, which both the page's stream and the Gradio event send."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Hashable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import gradio as gr

from model import GenerationRequest
from model.errors import Busy, Closed, counted

from ..runs.run import Run
from ..runs.store import RunWriter
from ..services import Services
from ..serving.budget import NoRoom
from ..serving.engine_client import EngineLost
from ..serving.generation import Generation
from .page_text import PageText
from .pointers import Pointers

TEXT_SECONDS = 0.05  # between pieces of a text sent to the page; slower tokens are sent as they come
MAX_TEXT_SECONDS = 0.25  # the same while many texts are written, for someone who still has enough to read
MANY_TEXTS = 8

log = logging.getLogger(__name__)

TOO_MANY = "Too many texts are being written at the moment. Try again soon."


class PageWriter:
    """Writes texts for the page, and knows which are being written."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.generations: dict[RunWriter, Generation] = {}  # of the texts that are being written

    def stop(self, run_id: str) -> None:
        """End a text with its next token, if it is still being written."""
        for writer, generation in self.generations.items():
            if run_id in writer.run_ids:
                generation.stop()

    async def write(
        self, text: PageText, client: Hashable, *, in_event: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """Write a text and yield a pointer whenever it has grown; the last one says why the text ended.

        ``new`` in a pointer holds the tokens of its run that the previous pointer lacked; ``at`` is when
        the newest of them was written, in seconds since the epoch. ``in_event`` is whether this runs in a Gradio event.
        """
        is_remote = self.services.engines.writes_elsewhere(text.loaded)
        most = text.loaded.config.context_length if is_remote else text.request.max_new_tokens
        run = self.services.runs.new(text.loaded, text.request.prompt, most, text.n_prompt, text.request.head_mask)
        writer = RunWriter(self.services.runs, run)
        generation = self.services.engines.generate(
            text.loaded,
            recorded(text.request, is_remote),
            client=client,
            route="page",
            pace=self.pace,
            in_event=in_event,
        )
        pointers = Pointers(self.services, text, generation, writer, is_remote)
        state, why = "done", ""
        self.generations[writer] = generation
        try:
            if self.services.budget.is_tight(run.most_bytes, client):
                run.release_weights()
            with self.services.budget.hold(run.most_bytes, client):
                async with generation:
                    yield pointers.in_state("waiting")
                    async with aclosing(self.record(generation, writer)) as grown:
                        async for _ in grown:
                            yield pointers.in_state("writing")
                    if generation.stopped.is_set():
                        state = "stopped"
                    if generation.outcome == "deadline":
                        why = "The text reached the server's time limit."
        except Exception as error:  # whatever the model raises, the page must continue to work
            state, why = "failed", why_failed(error)
        finally:
            # In a thread, since it computes and this may be the event loop.
            ending = asyncio.get_running_loop().run_in_executor(self.services.runs.recorder, writer.end)
            del self.generations[writer]
        await ending
        if state == "done" and not why:
            why = why_ended(text.request, writer.run, writer.cut == "length")
        yield pointers.in_state(state) | {"why": why}

    def pace(self, generation: Generation) -> float:
        """Seconds until the next piece of a text."""
        if len(self.generations) < MANY_TEXTS:
            return TEXT_SECONDS
        return min(max(TEXT_SECONDS, generation.sequences[0].seconds_ahead / 2), MAX_TEXT_SECONDS)

    async def record(self, generation: Generation, writer: RunWriter) -> AsyncGenerator[None]:
        """Record what is written as soon as it arrives, and report on request whether there is more.

        A client that reads slowly would otherwise leave the rows of its text in memory, one tensor after the other.
        """
        grown = asyncio.Event()
        loop, runs = asyncio.get_running_loop(), self.services.runs

        async def take() -> None:
            recorder = runs.first_recorder
            try:
                async for events in generation:
                    await loop.run_in_executor(recorder, writer.take, events, generation.stopped.is_set())
                    recorder = runs.recorder
                    grown.set()
            finally:
                grown.set()

        taking = asyncio.create_task(take())
        try:
            while not taking.done():
                await grown.wait()
                grown.clear()
                yield
            await taking
        finally:
            taking.cancel()


def recorded(asked: GenerationRequest, is_remote: bool) -> GenerationRequest:
    """The request for a text whose attention is shown.

    A token's row exists only once the token is read, which happens while the next one is written. So a local engine is
    asked for one token more; ``Run.take_step`` drops it.
    """
    n_new = asked.max_new_tokens if is_remote else asked.max_new_tokens + 1
    return replace(asked, max_new_tokens=n_new, record=True, prompt_logprobs=True)


def why_failed(error: Exception) -> str:
    """What the page says about an error that ended a text."""
    match error:
        case NoRoom() | Closed():
            return str(error)
        case Busy():
            return TOO_MANY
        case EngineLost():
            return f"{error} Try again soon."
        case gr.Error():  # which is for visitors: on ZeroGPU, theirs is the quota that is used up
            return str(error.message)
    log.error("writing failed", exc_info=error)
    return "An error on the server ended this text. Its operator finds the reason in the log."


def why_ended(asked: GenerationRequest, run: Run, remote_reached_limit: bool = False) -> str:
    """A note for the visitor on why a text ended; "" if it is as long as asked for.

    With ``remote_reached_limit``, the remote engine wrote all the tokens requested, counted with its own tokenizer.
    """
    n_written = run.n_written(len(asked.prompt))
    n_more = n_written - asked.max_new_tokens
    if n_more == 0 or (n_more > 0 and not remote_reached_limit):
        return ""
    most = run.loaded.config.context_length
    if len(run.ids) > most:
        return (
            f"The context of {most} tokens is full: {n_written} of the {asked.max_new_tokens} tokens asked for were "
            "written, and the last one has no attention row."
        )
    if remote_reached_limit:
        asked_for = counted(asked.max_new_tokens, "token")
        return f"Another engine wrote {asked_for}, as asked for. Tokenized by this model, its text has {n_written}."
    return "The model ended its text here."
