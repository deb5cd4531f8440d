"""What the engine asks of a reader: one forward pass for many texts, each at its own place in its own text."""

import random
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from ..sampling import SamplingSettings


class Part(NamedTuple):
    """The next ``ids`` of the text in ``slot``, of which ``n_read`` tokens were read before.

    ``wanted`` says behind which of them the logits are needed, ``record`` whether the attention weights are.
    ``head_mask`` ``(n_layer, n_head)`` scales the context vectors.
    """

    slot: int
    n_read: int
    ids: list[int]
    wanted: list[bool]
    record: bool = False
    head_mask: Tensor | None = None


class Reading(Protocol):
    """What reading a part gave. It holds until the reader's next pass."""

    @property
    def logits(self) -> Tensor:
        """Those that were wanted, ``(wanted, vocab_size)`` float32."""

    @property
    def attention(self) -> Tensor | None:
        """The attention weights ``(n_layer, n_head, n, S)`` float32, if they were recorded."""

    def last_logits(self) -> Tensor:
        """A copy of the last of them, ``(vocab_size,)``."""

    def choose(self, sampling: SamplingSettings, generator: random.Random, n_drawable: int) -> tuple[int, float] | None:
        """The token drawn from the last logits, and its log-probability; None if there is no faster way to draw it.

        Only ids below ``n_drawable`` are drawn. Only for settings that are `plain <SamplingSettings.is_plain>`.
        """


class Reader(Protocol):
    """A model with room for the texts of some slots."""

    is_compiled: bool  # whether loops of ours compute what torch's modules say

    def read(self, parts: Sequence[Part]) -> list[Reading]:
        """Read all parts in one pass; one reading for each, in their order."""

    def clear(self, slot: int, length: int) -> None:
        """Forget a text of ``length`` tokens whose numbers may not be finite."""

    def close(self) -> None:
        """Give back threads; it is not used any more."""
