"""One forward pass for many requests, each at its own place in its own text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ..cache import attention_dtype
from ..gpt import GPT, Block

LENGTH_SLACK = 64  # texts that differ by this much, or by a factor of 2, still attend together


class BatchCache:
    """Keys and values of up to ``n_slots`` requests: ``(n_layer, n_slots, n_head, context_length, head_dim)`` each.

    Zero to begin with, so that it takes memory as it is filled; what a former request left in a slot is masked.
    """

    def __init__(self, gpt: GPT, n_slots: int) -> None:
        config, weight = gpt.config, gpt.wte.weight
        shape = (config.n_layer, n_slots, config.n_head, config.context_length, config.head_dim)
        self.keys = torch.zeros(shape, dtype=attention_dtype(weight), device=weight.device)
        self.values = torch.zeros_like(self.keys)

    def clear(self, slot: int, length: int) -> None:
        """Remove NaN and infinity that a request may have left: a mask does not hide those."""
        self.keys[:, slot, :, :length] = 0
        self.values[:, slot, :, :length] = 0


@dataclass(frozen=True, eq=False)
class Segment:
    """``n_tokens`` new tokens in each of some neighbouring slots, the first of them ``slot``.

    ``lengths`` says how many tokens each slot has read before. Several slots read one token each, or they would need a
    mask of their own. ``head_mask`` is ``(n_layer, len(lengths), n_head)``.
    """

    cache: BatchCache
    slot: int
    lengths: Sequence[int]
    n_tokens: int
    head_mask: Tensor | None = None
    record: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.lengths) * self.n_tokens

    @cached_property
    def mask(self) -> Tensor | None:
        """``(slots, 1, 1, S)`` where the texts differ in length."""
        if len(set(self.lengths)) == 1:
            return None
        lengths = torch.tensor(self.lengths, device=self.cache.keys.device)
        keys = torch.arange(max(self.lengths) + 1, device=lengths.device)
        return (keys <= lengths[:, None])[:, None, None]

    @cached_property
    def places(self) -> tuple[Tensor, Tensor]:
        """The slot and the position of each new token."""
        device = self.cache.keys.device
        slots = torch.arange(self.slot, self.slot + len(self.lengths), device=device)
        return slots, torch.tensor(self.lengths, device=device)

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``key`` and ``value`` ``(slots, n_head, n_tokens, head_dim)``; give all of these slots so far."""
        end = max(self.lengths) + self.n_tokens
        slots = slice(self.slot, self.slot + len(self.lengths))
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        if self.mask is None:
            keys[slots, :, end - self.n_tokens : end] = key
            values[slots, :, end - self.n_tokens : end] = value
        else:
            slot, position = self.places
            keys[slot, :, position] = key[:, :, 0]
            values[slot, :, position] = value[:, :, 0]
        return keys[slots, :, :end], values[slots, :, :end]


class BatchForward(NamedTuple):
    """``logits`` ``(rows wanted, vocab_size)``; for each segment its attention weights where it is recorded.

    They are ``(n_layer, slots, n_head, n_tokens, S)``, float32.
    """

    logits: Tensor
    attention: list[Tensor | None]


@torch.inference_mode()
def forward_batch(gpt: GPT, ids: Sequence[int], segments: Sequence[Segment], rows: Sequence[int]) -> BatchForward:
    """Read ``ids``, those of one segment after the other, and give the logits behind some ``rows`` of them.

    Everything but attention is done for all requests at once: the weights are read from memory once.
    """
    device = gpt.wte.weight.device
    positions = [n + i for segment in segments for n in segment.lengths for i in range(segment.n_tokens)]
    x = gpt.wte(torch.tensor(ids, device=device)) + gpt.wpe(torch.tensor(positions, device=device))  # (N, C)
    sizes = [segment.n_rows for segment in segments]
    recorded: list[list[Tensor]] = [[] for _ in segments]

    def attend(block: Block, x: Tensor) -> Tensor:
        contexts = []
        for segment, qkv, taken in zip(segments, block.attn.c_attn(x).split(sizes), recorded, strict=True):
            context, attn_weights = block.attn.attend(
                qkv.view(len(segment.lengths), segment.n_tokens, -1),
                cache=segment,
                layer=block.layer,
                head_mask=None if segment.head_mask is None else segment.head_mask[block.layer],
                need_weights=segment.record,
            )
            contexts.append(context.flatten(0, 1))
            if attn_weights is not None:
                taken.append(attn_weights)
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return block.attn.c_proj(context.to(x.dtype))

    x = gpt.run_blocks(x, attend)
    if list(rows) != list(range(len(ids))):
        x = x[torch.tensor(rows, dtype=torch.long, device=device)]
    logits = gpt.lm_head(gpt.ln_f(x)) if len(x) else x.new_empty(0, gpt.config.vocab_size)
    attention = [torch.stack(taken).float() if taken else None for taken in recorded]
    return BatchForward(logits.float(), attention)


def neighbours(places: Sequence[tuple[int, int, bool]]) -> list[list[int]]:
    """Which of ``(slot, length, record)``, in the order of their slots, attend together: lists of indices.

    The slots of a group lie side by side, as they are read as one block, and their lengths are not far apart, as every
    text is read up to the longest.
    """
    groups: list[list[int]] = []
    shortest = longest = 0
    for i, (slot, length, record) in enumerate(places):
        if groups:
            last_slot, _, last_record = places[i - 1]
            low, high = min(shortest, length), max(longest, length)
            if slot == last_slot + 1 and record == last_record and high <= max(2 * low, low + LENGTH_SLACK):
                groups[-1].append(i)
                shortest, longest = low, high
                continue
        groups.append([i])
        shortest = longest = length
    return groups
