"""Writing: the prompt is read once, then one token a step with the cache."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .cache import KVCache, attention_dtype
from .gpt import GPT
from .reading import token_logprobs
from .sampling import SamplingSettings, sample
from .tokenizer import TextStream, Tokenizer

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Step:
    """One token that was written.

    ``text`` is what it adds to the text: the pieces of all steps join to the generated text, and one is empty where it
    ends inside a character or might begin a stop string. ``logprob`` is the natural logarithm of its probability under
    the raw logits. ``attention`` ``(n_layer, n_head, position + 1)`` holds the attention weights of the token that was
    read to write it, at ``position``; the first step's ``prompt_attention`` ``(n_layer, n_head, T, T)`` those of the
    whole prompt, and ``prompt_logprobs`` ``T - 1`` numbers, those of its tokens but the first. All are None unless
    recorded. ``finish_reason`` is set on the last step.
    """

    text: str
    token_id: int
    logprob: float
    logits: Tensor  # (vocab_size,) float32, raw
    attention: Tensor | None = None
    prompt_attention: Tensor | None = None
    prompt_logprobs: list[float] | None = None
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


@torch.inference_mode()  # as a decorator: a with-block around a yield would leak into whoever resumes the generator
def generate(
    gpt: GPT,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    *,
    max_new_tokens: int,
    settings: SamplingSettings,
    generator: random.Random,
    stop: Sequence[str] = (),
    end_token: int | None = None,
    head_mask: Tensor | None = None,
    record: bool = False,
) -> Iterator[Step]:
    """Continue the token ids ``prompt``, at most to the end of the context, and yield each token as it is written.

    ``head_mask`` is ``(n_layer, n_head)``. Ends at ``end_token``, at a stop string, after ``max_new_tokens``, or when
    the context is full; a prompt that fills it gets one token. The caller has checked the arguments.
    """
    config, weight = gpt.config, gpt.wte.weight
    max_new_tokens = min(max_new_tokens, config.context_length - len(prompt) + 1)
    # The last token written is never read, so it needs no place.
    capacity = len(prompt) + max_new_tokens - 1
    cache = KVCache(config, capacity=capacity, dtype=attention_dtype(weight), device=weight.device)
    layers = range(config.n_layer) if record else ()
    out = TextOut(tokenizer, stop)
    written: list[int] = []
    reading = torch.tensor([prompt], device=weight.device)
    for n in range(1, max_new_tokens + 1):
        reads_prompt = record and n == 1
        result = gpt(reading, cache=cache, head_mask=head_mask, record=layers, last_only=not reads_prompt)
        logits = result.logits[0, -1].float()
        token_id = sample(logits, settings, generator, prompt, written)
        written.append(token_id)
        ended = token_id == end_token
        text = "" if ended else out.push(token_id)
        last = ended or out.stopped or n == max_new_tokens
        recorded = result.take_weights(layers) if record else None
        yield Step(
            text=text + out.finish() if last else text,
            token_id=token_id,
            logprob=float(torch.log_softmax(logits, dim=-1)[token_id]),
            logits=logits,
            attention=None if recorded is None else recorded[:, :, -1],
            prompt_attention=recorded if reads_prompt else None,
            prompt_logprobs=token_logprobs(result.logits[0, :-1], prompt[1:]) if reads_prompt else None,
            finish_reason=None if not last else "stop" if ended or out.stopped else "length",
        )
        if last:
            return
        reading = torch.tensor([[token_id]], device=weight.device)


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
