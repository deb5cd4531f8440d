"""Text generation: read the prompt once, then write one token at a time with the cache."""

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .errors import InputError
from .gpt import GPT
from .modules.cache import KVCache, attention_dtype
from .modules.hooks import NO_HOOKS, Hooks
from .sampling import GenerationOption, SamplingSettings, Slider, option, options, random_generator, sample
from .tokenizer import TextStream, Tokenizer
from .tokenizer.streaming import StringSearch

MAX_SEED = 2**63 - 1
MAX_NEW_TOKENS = 2**31
FinishReason = Literal["stop", "length"]
Prompt = str | Sequence[int] | Tensor | NDArray[Any]  # an array or tensor of ids, (T,) or (1, T)
GivenToken = str | int | Tensor | np.integer[Any]  # a text that is one token, an id, or a tensor of one


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationRequest:
    """A request for text, as the page, the HTTP API, the Gradio endpoints and the Learn tab all make it.

    ``prompt`` and ``head_mask`` must have been checked against the model: ``LoadedModel.request`` does so, and accepts
    text. Raises ``InputError`` for any other invalid field.
    """

    prompt: tuple[int, ...]
    # fmt: off
    max_new_tokens: int = option(
        int, 100, 1, MAX_NEW_TOKENS, "The maximum number of tokens to write; fewer if the model's context is full.",
        Slider("length", 1, 1024, 1, start=40))
    seed: int = option(
        int, 0, -MAX_SEED, MAX_SEED, "The same seed gives the same text; null draws a new seed.")
    # fmt: on
    sampling: SamplingSettings = SamplingSettings()
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()  # tokens that end the text, in addition to the model's end token
    min_new_tokens: int = 0  # until then, no end token or stop string ends the text
    never_drawn: tuple[int, ...] = ()  # vocabulary rows without a token, in ascending order
    head_mask: Tensor | None = None  # (n_layer, n_head), scales each head's context vectors
    record: bool = False  # record the attention weights of all heads, and the logits
    logprobs: bool = True  # of the written tokens; if another engine writes, they take a separate pass
    prompt_logprobs: bool = False  # the log-probabilities of the prompt's own tokens
    n_top_logprobs: int = 0  # how many of the most probable tokens to list at each position
    choice: tuple[int, int] = (0, 0)  # index of the prompt and of the text for it: each pair has its own generator
    context_shift: bool = False  # when the context is full, re-read its newer half and continue
    skip_special_tokens: bool = True  # leave special tokens out of the text

    def __post_init__(self) -> None:
        for name, row in REQUEST_OPTIONS.items():
            row.check(getattr(self, name))
        for string in self.stop:
            if not isinstance(string, str) or not string:
                raise InputError("stop", f"stop must hold strings of at least one character, found {string!r}")


REQUEST_OPTIONS: dict[str, GenerationOption] = options(GenerationRequest)


