"""Remote engines: any server with OpenAI's interface writes the texts of a model, and the local model reads along.

An event loop in a separate thread follows the texts of one model.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, fields
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from model import GenerationRequest, InputError, LoadedModel, PromptError
from model.errors import Busy
from model.generate import FinishReason
from model.sampling import SamplingSettings
from model.serving.engine import Engine
from model.serving.read_along import ReadAlong
from model.serving.sequence import NO_SLOT, Cut, Event, Failure, Listener, TextSequence

from ..settings import Settings
from .served_models import name_sources

log = logging.getLogger(__name__)

TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # seconds; reading: until the next piece of text
LIST_SECONDS = 5.0  # within which the engine must list its models
SENT = ("temperature", "top_p")  # sampling options that every engine understands, like max_tokens, seed and stop
MAX_WORDS = 500  # characters of an engine's error message that are logged
MAX_LINE_BYTES = 262_144  # of its stream
MAX_TOKEN_BYTES = 4_096  # of its stream for each requested token; a chunk has a few hundred
MAX_LIST_BYTES = 1_000_000  # of its list of models
MAX_ERROR_BYTES = 16_384  # of an error; the rest is not read
SEEDS_APART = 1_000_003  # between the seeds of consecutive prompts in one call


@dataclass(frozen=True)
class EngineAddress:
    """An engine's address: ``url`` ends in /v1; ``model`` is its name for the model, or None if it must be asked."""

    url: str
    model: str | None = None
    key: str | None = None


def parse_addresses(settings: Settings) -> Mapping[str, EngineAddress]:
    """The address of each model's remote engine, by the model's name. Raises ``ValueError`` for bad settings."""
    names = list(name_sources(settings.checkpoints))
    url_of = by_model(names, settings.engine_urls, "--engine-url")
    if settings.engine_models and not url_of:
        raise ValueError("--engine-model requires --engine-url")
    model_of = by_model(list(url_of), settings.engine_models, "--engine-model")
    return {
        name: EngineAddress(parse_url(url), model_of.get(name), settings.engine_key) for name, url in url_of.items()
    }


def by_model(names: Sequence[str], given: Sequence[str], flag: str) -> dict[str, str]:
    """The value given for each model: VALUE applies to all models, and MODEL=VALUE, in any order, overrides it."""
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or "://" in name:
            for_all = dict.fromkeys(names, text)
        elif name in names:
            for_one[name] = value
        else:
            raise ValueError(f"{flag} names {name}, which is not one of the models: {', '.join(names)}")
    return for_all | for_one


def parse_url(text: str) -> str:
    """The base URL of an engine's routes, without a trailing slash. Raises ``ValueError`` if it is not one."""
    parts = urlsplit(text)
    url = text.rstrip("/")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"--engine-url must be like http://HOST:PORT/v1, found {text!r}")
    if not parts.path.strip("/"):
        raise ValueError(f"--engine-url must be the base URL of the engine's routes, {url}/v1, found {text!r}")
    return url


class EngineLost(Exception):
    """The engine that writes for a model cannot be reached, broke off, or failed in another way."""


def check_sent(loaded: LoadedModel, request: GenerationRequest, *, same_ids: bool = True) -> None:
    """Raise ``InputError`` if a request cannot be sent to a remote engine.

    A prompt is sent as text, so its ids must decode to text; with ``same_ids``, to text with the same token ids again.
    """
    usual, asked = SamplingSettings(), request.sampling
    given = {each.name: getattr(asked, each.name) for each in fields(usual) if each.name not in SENT}
    given["top_k"] = given["top_k"] or None  # 0 also means all
    unusual = [each for each, value in given.items() if value != getattr(usual, each)]
    unusual += ["head_mask"] * (request.head_mask is not None) + ["context_shift"] * request.context_shift
    unusual += ["stop_token_ids"] * bool(request.stop_token_ids) + ["min_tokens"] * bool(request.min_new_tokens)
    if unusual:
        message = (
            f"{unusual[0]} is not available for {loaded.name}: another engine writes for it and is sent only text, "
            "temperature, top_p, max_tokens, seed and stop."
        )
        raise InputError(unusual[0], message, "unsupported_option")
    text = prompt_text(loaded, request)
    if same_ids and loaded.tokenizer.encode(text) != list(request.prompt):
        message = (
            f"Another engine writes for {loaded.name} and is sent text, which is tokenized into other ids than these."
        )
        raise InputError("prompt", message, "unsupported_option")


