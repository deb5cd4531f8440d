"""/v1/completions: turn a checked body into requests, and their events into OpenAI's answer, whole or streamed."""

import itertools
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from model import GenerationRequest, InputError, LoadedModel, SamplingSettings, Step
from model.errors import counted
from model.sampling import SAMPLING_OPTIONS
from model.serving.sequence import Cut, Event, PromptPart

from ..serving.generation import Generation
from ..serving.inputs import check_length, check_new_tokens
from ..serving.server_sent_events import DONE, server_sent_event
from ..settings import Limits
from .errors import as_api_error
from .schema import DEFAULT_MAX_TOKENS, CompletionRequest

TOKEN_BYTES = 400  # the memory that a token takes until it is sent, unless its text takes more
TEXT_COPIES = 3  # of a token's text: its own, in the joined text, and in the body
TOP_BYTES = 120  # the memory that each of its alternatives takes


@dataclass
class Choice:
    """One text of the answer, as far as it has been written."""

    loaded: LoadedModel
    request: GenerationRequest
    index: int
    asked: CompletionRequest
    texts: list[str] = field(default_factory=list)  # written but not sent yet
    finish_reason: str | None = None
    cut_off_by: str | None = None  # "deadline" if that ended the text
    n_written: int = 0
    # The tokens not sent yet: whether each waits until its text is released, where that begins, and its ``place``.
    places: deque[tuple[bool, int, Any]] = field(default_factory=deque)
    offset: int = 0  # characters of all tokens so far
    released: int = 0  # characters of the text so far; the start of a possible stop string is held back

    def __post_init__(self) -> None:
        self.end_tokens = {*self.loaded.end_token_ids, *self.request.stop_token_ids}
        if self.asked.echo:
            self.prompt_pieces = self.loaded.tokenizer.pieces(self.request.prompt)
            self.write("".join(self.prompt_pieces))
            self.add_prompt_token(0, None, None)

    def take(self, event: Event) -> None:
        """Add the text and tokens of an event."""
        if isinstance(event, PromptPart):
            tops: Iterable[dict[int, float]] = event.top_logprobs or itertools.repeat({})
            for i, (logprob, top) in enumerate(zip(event.logprobs, tops, strict=False), event.start + 1):
                self.add_prompt_token(i, logprob, top)
        elif isinstance(event, Cut):
            self.write(event.text)
            self.finish_reason = "length" if event.is_early else event.reason
            self.cut_off_by = event.reason if event.is_early else None
        elif isinstance(event, Step):
            if self.asked.max_tokens != 0:
                self.write(event.text)
                self.n_written += 1
                if event.piece is not None or event.token_id not in self.end_tokens:
                    self.add_token(event.token_id, event.piece, event.logprob, event.top_logprobs or {}, waits=True)
            self.finish_reason = event.finish_reason if self.asked.max_tokens != 0 else "length"

    def write(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.released += len(text)

    def add_prompt_token(self, i: int, logprob: float | None, top: dict[int, float] | None) -> None:
        self.add_token(self.request.prompt[i], self.prompt_pieces[i], logprob, top, waits=False)

    def add_token(
        self, token_id: int, piece: str | None, logprob: float | None, top: dict[int, float] | None, *, waits: bool
    ) -> None:
        """Add a token that completes the characters ``piece``, None if the text leaves it out.

        ``waits`` is whether the characters may be held back.
        """
        if self.asked.logprobs is None:
            return
        text, start = self.token(token_id), self.offset
        if piece is None:
            text = ""
        elif piece.endswith(text):  # before it, U+FFFD stands for an earlier token's unfinished character
            start += len(piece) - len(text)
        elif text == " " + piece:  # the space before every prompt is not shown
            text = piece
        self.places.append((waits and piece is not None, start, self.place(token_id, text, logprob, top)))
        self.offset += len(piece or "")

    def place(self, token_id: int, text: str, logprob: float | None, top: dict[int, float] | None) -> Any:
        """What the answer says about a token that reads ``text`` in it.

        Of alternatives that read alike, the likeliest counts, but the token itself before all others.
        """
        tops: dict[str, float] | None = None
        if top is not None and logprob is not None:
            tops = {}
            for other, value in top.items():
                if other != token_id:
                    tops.setdefault(self.token(other), value)
            tops[text] = logprob
        return text, logprob, tops

    def logprobs(self, shown: Sequence[tuple[int, Any]]) -> dict[str, Any]:
        """The field ``logprobs`` of an answer, from where the text of each token begins and its ``place``."""
        columns = ("tokens", "token_logprobs", "top_logprobs")
        told = {name: [place[i] for _, place in shown] for i, name in enumerate(columns)}
        return told | {"text_offset": [start for start, _ in shown]}

    def token(self, token_id: int) -> str:
        """A token's text, or its bytes in OpenAI's notation if they are not whole characters."""
        raw = self.loaded.tokenizer.token_bytes(token_id)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)

    def part(self) -> dict[str, Any]:
        """Everything that was not sent yet, as a choice of the answer."""
        text = "".join(self.texts)
        self.texts.clear()
        logprobs = None
        if self.asked.logprobs is not None:
            shown = []
            while self.has_shown_token:
                shown.append(self.places.popleft()[1:])
            logprobs = self.logprobs(shown)
        choice = {"text": text, "index": self.index, "logprobs": logprobs, "finish_reason": self.finish_reason}
        return choice if self.cut_off_by is None else choice | {"cut_off_by": self.cut_off_by}

    @property
    def has_shown_token(self) -> bool:
        """Whether the first unsent token belongs to the released text, and not to an actual or possible stop string."""
        if not self.places or self.finish_reason not in (None, "stop"):
            return bool(self.places)
        waits, start, _ = self.places[0]
        return not waits or start < self.released

    @property
    def has_unsent(self) -> bool:
        return bool(self.texts or self.has_shown_token or self.finish_reason)


