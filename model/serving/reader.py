"""The interface of a reader: one forward pass for many texts, each at its own position."""

import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ..config import GPTConfig
from ..generate import Recorded
from ..sampling import SamplingSettings

MAX_PROMPT_TOKENS = 512  # of all prompts together that a reader has room for in one pass


class Part(NamedTuple):
    """The next ``ids`` of the text in ``slot``, of which ``n_read`` tokens have been read.

    ``wanted`` says for which of them the following logits are needed, and ``record`` whether the attention weights are.
    ``head_mask`` ``(n_layer, n_head)`` scales the context vectors.
    """

    slot: int
    n_read: int
    ids: list[int]
    wanted: list[bool]
    record: bool = False
    head_mask: Tensor | None = None


def head_masks(parts: Sequence[Part], config: GPTConfig, device: torch.device) -> Tensor | None:
    """The head masks of all parts, ``(n_layer, len(parts), n_head)``; None if no part has one."""
    if all(part.head_mask is None for part in parts):
        return None
    whole = torch.ones(config.n_layer, config.n_head, device=device)
    return torch.stack([whole if part.head_mask is None else part.head_mask for part in parts], 1)


class Reading(Protocol):
    """The result of reading a part, valid until the reader's next pass."""

    @property
    def logits(self) -> Tensor:
        """The requested logits, ``(wanted, vocab_size)`` float32."""

    @property
    def attention(self) -> Tensor | None:
        """The attention weights ``(n_layer, n_head, n, S)`` float32, if they were recorded."""

    def record(self, n_keys: int) -> Recorded:
        """The last logits and, if they were recorded, the last token's weights of ``n_keys`` keys, to be kept."""

    def choose(self, sampling: SamplingSettings, generator: random.Random, n_drawable: int) -> tuple[int, float] | None:
        """The token drawn from the last logits, and its log-probability; None if there is no faster way to draw it.

        Only ids below ``n_drawable`` are drawn. Only for settings that are ``plain <SamplingSettings.is_plain>``.
        """


class Reader(Protocol):
    """A model with room for the texts of some slots."""

    writes_compiled: bool  # whether texts are written with compiled code instead of torch's modules
    products: str  # the kind of its matrix products: the precision of their inputs, and whether in tiles

    def read(self, parts: Sequence[Part]) -> list[Reading]:
        """Read all parts in one pass, and return one reading for each, in order."""

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first ``length`` tokens of one slot into another: keys and values are those of the same text."""

    def clear(self, slot: int, length: int) -> None:
        """Forget a text of ``length`` tokens whose numbers may not be finite."""

    def close(self) -> None:
        """Release threads; the reader is not used afterwards."""