def prompt_text(loaded: LoadedModel, request: GenerationRequest) -> str:
    """The prompt as text for a remote engine. Raises ``InputError`` if the ids end within a character."""
    try:
        return b"".join(map(loaded.tokenizer.token_bytes, request.prompt)).decode()
    except UnicodeDecodeError:
        message = (
            f"Another engine writes for {loaded.name} and is sent text, but these tokens hold part of a character."
        )
        raise InputError("prompt", message, "unsupported_option") from None


class Upstream:
    """A client of the engine at one address, which writes for the model called ``name`` here."""

    def __init__(self, name: str, address: EngineAddress, client: httpx.AsyncClient) -> None:
        self.name, self.address, self.client = name, address, client
        self.model = address.model
        self.who = f"The engine that writes for {name}"
        # A few compressed bytes could expand to gigabytes.
        self.headers = {"Accept-Encoding": "identity"}
        if address.key:
            self.headers["Authorization"] = f"Bearer {address.key}"

    async def write(
        self, prompt: str, request: GenerationRequest, max_tokens: int
    ) -> AsyncGenerator[tuple[str, Literal["stop", "length"] | None]]:
        """Pieces of the text that continues ``prompt``; the last piece comes with the reason why the text ended.

        Closing the generator closes the connection, which stops the engine. Raises ``EngineLost``, or ``Busy`` if the
        engine has too much to do.
        """
        try:
            body = {"model": await self.model_name(), **body_of(prompt, request, max_tokens)}
            url = f"{self.address.url}/completions"
            async with self.client.stream("POST", url, json=body, headers=self.headers) as answer:
                self.check_encoding(answer)
                if answer.status_code != httpx.codes.OK:
                    raise self.refusal(answer.status_code, await self.beginning(answer, MAX_ERROR_BYTES))
                most = MAX_LINE_BYTES + MAX_TOKEN_BYTES * max_tokens
                async with aclosing(self.lines(answer, most)) as lines:
                    async for line in lines:
                        if not line.startswith("data:"):
                            continue
                        content = line.removeprefix("data:").strip()
                        if content == "[DONE]":
                            break
                        text, reason = self.parse_chunk(content)
                        yield text, reason
                        if reason:
                            return
            raise self.lost("it ended the text without saying why")
        except httpx.HTTPError as error:
            log.warning("%s: %s", self.address.url, error or type(error).__name__)
            is_there = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise EngineLost(f"{self.who} {'broke off' if is_there else 'cannot be reached'}.") from None

    async def model_name(self) -> str:
        """The engine's name for the model: the only one that it lists, or else the name used here."""
        if self.model is None:
            try:
                url = f"{self.address.url}/models"
                async with self.client.stream("GET", url, headers=self.headers, timeout=LIST_SECONDS) as answer:
                    self.check_encoding(answer)
                    content = await self.beginning(answer, MAX_LIST_BYTES)
                listed = [str(each["id"]) for each in json.loads(content)["data"]]
            except (httpx.TransportError, EngineLost, ValueError, KeyError, TypeError, RecursionError):
                return self.name  # some engines have no list; if this one cannot be reached, the next call says so
            self.model = listed[0] if len(listed) == 1 else self.name
        return self.model

    def check_encoding(self, answer: httpx.Response) -> None:
        coding = answer.headers.get("content-encoding", "identity")
        if coding.strip().lower() != "identity":
            raise self.lost("it sent a compressed response, which was not accepted", coding)

    async def beginning(self, answer: httpx.Response, n_bytes: int) -> bytes:
        """The first ``n_bytes`` of a body, or all of a shorter one."""
        content = b""
        async for piece in answer.aiter_raw(n_bytes):
            content += piece
            if len(content) >= n_bytes:
                break
        return content[:n_bytes]

    async def lines(self, answer: httpx.Response, most: int) -> AsyncGenerator[str]:
        """The lines of a stream of at most ``most`` bytes, none of which may be longer than ``MAX_LINE_BYTES``."""
        begun, n_bytes = bytearray(), 0  # the incomplete line so far, and the bytes received in all
        async for piece in answer.aiter_raw():
            n_bytes += len(piece)
            begun += piece
            if b"\n" in piece:
                *complete, begun = begun.split(b"\n")
                for line in complete:
                    yield line.decode(errors="replace")
            if len(begun) > MAX_LINE_BYTES:
                raise self.lost(f"it sent a line of more than {MAX_LINE_BYTES:,} bytes")
            if n_bytes > most:
                raise self.lost(f"it sent more than {most:,} bytes for one text")
        if begun:
            yield begun.decode(errors="replace")

    def parse_chunk(self, content: str) -> tuple[str, Literal["stop", "length"] | None]:
        try:
            chunk = json.loads(content)
            if chunk.get("error"):
                raise self.lost("it reported an error", words_of(chunk))
            if not chunk["choices"]:
                return "", None
            (choice,) = chunk["choices"]
            reason = choice.get("finish_reason")
            return str(choice.get("text") or ""), None if not reason else "length" if reason == "length" else "stop"
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self.lost("its response is invalid", content) from None

    def refusal(self, status: int, body: bytes) -> Exception:
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return Busy()
        try:
            said = words_of(json.loads(body))
        except (ValueError, RecursionError):
            said = body.decode(errors="replace")
        return self.lost(f"it answered {status}", said)

    def lost(self, why: str, words: str = "") -> EngineLost:
        """An error with the reason. The engine's own message is only logged: it may name files and addresses."""
        log.warning("%s: %s %r", self.address.url, why, words[:MAX_WORDS])
        return EngineLost(f"{self.who} failed: {why}.")


