"""Writing: the prompt is read once, then one token at a time with the cache."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from .cache import KVCache, attention_dtype
from .errors import InputError
from .gpt import GPT
from .sampling import Option, SamplingSettings, Slider, option, options, random_generator, sample
from .tokenizer import TextStream, Tokenizer
from .tokenizer.streaming import overlap

MAX_SEED = 2**63 - 1
MAX_NEW_TOKENS = 2**31
FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GenerationRequest:
    """A text to write: what the page, the HTTP API, the Gradio endpoints and the Learn tab all ask for.

    ``prompt`` and ``head_mask`` are those of a model that checked them: ``LoadedModel.request`` makes a request from
    text. Raises ``InputError`` for everything that can be checked without the model.
    """

    prompt: tuple[int, ...]
    # fmt: off
    max_new_tokens: int = option(
        int, 100, 1, MAX_NEW_TOKENS, "How many tokens to write at most; fewer where the model's context is full.",
        Slider("length", 1, 1024, 1, start=200))
    seed: int = option(
        int, 0, -MAX_SEED, MAX_SEED, "The same seed writes the same text; null draws a new one.")
    # fmt: on
    sampling: SamplingSettings = SamplingSettings()
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()  # tokens that end the text, beside the model's own end token
    min_new_tokens: int = 0  # before which neither an end token nor a stop string ends it
    never_drawn: tuple[int, ...] = ()  # rows of the vocabulary that have no token, in ascending order
    head_mask: Tensor | None = None  # (n_layer, n_head), scales each head's context vectors
    record: bool = False  # the attention weights of all heads, and the logits
    logprobs: bool = True  # those of the written tokens; where another engine writes, they take a pass of their own
    prompt_logprobs: bool = False  # the log-probabilities of the prompt's own tokens
    n_top_logprobs: int = 0  # how many of the most probable tokens to name at each place
    choice: tuple[int, int] = (0, 0)  # which prompt of a call, and which text for it: each draws from its own generator
    context_shift: bool = False  # when the context is full, re-read its newer half and write on

    def __post_init__(self) -> None:
        for name, row in REQUEST_OPTIONS.items():
            row.check(getattr(self, name))
        for string in self.stop:
            if not isinstance(string, str) or not string:
                raise InputError("stop", f"stop must hold strings of at least one character, found {string!r}")


REQUEST_OPTIONS: dict[str, Option] = options(GenerationRequest)


@dataclass(slots=True, eq=False)  # not frozen, which would make each several times as slow
class Step:
    """One token that was written.

    ``text`` is what it adds to the text: the pieces of all steps join to the generated text, and one is empty where it
    ends inside a character or might begin a stop string. ``logprob`` is the natural logarithm of its probability under
    the raw logits, ``top_logprobs`` those of the most probable tokens in its place. ``attention``
    ``(n_layer, n_head, position + 1)`` holds the attention weights of the token that was read to write it, at
    ``position``. What was not asked for is None; ``finish_reason`` is set on the last step.
    """

    text: str
    token_id: int
    logprob: float
    logits: Tensor | None = None  # (vocab_size,) float32, raw
    attention: Tensor | None = None
    top_logprobs: dict[int, float] | None = None
    finish_reason: FinishReason | None = None


class TextOut:
    """Text as it may be shown: whole characters, nothing from a stop string on, nothing that might begin one."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        """``stop`` holds no empty string."""
        self.stream = TextStream(tokenizer)
        self.stop = stop
        self.held = ""
        self.stopped = False

    def push(self, token_id: int) -> str:
        """The text that ``token_id`` sets free; ``stopped`` turns true when a stop string is complete."""
        return self.release(self.stream.push(token_id))

    def finish(self) -> str:
        """The text held back so far, at the end of writing."""
        if self.stopped:
            return ""
        text = self.release(self.stream.flush())
        rest, self.held = self.held, ""
        return text if self.stopped else text + rest

    def release(self, new: str) -> str:
        if not self.stop:
            return new
        text = self.held + new
        found = [position for string in self.stop if (position := text.find(string)) >= 0]
        if found:
            self.stopped, self.held = True, ""
            return text[: min(found)]
        hold = max((overlap(text, string) for string in self.stop), default=0)
        self.held = text[len(text) - hold :]
        return text[: len(text) - hold]


class Continuation:
    """The text that a request is writing: from the logits behind its newest token to its next token, until it ends."""

    def __init__(
        self, request: GenerationRequest, tokenizer: Tokenizer, end_token: int | None, context_length: int
    ) -> None:
        self.request, self.context_length = request, context_length
        self.max_new_tokens = request.max_new_tokens
        if not request.context_shift:  # a prompt that fills the context still gets one token
            self.max_new_tokens = min(self.max_new_tokens, context_length - len(request.prompt) + 1)
        self.generator = random_generator(request.seed, *request.choice)
        self.end_tokens = {*request.stop_token_ids, *(() if end_token is None else (end_token,))}
        self.silent_tokens = {*tokenizer.special_tokens.values(), end_token} & self.end_tokens  # no part of the text
        self.out = TextOut(tokenizer, () if request.min_new_tokens else request.stop)
        self.written: list[int] = []

    @property
    def may_end(self) -> bool:
        """Whether the next token may be the last."""
        return len(self.written) >= self.request.min_new_tokens

    def write(self, logits: Tensor, /, **recorded: Any) -> Step:
        """Draw the next token from raw ``logits`` ``(vocab_size,)``; the step with a finish reason is the last.

        ``recorded`` are further fields of that step.
        """
        token_id = sample(
            self.drawable(logits),
            self.request.sampling,
            self.generator,
            self.request.prompt,
            self.written,
        )
        return self.add(token_id, float(torch.log_softmax(logits, dim=-1)[token_id]), **recorded)

    def add(self, token_id: int, logprob: float, **recorded: Any) -> Step:
        """Go on with a token, as ``write`` does with the one it draws."""
        if self.may_end:
            self.out.stop = self.request.stop
        self.written.append(token_id)
        ended = token_id in self.end_tokens
        text = "" if token_id in self.silent_tokens else self.out.push(token_id)
        reason: FinishReason | None = None
        if ended or self.out.stopped or len(self.written) >= self.max_new_tokens:
            text += self.out.finish()  # which may complete a stop string
            reason = "stop" if ended or self.out.stopped else "length"
        return Step(text, token_id, logprob, finish_reason=reason, **recorded)

    def drawable(self, logits: Tensor) -> Tensor:
        """``logits`` with those that must not be drawn at minus infinity: of rows without a token, and of end tokens
        while the text may not end, unless there is no other."""
        logits = without(logits, self.request.never_drawn)
        if self.may_end:
            return logits
        ids = [token_id for token_id in self.end_tokens if token_id < len(logits)]
        return logits if len(ids) + len(self.request.never_drawn) == len(logits) else without(logits, ids)


def without(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """``logits`` ``(vocab_size,)`` with those of ``ids`` at minus infinity."""
    return logits.index_fill(0, torch.tensor(ids, device=logits.device), -torch.inf) if ids else logits


@torch.inference_mode()  # as a decorator: a with-block around a yield would leak into whoever resumes the generator
def generate(gpt: GPT, text: Continuation) -> Iterator[Step]:
    """Write ``text`` to its end and yield each token as it is written. All of it must fit into the context."""
    config, weight, request = gpt.config, gpt.wte.weight, text.request
    # The last token written is never read, so it needs no place.
    capacity = len(request.prompt) + text.max_new_tokens - 1
    cache = KVCache(config, capacity=capacity, dtype=attention_dtype(weight), device=weight.device)
    layers = range(config.n_layer) if request.record else ()
    reading = torch.tensor([request.prompt], device=weight.device)
    finished = False
    while not finished:
        result = gpt(reading, cache=cache, head_mask=request.head_mask, record=layers, last_only=True)
        logits = result.logits[0, -1].float()
        attention = torch.stack([result.attention[i][0, :, -1] for i in layers]).float() if layers else None
        step = text.write(logits, logits=logits, attention=attention)
        finished = step.finish_reason is not None
        yield step
        reading = torch.tensor([[step.token_id]], device=weight.device)


@torch.inference_mode()
def generate_naive(gpt: GPT, request: GenerationRequest) -> list[int]:
    """The token ids that follow the prompt, reading everything anew for each: slow, plain, and the oracle."""
    generator = random_generator(request.seed, *request.choice)
    n_prompt, ids = len(request.prompt), list(request.prompt)
    for _ in range(min(request.max_new_tokens, gpt.config.context_length - n_prompt + 1)):
        logits = gpt(torch.tensor([ids], device=gpt.wte.weight.device)).logits[0, -1].float()
        drawable = without(logits, request.never_drawn)
        ids.append(sample(drawable, request.sampling, generator, request.prompt, ids[n_prompt:]))
    return ids[n_prompt:]
