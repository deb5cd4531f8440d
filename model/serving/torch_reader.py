"""Reading many texts in one forward pass of torch, with the model's modules and on any device."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..generate import Recorded, RecordedTensors
from ..gpt import GPT, Block
from ..modules.cache import attention_dtype
from ..sampling import SamplingSettings
from .reader import Part, Reading, head_masks

LENGTH_SLACK = 64  # texts whose lengths differ by at most this much, or by a factor of 2, attend together
FIRST_LENGTH = 256  # of a cache that grows


class BatchCache:
    """Keys and values of ``n_slots`` requests, each ``(n_layer, n_slots, n_kv_head, length, head_dim)``.

    On a CPU they take up memory only once written to. Values left in a slot by an earlier request are masked.
    """

    def __init__(self, gpt: GPT, n_slots: int, length: int) -> None:
        config, weight = gpt.config, gpt.wte.weight
        shape = (config.n_layer, n_slots, config.n_kv_head, length, config.head_dim)
        self.context_length = config.context_length
        self.keys, self.values = (empty_cache(shape, weight) for _ in range(2))

    def make_room(self, length: int) -> None:
        """Be long enough for texts of ``length`` tokens: twice as long as before, or as the context."""
        if length > self.keys.shape[3]:
            most = max(length, min(2 * self.keys.shape[3], self.context_length))
            self.keys = lengthened(self.keys, most)  # one after the other, so that not both exist twice
            self.values = lengthened(self.values, most)

    def copy(self, source: int, target: int, length: int) -> None:
        for numbers in (self.keys, self.values):
            numbers[:, target, :, :length] = numbers[:, source, :, :length]

    def clear(self, slot: int, length: int) -> None:
        """Remove any NaN or infinity that a request left behind: a mask does not hide those."""
        self.keys[:, slot, :, :length] = 0
        self.values[:, slot, :, :length] = 0


def empty_cache(shape: Sequence[int], like: Tensor) -> Tensor:
    """Zeros in the precision and on the device of attention with weights ``like``."""
    if like.device.type == "cpu":  # zero pages from the system; torch's zeros would be written at once
        return torch.from_numpy(np.zeros(shape, np.float32))
    return torch.zeros(shape, dtype=attention_dtype(like), device=like.device)


def lengthened(numbers: Tensor, length: int) -> Tensor:
    longer = numbers.new_zeros(*numbers.shape[:3], length, numbers.shape[4])
    longer[:, :, :, : numbers.shape[3]] = numbers
    return longer


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

    @property
    def start(self) -> int | Tensor:
        """The position of the first new token; one for each slot, ``(slots,)``, if they differ."""
        return self.lengths[0] if self.seen is None else self.targets[1]

    @cached_property
    def seen(self) -> Tensor | None:
        """The keys up to each new token, ``(slots, 1, 1, S)`` bool, if the texts differ in length; otherwise None."""
        if len(set(self.lengths)) == 1:
            return None
        lengths = torch.tensor(self.lengths, device=self.cache.keys.device)
        keys = torch.arange(max(self.lengths) + 1, device=lengths.device)
        return (keys <= lengths[:, None])[:, None, None]

    def mask(self, window: int | None) -> Tensor | None:
        if self.seen is None or window is None:
            return self.seen
        lengths = self.targets[1]
        keys = torch.arange(self.seen.shape[-1], device=lengths.device)
        return self.seen & (keys > lengths[:, None] - window)[:, None, None]

    @cached_property
    def targets(self) -> tuple[Tensor, Tensor]:
        """The slot and the position of each new token, if there is one per slot."""
        device = self.cache.keys.device
        slots = torch.arange(self.slot, self.slot + len(self.lengths), device=device)
        return slots, torch.tensor(self.lengths, device=device)

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``key`` and ``value`` ``(slots, n_kv_head, n_tokens, head_dim)``; return all so far in these slots."""
        end = max(self.lengths) + self.n_tokens
        slots = slice(self.slot, self.slot + len(self.lengths))
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        if self.seen is None:
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

    Everything except attention is computed for all requests at once, so the model's weights are read from memory only
    once.
    """
    device = gpt.device
    positions = [n + i for segment in segments for n in segment.lengths for i in range(segment.n_tokens)]
    x = gpt.embeddings(torch.tensor(ids, device=device), torch.tensor(positions, device=device))  # (N, C)
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
            contexts.append(context.flatten(0, 1))  # (rows, n_head, head_dim)
            if attn_weights is not None:
                layers.append(attn_weights)
        context = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return block.attn.output(context.to(x.dtype))

    x = gpt.run_blocks(x, attend)
    if list(rows) != list(range(len(ids))):
        x = x[torch.tensor(rows, dtype=torch.long, device=device)]
    logits = gpt.logits(x) if len(x) else x.new_empty(0, gpt.config.vocab_size)
    attention = [torch.stack(layers).float() if layers else None for layers in recorded]
    return BatchForward(logits.float(), attention)


def neighbours(texts: Sequence[tuple[int, int, bool]]) -> list[list[int]]:
    """Group the texts ``(slot, length, record)``, sorted by slot, that can attend together: lists of indices.

    The slots of a group are adjacent, because their keys and values are read as one block. Their lengths are similar,
    because every text is read up to the length of the longest.
    """
    groups: list[list[int]] = []
    shortest = longest = 0
    for i, (slot, length, record) in enumerate(texts):
        if groups:
            last_slot, _, last_record = texts[i - 1]
            low, high = min(shortest, length), max(longest, length)
            if slot == last_slot + 1 and record == last_record and high <= max(2 * low, low + LENGTH_SLACK):
                groups[-1].append(i)
                shortest, longest = low, high
                continue
        groups.append([i])
        shortest = longest = length
    return groups


@dataclass(frozen=True, eq=False)
class TorchReading:
    """A ``Reading`` whose tokens are drawn by torch."""

    logits: Tensor
    attention: Tensor | None

    def record(self, n_keys: int) -> Recorded:
        attention = None if self.attention is None else self.attention[:, :, -1, :n_keys].clone()
        return RecordedTensors(self.logits[-1].clone(), attention)

    def choose(
        self, _sampling: SamplingSettings, _generator: random.Random, _n_drawable: int
    ) -> tuple[int, float] | None:
        return None


class TorchReader:
    """Reads with the modules of ``gpt``, in their precision and on their device."""

    writes_compiled = False

    def __init__(self, gpt: GPT, n_slots: int, length: int | None = None) -> None:
        """The cache begins with ``length`` positions and grows with the texts.

        By default, on a CPU it has the whole context from the start, since it takes up memory only once written to.
        """
        is_lazy = gpt.device.type == "cpu"
        self.gpt = gpt
        self.products = str(gpt.lm_head.weight.dtype).removeprefix("torch.")
        whole = gpt.config.context_length
        self.cache = BatchCache(gpt, n_slots, length or (whole if is_lazy else min(whole, FIRST_LENGTH)))

    def read(self, parts: Sequence[Part]) -> list[Reading]:
        """Parts of one token attend in groups; all other parts attend alone."""
        self.cache.make_room(max(part.n_read + len(part.ids) for part in parts))
        single = sorted((i for i, part in enumerate(parts) if len(part.ids) == 1), key=lambda i: parts[i].slot)
        groups = neighbours([(parts[i].slot, parts[i].n_read, parts[i].record) for i in single])
        together = [[single[i] for i in group] for group in groups]
        together += [[i] for i, part in enumerate(parts) if len(part.ids) > 1]
        order = list(itertools.chain(*together))
        result = forward_batch(
            self.gpt,
            list(itertools.chain(*(parts[i].ids for i in order))),
            [self.segment([parts[i] for i in group]) for group in together],
            [row for row, wanted in enumerate(itertools.chain(*(parts[i].wanted for i in order))) if wanted],
        )
        logits = result.logits.split([sum(parts[i].wanted) for i in order])
        attention = [
            None if weights is None else weights[:, i].cpu()
            for group, weights in zip(together, result.attention, strict=True)
            for i in range(len(group))
        ]
        readings = {i: TorchReading(*found) for i, *found in zip(order, logits, attention, strict=True)}
        return [readings[i] for i in range(len(parts))]

    def segment(self, group: Sequence[Part]) -> Segment:
        first, head_mask = group[0], head_masks(group, self.gpt.config, self.cache.keys.device)
        lengths = [part.n_read for part in group]
        return Segment(self.cache, first.slot, lengths, len(first.ids), head_mask, first.record)

    def copy(self, source: int, target: int, length: int) -> None:
        self.cache.copy(source, target, length)

    def clear(self, slot: int, length: int) -> None:
        self.cache.clear(slot, length)

    def close(self) -> None:
        pass
