"""A client of a remote engine: any server with OpenAI's interface that continues a text."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import fields
from typing import Any, Literal

import httpx

from model import GenerationRequest, InputError, LoadedModel
from model.errors import Busy
from model.sampling import SamplingSettings

from .engine_addresses import EngineAddress

log = logging.getLogger(__name__)

TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # seconds; reading: until the next piece of text
LIST_SECONDS = 5.0  # within which the engine must list its models
SENT = ("temperature", "top_p")  # sampling options that every engine understands, like max_tokens, seed and stop
MAX_LOGGED = 500  # characters of an engine's error message that are logged
# What it may send, in bytes; the rest is not read.
MAX_LIST_BYTES = 1_000_000  # its models
MAX_ERROR_BYTES = 16_384
MAX_TEXT_BYTES, MAX_TOKEN_BYTES = 262_144, 4_096  # and for each token that was asked for: a chunk has a few hundred
SEEDS_APART = 1_000_003  # between the seeds of consecutive prompts in one call


class EngineLost(Exception):
    """The engine that writes for a model cannot be reached, broke off, or failed in another way."""


def check_supported(loaded: LoadedModel, request: GenerationRequest, *, same_ids: bool = True) -> None:
    """Raise ``InputError`` if a request cannot be sent to a remote engine.

    A prompt is sent as text, so its ids must decode to text; with ``same_ids``, to text with the same token ids again.
    """
    usual, asked = SamplingSettings(), request.sampling
    given = {each.name: getattr(asked, each.name) for each in fields(usual) if each.name not in SENT}
    given["top_k"] = given["top_k"] or None  # 0 also means all
    unusual = [each for each, value in given.items() if value != getattr(usual, each)]
    unusual += ["head_mask"] * (request.head_mask is not None) + ["context_shift"] * request.context_shift
    unusual += ["stop_token_ids"] * bool(request.stop_token_ids) + ["min_tokens"] * bool(request.min_new_tokens)
    unusual += ["skip_special_tokens"] * (not request.skip_special_tokens)
    if unusual:
        message = (
            f"{unusual[0]} is not available for {loaded.name}: another engine writes for it and is sent only text, "
            "temperature, top_p, max_tokens, seed and stop."
        )
        raise InputError(unusual[0], message, "unsupported_option")
    text = prompt_text(loaded, request)
    if same_ids and loaded.tokenizer.encode_prompt(text) != list(request.prompt):
        message = (
            f"Another engine writes for {loaded.name} and is sent text, which is tokenized into other ids than these."
        )
        raise InputError("prompt", message, "unsupported_option")


def prompt_text(loaded: LoadedModel, request: GenerationRequest) -> str:
    """The prompt as text for a remote engine, which puts before it what the vocabulary asks for.

    Raises ``InputError`` if the ids end within a character.
    """
    try:
        return b"".join(loaded.tokenizer.text_bytes(request.prompt)).decode()
    except UnicodeDecodeError:
        message = (
            f"Another engine writes for {loaded.name} and gets text, but these tokens contain an incomplete character."
        )
        raise InputError("prompt", message, "unsupported_option") from None


class EngineClient:
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
            body = {"model": await self.model_name(), **completion_body(prompt, request, max_tokens)}
            url = f"{self.address.url}/completions"
            async with self.client.stream("POST", url, json=body, headers=self.headers) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise await self.refusal(answer)
                most = MAX_TEXT_BYTES + MAX_TOKEN_BYTES * max_tokens
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
                async with (
                    asyncio.timeout(LIST_SECONDS),
                    self.client.stream("GET", url, headers=self.headers) as answer,
                ):
                    content = b"".join([piece async for piece in self.received(answer, MAX_LIST_BYTES)])
                listed = [str(each["id"]) for each in json.loads(content)["data"]]
                "".join(listed).encode()  # half of a surrogate pair could not be sent back
            except (httpx.TransportError, TimeoutError, EngineLost, ValueError, KeyError, TypeError, RecursionError):
                return self.name  # some engines have no list; if this one cannot be reached, the next call says so
            self.model = listed[0] if len(listed) == 1 else self.name
        return self.model

    async def received(self, answer: httpx.Response, most: int) -> AsyncGenerator[bytes]:
        """The body of an answer. Raises ``EngineLost`` if it is compressed or has more than ``most`` bytes."""
        coding = answer.headers.get("content-encoding", "identity")
        if coding.strip().lower() != "identity":
            raise self.lost("it sent a compressed response, which was not accepted", coding)
        n_bytes = 0
        async for piece in answer.aiter_raw():
            n_bytes += len(piece)
            if n_bytes > most:
                raise self.lost(f"it sent more than {most:,} bytes")
            yield piece

    async def lines(self, answer: httpx.Response, most: int) -> AsyncGenerator[str]:
        begun = bytearray()  # the incomplete line so far
        async for piece in self.received(answer, most):
            begun += piece
            if b"\n" in piece:
                *complete, begun = begun.split(b"\n")
                for line in complete:
                    yield line.decode(errors="replace")
        if begun:
            yield begun.decode(errors="replace")

    def parse_chunk(self, content: str) -> tuple[str, Literal["stop", "length"] | None]:
        try:
            chunk = json.loads(content)
            if chunk.get("error"):
                raise self.lost("it reported an error", error_message(chunk))
            if not chunk["choices"]:
                return "", None
            (choice,) = chunk["choices"]
            reason, text = choice.get("finish_reason"), choice.get("text") or ""
            if not isinstance(text, str):
                raise TypeError
            return text, None if not reason else "length" if reason == "length" else "stop"
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self.lost("its response is invalid", content) from None

    async def refusal(self, answer: httpx.Response) -> Exception:
        """The error for an answer with another status than 200."""
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return Busy()
        body = bytearray()
        with suppress(EngineLost):  # the beginning is enough for the log
            async for piece in self.received(answer, MAX_ERROR_BYTES):
                body += piece
        try:
            said = error_message(json.loads(body))
        except (ValueError, RecursionError):
            said = body.decode(errors="replace")
        return self.lost(f"it answered {answer.status_code}", said)

    def lost(self, why: str, words: str = "") -> EngineLost:
        """An error with the reason. The engine's own message is only logged: it may name files and addresses."""
        log.warning("%s: %s %r", self.address.url, why, words[:MAX_LOGGED])
        return EngineLost(f"{self.who} failed: {why}.")


def completion_body(prompt: str, request: GenerationRequest, max_tokens: int) -> dict[str, Any]:
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


def error_message(body: Any) -> str:
    """The message of an error in OpenAI's or FastAPI's format."""
    error = body.get("error", body.get("detail", body)) if isinstance(body, dict) else body
    return str(error.get("message", error) if isinstance(error, dict) else error)