class Completion:
    """One call: its ``requests``, and the answer made from their events. Raises ``InputError`` for invalid input."""

    kinds = ("text_completion", "text_completion")  # OpenAI's ``object`` for a whole answer and for a chunk
    id_prefix = "cmpl-"
    choice_class = Choice
    own_stop: tuple[str, ...] = ()  # stop strings in addition to those of the body

    def __init__(self, loaded: LoadedModel, asked: CompletionRequest, limits: Limits) -> None:
        self.loaded, self.asked = loaded, asked
        self.id, self.created = f"{self.id_prefix}{secrets.token_hex(12)}", int(time.time())
        self.prompts = parse_prompts(limits, loaded, asked.prompt)
        self.check(limits)
        self.requests = self.make_requests()
        self.choices = [self.choice_class(loaded, request, i, asked) for i, request in enumerate(self.requests)]

    @property
    def most_bytes(self) -> int:
        """An estimate of the memory that its texts take until they are sent, in bytes."""
        tokenizer = self.loaded.tokenizer
        token_bytes = max(TOKEN_BYTES, TEXT_COPIES * len(tokenizer.token_bytes(tokenizer.longest_token)))
        return sum(
            self.n_tokens_at_most(request) * (token_bytes + TOP_BYTES * request.n_top_logprobs)
            for request in self.requests
        )

    def n_tokens_at_most(self, request: GenerationRequest) -> int:
        n_tokens = len(request.prompt) + request.max_new_tokens
        return n_tokens if request.context_shift else min(n_tokens, self.loaded.config.context_length + 1)

    def check(self, limits: Limits) -> None:
        asked, n_choices = self.asked, len(self.prompts) * (self.asked.n or 1)
        most = most_choices(limits)
        if n_choices > most:
            message = f"prompts times n is {n_choices}; at most {most} texts are written at once."
            raise InputError("n", message, "too_many_texts")
        if asked.best_of not in (None, asked.n or 1):
            raise InputError("best_of", f"best_of must equal n, which is {asked.n or 1}, found {asked.best_of}.")
        for name in ("max_tokens", "max_completion_tokens"):
            if n := getattr(asked, name):
                check_new_tokens(limits, name, n)
        for name, noun in (("stop", "string"), ("stop_token_ids", "id")):
            given = getattr(asked, name)
            if isinstance(given, list) and len(given) > limits.max_stop:
                message = f"{name} has {counted(len(given), noun)}; at most {limits.max_stop} are accepted."
                raise InputError(name, message)
        if asked.stream_options and asked.stream_options.include_usage and not asked.stream:
            raise InputError("stream_options", "stream_options requires stream: true.")

    def make_requests(self) -> list[GenerationRequest]:
        asked = self.asked
        sampling = parse_sampling(self.loaded, asked)
        seed = secrets.randbits(32) if asked.seed is None else asked.seed
        given = [each for each in (asked.max_tokens, asked.max_completion_tokens) if each is not None]
        max_tokens = max(1, min(given, default=DEFAULT_MAX_TOKENS))
        return [
            self.loaded.request(
                self.prompts[prompt],
                max_tokens,
                sampling=sampling,
                stop=(
                    *([asked.stop] if asked.stop and isinstance(asked.stop, str) else asked.stop or ()),
                    *self.own_stop,
                ),
                seed=seed,
                head_mask=asked.head_mask,
                logprobs=asked.logprobs is not None,
                prompt_logprobs=bool(asked.echo) and asked.logprobs is not None,
                n_top_logprobs=asked.logprobs or 0,
                choice=(prompt, text),
                context_shift=bool(asked.context_shift),
                stop_token_ids=asked.stop_token_ids or (),
                min_new_tokens=asked.min_tokens or 0,
                skip_special_tokens=asked.skip_special_tokens is not False,
            )
            for prompt, text in itertools.product(range(len(self.prompts)), range(asked.n or 1))
        ]

    def take(self, events: Sequence[tuple[int, Event]]) -> list[int]:
        """Add events to their choices and return the indices of the choices that changed."""
        for index, event in events:
            self.choices[index].take(event)
        return sorted({index for index, _ in events})

    async def whole(self, generation: Generation) -> dict[str, object]:
        async for events in generation:
            self.take(events)
        parts = [self.as_answer(choice.part()) for choice in self.choices]
        return self.envelope(self.kinds[0], parts) | {"usage": self.usage()}

    async def stream(self, generation: Generation) -> AsyncGenerator[bytes]:
        """Server-sent events: a chunk for each piece of text, and ``[DONE]`` at the end.

        An error before the first chunk is raised, so that the response can have its status; a later one is sent as an
        event.
        """
        include_usage = self.asked.stream_options and self.asked.stream_options.include_usage
        kind, more = self.kinds[1], {"usage": None} if include_usage else {}
        has_begun = False
        try:
            async for events in generation:
                changed = [self.choices[i] for i in self.take(events)]
                parts = [self.as_chunk(choice.part()) for choice in changed if choice.has_unsent]
                chunks = [self.envelope(kind, [part]) | more for part in parts]
                if chunks:
                    has_begun = True
                    yield b"".join(map(server_sent_event, chunks))
            if include_usage:
                yield server_sent_event(self.envelope(kind, []) | {"usage": self.usage()})
        except Exception as error:
            if not has_begun:
                raise
            yield server_sent_event(as_api_error(error).body)
        yield DONE

    def as_answer(self, part: dict[str, Any]) -> dict[str, object]:
        """A choice of a whole answer."""
        return part

    def as_chunk(self, part: dict[str, Any]) -> dict[str, object]:
        """A choice of a chunk of a stream."""
        return part

    def envelope(self, kind: str, choices: Sequence[dict[str, object]]) -> dict[str, object]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.loaded.name,
            "system_fingerprint": self.loaded.sha256[:16] or None,
            "choices": choices,
        }

    def usage(self) -> dict[str, int]:
        n_prompt, n_written = sum(map(len, self.prompts)), sum(choice.n_written for choice in self.choices)
        return {"prompt_tokens": n_prompt, "completion_tokens": n_written, "total_tokens": n_prompt + n_written}


