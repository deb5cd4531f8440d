"""/v1/completions: from a checked body to tickets, and from their events to OpenAI's answer, whole or streamed."""

import itertools
import secrets
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson
from torch import Tensor

from model import LoadedModel, Step
from model.sampling import SamplingSettings
from model.ticket import Cut, Event, PromptPart, Ticket
from model.tokenizer import TextStream

from .engines import Engines
from .errors import ApiError, as_api_error
from .job import Job
from .schema import CompletionRequest, shown
from .settings import Limits

ROUTE = "/v1/completions"


@dataclass
class Choice:
    """One text of the answer, as far as it is."""

    gpt: LoadedModel
    prompt: list[int]
    index: int
    asked: CompletionRequest
    text: str = ""  # not sent yet
    finish_reason: str | None = None
    n_written: int = 0
    places: dict[str, list[Any]] = field(default_factory=lambda: new_places())
    offset: int = 0  # characters of all tokens so far
    released: int = 0  # characters of the text so far, which may lack the end of a stop string

    def __post_init__(self) -> None:
        self.stream = TextStream(self.gpt.tokenizer)
        if self.asked.echo:
            self.write(self.gpt.tokenizer.decode(self.prompt))
            self.add_token(self.prompt[0], None, None)

    def take(self, event: Event) -> None:
        """Add what an event brings."""
        if isinstance(event, PromptPart):
            followers = self.prompt[event.start + 1 :]
            tops: Iterable[dict[int, float]] = event.top_logprobs or itertools.repeat({})
            for token_id, logprob, top in zip(followers, event.logprobs, tops, strict=False):
                self.add_token(token_id, logprob, top)
        elif isinstance(event, Cut):
            self.write(event.text)
            self.finish_reason = event.reason
        elif isinstance(event, Step):
            if self.asked.max_tokens != 0:
                self.write(event.text)
                self.n_written += 1
                if event.token_id != self.gpt.eos_token_id:
                    self.add_token(event.token_id, event.logprob, event.top_logprobs or {})
            self.finish_reason = event.finish_reason if self.asked.max_tokens != 0 else "length"

    def write(self, text: str) -> None:
        self.text += text
        self.released += len(text)

    def add_token(self, token_id: int, logprob: float | None, top: dict[int, float] | None) -> None:
        if self.asked.logprobs is None:
            return
        places = self.places
        places["tokens"].append(self.token(token_id))
        places["token_logprobs"].append(logprob)
        tops = None if top is None else {self.token(other): value for other, value in top.items()}
        if tops is not None and logprob is not None:
            tops.setdefault(self.token(token_id), logprob)
        places["top_logprobs"].append(tops)
        places["text_offset"].append(self.offset)
        self.offset += len(self.stream.push(token_id))

    def token(self, token_id: int) -> str:
        """A token's text, and as OpenAI has it the bytes of one that is no whole character."""
        raw = self.gpt.tokenizer.token_bytes(token_id)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)

    def part(self) -> dict[str, Any]:
        """What was not sent yet, as a choice of the answer."""
        text, self.text = self.text, ""
        n = self.n_shown
        shown = {name: values[:n] for name, values in self.places.items()}
        self.places = {name: values[n:] for name, values in self.places.items()}
        logprobs = shown if self.asked.logprobs is not None else None
        return {"text": text, "index": self.index, "logprobs": logprobs, "finish_reason": self.finish_reason}

    @property
    def n_shown(self) -> int:
        """How many of the tokens to be told of are in the text: not those of what is or may become a stop string."""
        offsets = self.places["text_offset"]
        if self.finish_reason and self.finish_reason != "stop":
            return len(offsets)
        return sum(offset < self.released for offset in offsets)

    @property
    def has_news(self) -> bool:
        return bool(self.text or self.n_shown or self.finish_reason)


def new_places() -> dict[str, list[Any]]:
    return {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}


