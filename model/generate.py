"""Writing: the prompt is read once, then one token a step with the cache."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from .cache import KVCache, attention_dtype
from .gpt import GPT
from .sampling import SamplingSettings, sample
from .tokenizer import TextStream, Tokenizer

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
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
        text = self.held + new
        found = [position for string in self.stop if (position := text.find(string)) >= 0]
        if found:
            self.stopped, self.held = True, ""
            return text[: min(found)]
        hold = max((overlap(text, string) for string in self.stop), default=0)
        self.held = text[len(text) - hold :]
        return text[: len(text) - hold]


def overlap(text: str, string: str) -> int:
    """The length of the longest end of ``text`` that is a beginning of ``string``."""
    return next((n for n in range(min(len(text), len(string) - 1), 0, -1) if text.endswith(string[:n])), 0)


class Draft:
    """A text that is being written: from the logits behind its newest token to its next token, until it ends."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        *,
        max_new_tokens: int,
        settings: SamplingSettings,
        generator: random.Random,
        stop: Sequence[str] = (),
        end_token: int | None = None,
    ) -> None:
        self.prompt, self.settings, self.generator = prompt, settings, generator
        self.max_new_tokens, self.end_token = max_new_tokens, end_token
        self.out = TextOut(tokenizer, stop)
        self.written: list[int] = []

    def write(self, logits: Tensor, /, **recorded: Any) -> Step:
        """Draw the next token from raw ``logits`` ``(vocab_size,)``; the step that has a finish reason is the last.

        ``recorded`` are further fields of that step.
        """
        token_id = sample(logits, self.settings, self.generator, self.prompt, self.written)
        self.written.append(token_id)
        ended = token_id == self.end_token
        text = "" if ended else self.out.push(token_id)
        reason: FinishReason | None = None
        if ended or self.out.stopped or len(self.written) >= self.max_new_tokens:
            text += self.out.finish()  # which may complete a stop string
            reason = "stop" if ended or self.out.stopped else "length"
        logprob = float(torch.log_softmax(logits, dim=-1)[token_id])
        return Step(text, token_id, logprob, finish_reason=reason, **recorded)


@torch.inference_mode()  # as a decorator: a with-block around a yield would leak into whoever resumes the generator
def generate(gpt: GPT, draft: Draft, *, head_mask: Tensor | None = None, record: bool = False) -> Iterator[Step]:
    """Write ``draft`` to its end and yield each token as it is written.

    ``head_mask`` is ``(n_layer, n_head)``. What it asks for must fit into the context.
    """
    config, weight = gpt.config, gpt.wte.weight
    # The last token written is never read, so it needs no place.
    capacity = len(draft.prompt) + draft.max_new_tokens - 1
    cache = KVCache(config, capacity=capacity, dtype=attention_dtype(weight), device=weight.device)
    layers = range(config.n_layer) if record else ()
    reading = torch.tensor([draft.prompt], device=weight.device)
    finished = False
    while not finished:
        result = gpt(reading, cache=cache, head_mask=head_mask, record=layers, last_only=True)
        logits = result.logits[0, -1].float()
        attention = torch.stack([result.attention[i][0, :, -1] for i in layers]).float() if record else None
        step = draft.write(logits, logits=logits, attention=attention)
        finished = step.finish_reason is not None
        yield step
        reading = torch.tensor([[step.token_id]], device=weight.device)


@torch.inference_mode()
def generate_naive(
    gpt: GPT, prompt: Sequence[int], *, max_new_tokens: int, settings: SamplingSettings, generator: random.Random
) -> list[int]:
    """The token ids that follow ``prompt``, reading everything anew for each: slow, plain, and the oracle."""
    ids = list(prompt)
    for _ in range(min(max_new_tokens, gpt.config.context_length - len(prompt) + 1)):
        logits = gpt(torch.tensor([ids], device=gpt.wte.weight.device)).logits[0, -1].float()
        ids.append(sample(logits, settings, generator, prompt, ids[len(prompt) :]))
    return ids[len(prompt) :]