def most_choices(limits: Limits) -> int:
    """The maximum number of texts of one call."""
    return min(limits.max_choices, limits.max_texts)


def parse_prompts(limits: Limits, loaded: LoadedModel, prompt: Any, noun: str = "prompt") -> list[list[int]]:
    """The token ids of each prompt of a call, in whose errors they are called ``noun``."""
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        prompt = [prompt]
    if not prompt:
        raise InputError(noun, f"{noun} is an empty list; at least one {noun} is needed.", "empty_prompt")
    if len(prompt) > limits.max_choices:
        n_prompts = counted(len(prompt), noun)
        raise InputError(noun, f"{noun} has {n_prompts}; at most {limits.max_choices} are accepted at once.")
    for each in prompt:
        if isinstance(each, str):
            check_length(noun, noun, each, limits.max_prompt_characters)
    return [loaded.parse_prompt(each, noun=noun) for each in prompt]


def parse_sampling(loaded: LoadedModel, asked: CompletionRequest) -> SamplingSettings:
    """The sampling settings of a body; null stands for the default."""
    given = asked.model_dump(include=set(SAMPLING_OPTIONS), exclude_none=True)
    bias: dict[int, float] = {}
    for key, value in (asked.logit_bias or {}).items():
        token_id = int(key) if key.isascii() and key.isdigit() and len(key) < 10 else -1
        if not 0 <= token_id < loaded.config.vocab_size:
            raise loaded.invalid_bias(key)
        bias[token_id] = value
    return SamplingSettings(**given, logit_bias=bias)