class Completion:
    """A request to write one or several texts. Raises ``ApiError``, ``PromptError`` or ``ValueError`` for bad input."""

    def __init__(self, name: str, gpt: LoadedModel, asked: CompletionRequest, engines: Engines) -> None:
        self.name, self.gpt, self.asked, self.engines = name, gpt, asked, engines
        self.id, self.created = f"cmpl-{secrets.token_hex(12)}", int(time.time())
        self.job = Job()
        self.choices: list[Choice] = []
        self.tickets: list[Ticket] = []
        self.prompts = read_prompts(engines.limits, gpt, asked.prompt)
        self.check()

    def check(self) -> None:
        limits, asked = self.engines.limits, self.asked
        n_choices, most = (
            len(self.prompts) * (asked.n or 1),
            min(limits.max_choices, limits.max_batch + limits.max_waiting),
        )
        if n_choices > most:
            message = f"prompts times n is {n_choices}, at most {most} texts are written at once."
            raise ApiError(400, message, "n", "invalid_value")
        if (asked.max_tokens or 0) > limits.max_new_tokens:
            message = f"max_tokens is {asked.max_tokens:,}, at most {limits.max_new_tokens:,} are written."
            raise ApiError(400, message, "max_tokens", "invalid_value")
        if isinstance(asked.stop, list) and len(asked.stop) > limits.max_stop:
            message = f"stop has {len(asked.stop)} strings, at most {limits.max_stop} are taken."
            raise ApiError(400, message, "stop", "invalid_value")
        if asked.stream_options and not asked.stream:
            raise ApiError(400, "stream_options is for stream: true.", "stream_options", "invalid_value")

    def start(self, client: Any) -> None:
        """Let all texts join the engine; raises what ``Engine.submit`` raises."""
        asked, gpt = self.asked, self.gpt
        head_mask = read_head_mask(gpt, asked.head_mask)
        settings = read_sampling(gpt, asked)
        seed = secrets.randbits(32) if asked.seed is None else asked.seed
        for place in itertools.product(range(len(self.prompts)), range(asked.n or 1)):
            draft = gpt.draft(
                self.prompts[place[0]],
                16 if asked.max_tokens is None else max(asked.max_tokens, 1),
                settings,
                stop=[asked.stop] if isinstance(asked.stop, str) else asked.stop or [],
                seed=seed,
                place=place,
                context_shift=bool(asked.context_shift),
            )
            ticket = Ticket(
                draft,
                self.job.sink(),
                client,
                head_mask=head_mask,
                read_prompt=bool(asked.echo) and asked.logprobs is not None,
                n_top=asked.logprobs or 0,
                deadline=self.engines.deadline(),
            )
            self.choices.append(Choice(gpt, self.prompts[place[0]], len(self.choices), asked))
            self.tickets.append(ticket)
        self.engines.start(self.job, gpt, *self.tickets)

    async def events(self) -> AsyncGenerator[list[int]]:
        """Which choices have news, until all are written."""
        async with aclosing(self.job.follow()) as batches:
            async for events in batches:
                for index, event in events:
                    self.choices[index].take(event)
                yield sorted({index for index, _ in events})

    def leave(self) -> None:
        """End what is not yet written; once for each that was started."""
        self.engines.leave(self.job, ROUTE)

    async def whole(self) -> dict[str, Any]:
        async with aclosing(self.events()) as news:
            async for _ in news:
                pass
        return self.envelope([choice.part() for choice in self.choices]) | {"usage": self.usage()}

    async def stream(self) -> AsyncGenerator[bytes]:
        """Server-sent events: a chunk for each piece of text, in the end ``[DONE]``."""
        include_usage = self.asked.stream_options and self.asked.stream_options.include_usage
        more = {"usage": None} if include_usage else {}
        try:
            async with aclosing(self.events()) as news:
                async for indices in news:
                    parts = [self.choices[i].part() for i in indices if self.choices[i].has_news]
                    if parts:
                        yield b"".join(sse(self.envelope([part]) | more) for part in parts)
            if include_usage:
                yield sse(self.envelope([]) | {"usage": self.usage()})
        except Exception as error:  # the status line is long sent
            yield sse(as_api_error(error).body)
        yield b"data: [DONE]\n\n"

    def envelope(self, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.name,
            "system_fingerprint": self.gpt.sha256[:16] or None,
            "choices": choices,
        }

    def usage(self) -> dict[str, int]:
        n_prompt, n_written = sum(map(len, self.prompts)), sum(choice.n_written for choice in self.choices)
        return {"prompt_tokens": n_prompt, "completion_tokens": n_written, "total_tokens": n_prompt + n_written}


def sse(content: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(content) + b"\n\n"


def read_prompts(limits: Limits, gpt: LoadedModel, prompt: Any) -> list[list[int]]:
    """The token ids of each prompt of a request."""
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        prompt = [prompt]
    if not prompt:
        raise ApiError(400, "prompt is an empty list, at least one is needed.", "prompt", "empty_prompt")
    if len(prompt) > limits.max_choices:
        message = f"prompt has {len(prompt)} prompts, at most {limits.max_choices} are taken at once."
        raise ApiError(400, message, "prompt", "invalid_value")
    for each in prompt:
        if isinstance(each, str) and len(each) > limits.max_prompt_characters:
            most = limits.max_prompt_characters
            message = f"The prompt has {len(each):,} characters, at most {most:,} are taken."
            raise ApiError(400, message, "prompt", "invalid_value")
    return [gpt.read_prompt(each) for each in prompt]


def read_sampling(gpt: LoadedModel, asked: CompletionRequest) -> SamplingSettings:
    """How the tokens are drawn; null stands for the default."""
    given = asked.model_dump(
        include={"temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"},
        exclude_none=True,
    )
    bias: dict[int, float] = {}
    for key, value in (asked.logit_bias or {}).items():
        token_id = int(key) if key.isascii() and key.isdigit() and len(key) < 10 else -1
        if not 0 <= token_id < gpt.config.vocab_size:
            message = f"logit_bias names token ids, integers from 0 to {gpt.config.vocab_size - 1}, found {shown(key)}."
            raise ApiError(400, message, "logit_bias", "invalid_value")
        bias[token_id] = value
    return SamplingSettings(**given, top_k=asked.top_k or None, logit_bias=bias)


def read_head_mask(gpt: LoadedModel, head_mask: Any) -> Tensor | None:
    """A head mask as a tensor."""
    try:
        return gpt.read_head_mask(head_mask)
    except ValueError as error:
        raise ApiError(400, str(error), "head_mask", "invalid_value") from None
