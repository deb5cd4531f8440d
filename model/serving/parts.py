"""What the engine asks of a reader: one forward pass for many texts, each at its own place in its own text."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


Choose = Callable[[SamplingSettings, random.Random], tuple[int, float]]


@dataclass(frozen=True, eq=False)
class Reading:
    """What reading a part gave. It holds until the reader's next pass.

    ``logits`` ``(wanted, vocab_size)`` and ``attention`` ``(n_layer, n_head, n, S)``, None unless it was recorded, are
    float32. ``choose`` draws the next token behind the last logits, and tells its log-probability, faster than
    `model.sampling` can; it is for settings that are `plain <SamplingSettings.is_plain>`. None if there is no such way.
    """

    logits: Tensor
    attention: Tensor | None
    choose: Choose | None = None


class Reader(Protocol):
    """A model with room for the texts of some slots."""

    def read(self, parts: Sequence[Part]) -> list[Reading]:
        """Read all parts in one pass; one reading for each, in their order."""

    def clear(self, slot: int, length: int) -> None:
        """Forget a text of ``length`` tokens whose numbers may not be finite."""

    def close(self) -> None:
        """Give back threads; it is not used any more."""
