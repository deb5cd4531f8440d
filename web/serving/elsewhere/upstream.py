"""An engine elsewhere, spoken to as OpenAI's clients do."""

import json
import logging
from collections.abc import AsyncGenerator
from dataclasses import fields
from typing import Any, Literal

import httpx

from model import GenerationRequest, InputError, LoadedModel
from model.sampling import SamplingSettings
from model.serving.engine import Busy

from .address import EngineAddress

log = logging.getLogger(__name__)

TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # seconds; reading: until the next piece of text
LIST_SECONDS = 5.0  # to say what models there are
SENT = ("temperature", "top_p")  # sampling options that every engine understands; max_tokens, seed and stop, too
MAX_WORDS = 500  # characters of an engine's own words that are logged
SEEDS_APART = 1_000_003  # between the prompts of one call


class EngineLost(Exception):
    """The engine that writes for a model cannot be reached, broke off, or does not do what is needed."""


def check_sent(loaded: LoadedModel, request: GenerationRequest, *, same_ids: bool = True) -> None:
    """Raise ``InputError`` for what another engine cannot be sent.

    A prompt goes as text, so it has to be one; with ``same_ids``, one that is tokenized into the same ids again.
    """
    usual, asked = SamplingSettings(), request.sampling
    given = {each.name: getattr(asked, each.name) for each in fields(usual) if each.name not in SENT}
    given["top_k"] = given["top_k"] or None  # 0 means all, too
    unusual = [each for each, value in given.items() if value != getattr(usual, each)]
    unusual += ["head_mask"] * (request.head_mask is not None) + ["context_shift"] * request.context_shift
    unusual += ["stop_token_ids"] * bool(request.stop_token_ids) + ["min_tokens"] * bool(request.min_new_tokens)
    if unusual:
        message = (
            f"{unusual[0]} is not available for {loaded.name}: another engine writes for it, which is sent only text, "
            "temperature, top_p, max_tokens, seed and stop."
        )
        raise InputError(unusual[0], message, "unsupported_option")
    text = prompt_text(loaded, request)
    if same_ids and loaded.tokenizer.encode(text) != list(request.prompt):
        message = f"Another engine writes for {loaded.name}: it is sent text, which has other token ids than these."
        raise InputError("prompt", message, "unsupported_option")


def prompt_text(loaded: LoadedModel, request: GenerationRequest) -> str:
    """The prompt as an engine is sent it. Raises ``InputError`` for part of a character."""
    try:
        return b"".join(map(loaded.tokenizer.token_bytes, request.prompt)).decode()
    except UnicodeDecodeError:
        message = (
            f"Another engine writes for {loaded.name}: it is sent text, and these tokens hold part of a character."
        )
        raise InputError("prompt", message, "unsupported_option") from None


class Upstream:
    """The engine at one address, for the model that is called ``name`` here."""

    def __init__(self, name: str, address: EngineAddress, client: httpx.AsyncClient) -> None:
        self.name, self.address, self.client = name, address, client
        self.model = address.model
        self.who = f"The engine that writes for {name}"
        self.headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}

    async def write(
        self, prompt: str, request: GenerationRequest, max_tokens: int
    ) -> AsyncGenerator[tuple[str, Literal["stop", "length"] | None]]:
        """Pieces of the text that continues ``prompt``; with the last one comes the reason why it ended.

        Closing the generator closes the connection, which ends the writing. Raises ``EngineLost``, or ``Busy`` where
        the engine has too much to do.
        """
        try:
            body = {"model": await self.model_name(), **body_of(prompt, request, max_tokens)}
            url = f"{self.address.url}/completions"
            async with self.client.stream("POST", url, json=body, headers=self.headers) as answer:
                if answer.status_code != httpx.codes.OK:
                    await answer.aread()
                    raise self.refusal(answer)
                async for line in answer.aiter_lines():
                    if not line.startswith("data:"):
                        continue
                    content = line.removeprefix("data:").strip()
                    if content == "[DONE]":
                        break
                    text, reason = self.read_chunk(content)
                    yield text, reason
                    if reason:
                        return
            raise self.lost("it ended the text without saying why")
        except httpx.HTTPError as error:
            log.warning("%s: %s", self.address.url, error or type(error).__name__)
            is_there = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
            raise EngineLost(f"{self.who} {'broke off' if is_there else 'cannot be reached'}.") from None

    async def model_name(self) -> str:
        """What the engine calls the model: what it is called here, or else the only one that it lists."""
        if self.model is None:
            try:
                url = f"{self.address.url}/models"
                answer = await self.client.get(url, headers=self.headers, timeout=LIST_SECONDS)
                listed = [str(each["id"]) for each in answer.json()["data"]]
            except (httpx.TransportError, ValueError, KeyError, TypeError):
                return self.name  # some engines cannot list; if this one is not there at all, the next call says so
            self.model = listed[0] if len(listed) == 1 else self.name
        return self.model

    def read_chunk(self, content: str) -> tuple[str, Literal["stop", "length"] | None]:
        try:
            chunk = json.loads(content)
            if chunk.get("error"):
                raise self.lost("it reported an error", words_of(chunk))
            if not chunk["choices"]:
                return "", None
            (choice,) = chunk["choices"]
            reason = choice.get("finish_reason")
            return str(choice.get("text") or ""), None if not reason else "length" if reason == "length" else "stop"
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.lost("what it sent cannot be read", content) from None

    def refusal(self, answer: httpx.Response) -> Exception:
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return Busy()
        try:
            said = words_of(answer.json())
        except ValueError:
            said = answer.text
        return self.lost(f"it answered {answer.status_code}", said)

    def lost(self, why: str, words: str = "") -> EngineLost:
        """An error that says why. The engine's own words are for the operator: they may name files and addresses."""
        log.warning("%s: %s %r", self.address.url, why, words[:MAX_WORDS])
        return EngineLost(f"{self.who} failed: {why}.")


def body_of(prompt: str, request: GenerationRequest, max_tokens: int) -> dict[str, Any]:
    """All that an engine is sent, but for the name of its model."""
    nth_prompt, nth_text = request.choice
    body = {
        "prompt": prompt,
        "max_tokens": max_tokens,
        "seed": request.seed + nth_text + SEEDS_APART * nth_prompt,  # each text of a call is another one
        "stream": True,
    }
    body |= {name: getattr(request.sampling, name) for name in SENT}
    return body | ({"stop": list(request.stop)} if request.stop else {})


def words_of(body: Any) -> str:
    """What an error says, in the shapes of OpenAI and of FastAPI."""
    error = body.get("error", body.get("detail", body)) if isinstance(body, dict) else body
    return str(error.get("message", error) if isinstance(error, dict) else error)