def body_of(prompt: str, request: GenerationRequest, max_tokens: int) -> dict[str, Any]:
    """The body of a request to an engine, without the name of the model."""
    nth_prompt, nth_text = request.choice
    body = {
        "prompt": prompt,
        "max_tokens": max_tokens,
        "seed": request.seed + nth_text + SEEDS_APART * nth_prompt,  # a different seed for each text of a call
        "stream": True,
    }
    body |= {name: getattr(request.sampling, name) for name in SENT}
    return body | ({"stop": list(request.stop)} if request.stop else {})


def words_of(body: Any) -> str:
    """The message of an error in OpenAI's or FastAPI's format."""
    error = body.get("error", body.get("detail", body)) if isinstance(body, dict) else body
    return str(error.get("message", error) if isinstance(error, dict) else error)


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
        self.max_sent = max(1, min(request.max_new_tokens, room))
        self.max_new_tokens = room + 1  # the engine counts the requested tokens, which may differ from the tokens here
        self.task: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        self.arrived: list[str] = []
        self.came_to: FinishReason | Exception | None = None  # how the engine ended it
        self.stopping = False

    def cancel(self) -> None:
        super().cancel()
        self.wake()

    def stop_soon(self) -> None:
        """End with the text that has arrived."""
        self.stopping = True
        if not self.is_at_work:
            self.cancel()
        self.wake()


class RemoteEngine(Engine):
    """Has a remote engine write texts and reads along, with as many texts at a time as a local engine.

    A text keeps its slot until it ends, because the remote engine could not resume it where it was interrupted.
    """

    def __init__(
        self, loaded: LoadedModel, address: EngineAddress, *, max_batch: int = 16, max_waiting: int = 64
    ) -> None:
        super().__init__(loaded, max_batch=max_batch, max_waiting=max_waiting)
        self.address = address
        self.loop: asyncio.AbstractEventLoop | None = None
        self.news = asyncio.Event()

    def new_sequence(
        self, request: GenerationRequest, listener: Listener, client: Hashable, deadline: float
    ) -> TextSequence:
        return RemoteText(request, self.loaded, listener, client, deadline, self.wake)

    def submit(self, *sequences: TextSequence) -> None:
        super().submit(*sequences)
        self.wake()

    def close(self, grace: float = 0.0) -> None:
        super().close(grace)
        self.wake()

    def wake(self) -> None:
        """Have the loop check its texts. Any thread may call this."""
        if self.loop:
            with suppress(RuntimeError):  # the loop has ended
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
        """Give free slots to waiting texts."""
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
        self.news.set()  # a slot is free for a waiting text

    async def follow(self, text: RemoteText, upstream: Upstream) -> None:
        """Have the remote engine write a text, read along, and end the text."""
        receiving = asyncio.create_task(self.receive(text, upstream))
        try:
            event = await self.read_along(text)
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
            log.exception("receiving text from the remote engine failed")
            text.came_to = error
        text.news.set()

    async def read_along(self, text: RemoteText) -> Event:
        """Report the events of a text as it arrives. Returns the one that ends it."""
        reader, ended = ReadAlong(self.loaded, text), False
        while True:
            while reader.is_behind:
                n_read, n_written = reader.n_read, len(text.written)
                reader.advance()
                self.tokens_read += reader.n_read - n_read
                self.tokens_written += len(text.written) - n_written
                await asyncio.sleep(0)  # lets other texts be read and more of this one arrive
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