class Recorded(Protocol):
    """What was recorded while one token was written.

    The tensors may be made only when they are read: the first tensor after a pass takes 2 % of a small model's time.
    """

    @property
    def logits(self) -> Tensor:
        """The raw logits ``(vocab_size,)``, float32."""

    @property
    def attention(self) -> Tensor | None:
        """The float32 attention weights ``(n_layer, n_head, position + 1)`` of the token that was read last.

        None if they were not requested, or if another engine writes, where they follow separately.
        """

    @property
    def nbytes(self) -> int:
        """The bytes of both."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTensors:
    """What was recorded, as tensors."""

    logits: Tensor
    attention: Tensor | None = None

    @property
    def nbytes(self) -> int:
        return self.logits.nbytes + (0 if self.attention is None else self.attention.nbytes)


@dataclass(slots=True, eq=False)  # not frozen: that would make creating a step several times slower
class Step:
    """One written token.

    ``text`` is the text that this step releases; joined over all steps, it is the generated text. It is empty where the
    token ends inside a character or might begin a stop string. ``logprob`` is the natural logarithm of its probability
    under the raw logits, ``top_logprobs`` those of the most probable tokens at its position. Anything not requested is
    None; ``finish_reason`` is set on the last step. ``piece`` has the characters that the token completes, whether they
    are released or not; None if the token is not part of the text.
    """

    text: str
    token_id: int
    logprob: float
    recorded: Recorded | None = None
    top_logprobs: dict[int, float] | None = None
    finish_reason: FinishReason | None = None
    piece: str | None = None

    @property
    def logits(self) -> Tensor | None:
        """The raw logits ``(vocab_size,)``, float32."""
        return None if self.recorded is None else self.recorded.logits

    @property
    def attention(self) -> Tensor | None:
        """The attention weights ``(n_layer, n_head, position + 1)`` of the token at ``position`` that was read last."""
        return None if self.recorded is None else self.recorded.attention


class TextOut:
    """Releases text that can be shown: whole characters, up to any stop string, without text that might begin one."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        """``stop`` holds no empty string."""
        self.stream = TextStream(tokenizer)
        self.searches = list(map(StringSearch, stop))
        self.held: deque[str] = deque()
        self.n_held = 0  # characters
        self.stopped = False

    def finish(self) -> str:
        """The text still held back; to be called at the end of the text."""
        if self.stopped:
            return ""
        text = self.release(self.stream.flush())
        return text if self.stopped else text + self.take(self.n_held)

    def release(self, new: str) -> str:
        """The text that ``new`` releases, as ``stream`` decodes it; ``stopped`` tells of a complete stop string."""
        if not self.searches:
            return new
        starts = [start for search in self.searches if (start := search.push(new)) is not None]
        self.held.append(new)
        n_before, self.n_held = self.n_held, self.n_held + len(new)
        if starts:
            self.stopped = True
            return self.take(n_before + min(starts))
        return self.take(self.n_held - max(search.n_matched for search in self.searches))

    def take(self, n: int) -> str:
        """The first ``n`` characters of what is held back, which are held back no longer."""
        pieces, self.n_held = [], self.n_held - n
        while n:
            piece = self.held.popleft()
            pieces.append(piece[:n])
            if len(piece) > n:
                self.held.appendleft(piece[n:])
            n -= len(pieces[-1])
        return "".join(pieces)


def silent_tokens(request: GenerationRequest, tokenizer: Tokenizer, end_tokens: Iterable[int]) -> frozenset[int]:
    """The tokens that are not part of the text: ``end_tokens``, and special ones unless these are to be shown.

    A special token that ends the text is never part of it.
    """
    special = tokenizer.special_ids
    if not request.skip_special_tokens:
        special = special.intersection(request.stop_token_ids)
    return special.union(end_tokens)


class Continuation:
    """The text of a request while it is written: turns the logits after its newest token into the next token."""

    def __init__(
        self, request: GenerationRequest, tokenizer: Tokenizer, end_tokens: Iterable[int], context_length: int
    ) -> None:
        self.request, self.context_length = request, context_length
        self.max_new_tokens = request.max_new_tokens
        if not request.context_shift:  # a prompt that fills the context is still followed by one token
            self.max_new_tokens = min(self.max_new_tokens, context_length - len(request.prompt) + 1)
        self.generator = random_generator(request.seed, *request.choice)
        self.end_tokens = {*request.stop_token_ids, *end_tokens}
        self.silent_tokens = silent_tokens(request, tokenizer, end_tokens)
        self.out = TextOut(tokenizer, () if request.min_new_tokens else request.stop)
        self.written: list[int] = []

    @property
    def may_end(self) -> bool:
        """Whether the next token may be the last."""
        return len(self.written) >= self.request.min_new_tokens

    def write(self, logits: Tensor, /, **fields: Any) -> Step:
        """Draw the next token from raw ``logits`` ``(vocab_size,)``; the step with a finish reason is the last.

        ``fields`` are further fields of that step.
        """
        token_id = sample(
            self.drawable(logits),
            self.request.sampling,
            self.generator,
            self.request.prompt,
            self.written,
        )
        return self.add(token_id, float(torch.log_softmax(logits, dim=-1)[token_id]), **fields)

    def add(self, token_id: int, logprob: float, **fields: Any) -> Step:
        """Append a given token, as ``write`` appends the one it draws."""
        if self.may_end and not self.out.searches:
            self.out.searches = list(map(StringSearch, self.request.stop))
        self.written.append(token_id)
        ended = token_id in self.end_tokens
        piece = None if token_id in self.silent_tokens else self.out.stream.push(token_id)
        text = "" if piece is None else self.out.release(piece)
        reason: FinishReason | None = None
        if ended or self.out.stopped or len(self.written) >= self.max_new_tokens:
            text += self.out.finish()  # this may complete a stop string
            reason = "stop" if ended or self.out.stopped else "length"
        return Step(text, token_id, logprob, finish_reason=reason, piece=piece, **fields)

    def drawable(self, logits: Tensor) -> Tensor:
        """``logits`` with minus infinity for tokens that may not be drawn.

        These are rows without a token and, while the text may not end, the end tokens, if any other token remains.
        """
        logits = without(logits, self.request.never_drawn)
        if self.may_end:
            return logits
        ids = [token_id for token_id in self.end_tokens if token_id < len(logits)]
        return logits if len(ids) + len(self.request.never_drawn) == len(logits) else without(logits, ids)


def without(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """``logits`` ``(vocab_size,)`` with minus infinity for ``ids``."""
    return logits.index_fill(0, torch.tensor(ids, device=logits.device), -torch.inf) if ids else logits


@torch.no_grad()  # a decorator, because a with-block around a yield would leak into the caller
def generate(gpt: GPT, text: Continuation, hooks: Hooks = NO_HOOKS) -> Generator[Step]:
    """Write ``text`` to its end and yield each token as it is written. The whole text must fit into the context.

    ``hooks`` see the prompt first, then each token by itself, ``(1, 1, ...)``.
    """
    config, weight, request = gpt.config, gpt.wte.weight, text.request
    # The last token written is never read, so it needs no room in the cache.
    capacity = len(request.prompt) + text.max_new_tokens - 1
    cache = KVCache(config, capacity=capacity, dtype=attention_dtype(weight), device=weight.device)
    layers = range(config.n_layer) if request.record else ()
    reading = torch.tensor([request.prompt], device=weight.device)
    finished = False
    while not finished:
        mask = request.head_mask
        result = gpt(reading, cache=cache, head_mask=mask, record=layers, last_only=True, hooks=hooks)
        logits = result.logits[0, -1].float()
        attention = torch.stack([result.attention[i][0, :, -1] for i in layers]).float() if layers else None
        step = text.write(logits, recorded=RecordedTensors(logits, attention))
        finished = step.finish_reason is not None
        yield step
        reading = torch.tensor([[step.token_id]], device=weight.device)


@torch.no_grad()
def generate_naive(gpt: GPT, request: GenerationRequest) -> list[int]:
    """The token ids that follow the prompt, re-reading the whole text for each: slow, but a simple reference."""
    generator = random_generator(request.seed, *request.choice)
    n_prompt, ids = len(request.prompt), list(request.prompt)
    for _ in range(min(request.max_new_tokens, gpt.config.context_length - n_prompt + 1)):
        logits = gpt(torch.tensor([ids], device=gpt.device)).logits[0, -1].float()
        drawable = without(logits, request.never_drawn)
        ids.append(sample(drawable, request.sampling, generator, request.prompt, ids[n_prompt:]))
    return ids[n_prompt:]
