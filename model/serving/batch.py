"""One forward pass for many requests, each at its own position in its own text."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ..cache import attention_dtype
from ..gpt import GPT, Block

LENGTH_SLACK = 64  # texts whose lengths differ by at most this much, or by a factor of 2, attend together


class BatchCache:
    """Keys and values of up to ``n_slots`` requests: ``(n_layer, n_slots, n_head, context_length, head_dim)`` each.

    Zeros take up memory only once written to. What an earlier request left in a slot is masked.
    """

    def __init__(self, gpt: GPT, n_slots: int) -> None:
        config, weight = gpt.config, gpt.wte.weight
        shape = (config.n_layer, n_slots, config.n_head, config.context_length, config.head_dim)
        self.keys = torch.zeros(shape, dtype=attention_dtype(weight), device=weight.device)
        self.values = torch.zeros_like(self.keys)

    def clear(self, slot: int, length: int) -> None:
        """Remove any NaN or infinity that a request left behind: a mask does not hide those."""
        self.keys[:, slot, :, :length] = 0
        self.values[:, slot, :, :length] = 0


@dataclass(frozen=True, eq=False)
class Segment:
    """``n_tokens`` new tokens for each of ``len(lengths)`` adjacent slots, starting at ``slot``.

    ``lengths`` holds the number of tokens that each slot has read so far. Either there is a single slot, or
    ``n_tokens`` is 1: anything else would need a mask of its own. ``head_mask`` is ``(n_layer, len(lengths), n_head)``.
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
        """``(slots, 1, 1, S)`` if the texts differ in length, otherwise None."""
        if len(set(self.lengths)) == 1:
            return None
        lengths = torch.tensor(self.lengths, device=self.cache.keys.device)
        keys = torch.arange(max(self.lengths) + 1, device=lengths.device)
        return (keys <= lengths[:, None])[:, None, None]

    @cached_property
    def targets(self) -> tuple[Tensor, Tensor]:
        """The slot and the position of each new token, if there is one per slot."""
        device = self.cache.keys.device
        slots = torch.arange(self.slot, self.slot + len(self.lengths), device=device)
        return slots, torch.tensor(self.lengths, device=device)

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``key`` and ``value`` ``(slots, n_head, n_tokens, head_dim)``; return all so far in these slots."""
        end = max(self.lengths) + self.n_tokens
        slots = slice(self.slot, self.slot + len(self.lengths))
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        if self.mask is None:
            keys[slots, :, end - self.n_tokens : end] = key
            values[slots, :, end - self.n_tokens : end] = value
        else:
            slot, position = self.targets
            keys[slot, :, position] = key[:, :, 0]
            values[slot, :, position] = value[:, :, 0]
        return keys[slots, :, :end], values[slots, :, :end]


class BatchForward(NamedTuple):
    """The ``logits`` ``(len(rows), vocab_size)`` and, per segment, the attention weights if recorded, else None.

    The attention weights are ``(n_layer, slots, n_head, n_tokens, S)``. Both are float32.
    """

    logits: Tensor
    attention: list[Tensor | None]


@torch.inference_mode()
def forward_batch(gpt: GPT, ids: Sequence[int], segments: Sequence[Segment], rows: Sequence[int]) -> BatchForward:
    """Read the ``ids`` of all segments, concatenated, and compute the logits that follow those at index ``rows``.

    All but attention is computed for all requests at once, so the model's weights are read from memory only once.
    """
    device = gpt.wte.weight.device
    positions = [n + i for segment in segments for n in segment.lengths for i in range(segment.n_tokens)]
    x = gpt.wte(torch.tensor(ids, device=device)) + gpt.wpe(torch.tensor(positions, device=device))  # (N, C)
    sizes = [segment.n_rows for segment in segments]
    recorded: list[list[Tensor]] = [[] for _ in segments]  # per segment, the attention weights of each layer

    def attend(block: Block, x: Tensor) -> Tensor:
        contexts = []
        for segment, qkv, layers in zip(segments, block.attn.c_attn(x).split(sizes), recorded, strict=True):
            context, attn_weights = block.attn.attend(
                qkv.view(len(segment.lengths), segment.n_tokens, -1),
                cache=segment,
                layer=block.layer,
                head_mask=None if segment.head_mask is None else segment.head_mask[block.layer],
                need_weights=segment.record,
            )
            contexts.append(context.flatten(0, 1))
            if attn_weights is not None:
                layers.append(attn_weights)
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return block.attn.c_proj(context.to(x.dtype))

    x = gpt.run_blocks(x, attend)
    if list(rows) != list(range(len(ids))):
        x = x[torch.tensor(rows, dtype=torch.long, device=device)]
    logits = gpt.lm_head(gpt.ln_f(x)) if len(x) else x.new_empty(0, gpt.config.vocab_size)
    attention = [torch.stack(layers).float() if layers else None for layers in recorded]
    return BatchForward(logits.float(), attention)


def neighbours(places: Sequence[tuple[int, int, bool]]) -> list[list[int]]:
    """Group the texts ``(slot, length, record)``, sorted by slot, that can attend together: lists of indices.

    The slots of a group are adjacent, because their keys and values are read as one block. Their lengths are similar,
    because every text is read up to the length of the longest.
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
