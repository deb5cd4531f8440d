"""Writing a text for the page: one generator of pointers, which both the page's stream and the Gradio event send."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Hashable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from model import GenerationRequest, InputError, LoadedModel
from model.errors import Busy, Closed, InvalidValue, counted, shorten

from ..runs.run import Run
from ..runs.store import RunWriter
from ..services import Services
from ..serving.engine_client import EngineLost
from ..serving.generation import Generation
from ..serving.inputs import parse_index, parse_options, parse_request, settings_of, whole
from ..serving.served_models import ServedModels
from ..settings import MAX_RUN_ID
from .pointer import pointer

TEXT_SECONDS = 0.05  # between pieces of a text sent to the page; slower tokens are sent as they come
MAX_TEXT_SECONDS = 0.25  # the same while many texts are written, for someone who still has enough to read
MANY_TEXTS = 8

log = logging.getLogger(__name__)

TOO_MANY = "Too many texts are being written at the moment. Try again soon."
READ_ALONG = "Another engine writes this text; every number comes from {}, which reads it on this server."


@dataclass(frozen=True)
class PageText:
    """A text that the page asks for: a new one, or a branch of a displayed one."""

    loaded: LoadedModel
    request: GenerationRequest
    prompt: str
    n_prompt: int
    branch: dict[str, object] | None = None  # the run that it leaves, where, and with which token instead of which
    chat: list[dict[str, Any]] | None = None  # the messages that the prompt was made from


def parse_page_text(services: Services, fields: Mapping[str, Any]) -> PageText:
    """The text that ``fields`` ask for; ``fields["branch"]`` is for ``parse_branch``. Raises ``InputError``.

    The prompt is text, or token ids.
    """
    sent, prompt = fields.get("branch"), fields.get("prompt")
    if sent is None and isinstance(prompt, list):
        loaded = services.served.find(fields.get("model"))
        ids = loaded.parse_prompt([whole(token_id) for token_id in prompt])
        request = parse_options(services.limits, loaded, ids, fields)
        services.engines.check(loaded, request, same_ids=False)
        return PageText(loaded, request, loaded.tokenizer.decode(ids), len(ids))
    if sent is None:
        loaded, request = parse_request(services.served, fields)
        services.engines.check(loaded, request)
        return PageText(loaded, request, fields["prompt"], len(request.prompt))
    text = parse_branch(services.served, sent, fields)
    services.engines.check(text.loaded, text.request, same_ids=False)
    return text


class PageWriter:
    """Writes texts for the page, and maps each run to the generation that writes it."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.generations: dict[str, Generation] = {}  # by run

    def stop(self, run_id: str) -> None:
        """End a text with its next token, if it is still being written."""
        if generation := self.generations.get(run_id):
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
            pace=TEXT_SECONDS,
            in_event=in_event,
        )
        pointers = Pointers(self.services, text, generation, writer, is_remote)
        state, why = "done", ""
        self.generations[run.id] = generation
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
            for run_id in [run_id for run_id, other in self.generations.items() if other is generation]:
                del self.generations[run_id]
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
                    generation.pace = self.pace(generation)
                    self.generations[writer.run.id] = generation
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


class Pointers:
    """The pointers to a text that is being written, each with what the one before it lacked."""

    def __init__(
        self, services: Services, text: PageText, generation: Generation, writer: RunWriter, is_remote: bool
    ) -> None:
        self.services, self.text, self.generation, self.writer = services, text, generation, writer
        self.settings, self.sent, self.first = settings_of(text.request, text.prompt), SentTokens(), writer.run
        self.more: dict[str, Any] = {"branch": text.branch} if text.branch else {}
        self.more |= {"note": READ_ALONG.format(text.loaded.name)} if is_remote else {}

    def in_state(self, state: str) -> dict[str, Any]:
        current = self.writer.run
        tokens = self.sent.take(current)
        # A context shift drops messages: what is left is no conversation.
        chat = {"chat": self.text.chat} if self.text.chat and current is self.first else {}
        # The writer may continue meanwhile: the new tokens end where the pointer says that the text does.
        return pointer(current, state, self.settings) | {
            "written": current.n_written(len(self.text.request.prompt)),
            "new": tokens,
            "tokens": self.sent.count,
            "at": self.generation.newest_at,
            "training": self.services.is_training.is_set(),
            **chat,
            **self.more,
        }


def why_failed(error: Exception) -> str:
    """What the page says about an error that ended a text."""
    match error:
        case Busy():
            return str(error) or TOO_MANY
        case EngineLost():
            return f"{error} Try again soon."
        case Closed():
            return "The server is shutting down."
        case gr.Error():  # which is for visitors: on ZeroGPU, theirs is the quota that is used up
            return str(error.message)
    log.error("writing failed", exc_info=error)
    return "An error on the server ended this text. Its operator finds the reason in the log."


class SentTokens:
    """Keeps track of the tokens of a text that the page has been sent."""

    def __init__(self) -> None:
        self.run_id, self.count = "", 0

    def take(self, run: Run) -> list[dict[str, Any]]:
        """The tokens of ``run`` since the last call; all of them if it is a different run."""
        start = self.count if run.id == self.run_id else 0
        stop = len(run.ids)  # the writer may continue meanwhile
        self.run_id, self.count = run.id, stop
        tokens = run.loaded.text_tokens(run.ids[:stop], start)
        logprobs = run.logprobs[start:stop]
        return [
            token._asdict() | ({"bytes": token.byte_text} if token.byte_text else {}) | {"logprob": logprob}
            for token, logprob in zip(tokens, logprobs, strict=True)
        ]


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


def parse_branch(served: ServedModels, sent: object, fields: Mapping[str, object]) -> PageText:
    """A continuation of a text with another token in place of one, from the page's data, which may be forged.

    ``sent`` has the keys ``of``, ``sha256``, ``model``, ``ids`` (the last one is the other token), ``n_prompt`` and
    ``instead``, the id of the token that the text has there; ``fields`` are those of ``parse_options``. Raises
    ``InputError`` if one is invalid.
    """
    if not isinstance(sent, dict):
        raise InputError("branch", f"A branch must be an object, found {shorten(sent)}.")
    loaded = served.with_weights(str(sent.get("sha256")), str(sent.get("model")))
    ids, most = sent.get("ids"), loaded.config.context_length
    if not isinstance(ids, list):
        raise InvalidValue("ids", ids, "a list of token ids")
    if not 2 <= len(ids) <= most:
        message = f"A branch needs 2 to {most} tokens, the context of the model; found {len(ids)}."
        raise InputError("ids", message)
    ids = loaded.parse_prompt([whole(token_id) for token_id in ids])
    n_prompt = parse_index("n_prompt", sent.get("n_prompt"), 0, len(ids) - 1)
    instead = sent.get("instead")
    if instead is not None:
        instead = parse_index("instead", instead, 0, loaded.config.vocab_size - 1)
    of = sent.get("of")
    if not isinstance(of, str) or len(of) > MAX_RUN_ID:
        raise InvalidValue("of", of, "the id of a run")
    *before, token = loaded.text_tokens(ids)
    replaced = "" if instead is None else loaded.tokens([instead])[0].text
    return PageText(
        loaded,
        parse_options(served.settings.limits, loaded, ids, fields),
        loaded.tokenizer.decode(ids[:n_prompt]),
        n_prompt,
        {"of": of, "at": len(before), "token": token.text, "instead": replaced},
    )
