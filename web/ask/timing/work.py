"""What a question computes, counted in a few units whose speed can be measured."""

import math
from dataclasses import dataclass, fields

from model.config import GPTConfig
from model.lens.text_pass import TOKENS_AT_ONCE

ATTENTION_PART = 1 / 3  # of a layer, roughly: the products that give queries, keys and values, and the attention


@dataclass(frozen=True)
class Work:
    """How often a computation does each of the things that take its time; or the seconds that each takes once."""

    calls: float = 0.0  # of a layer, on any number of tokens
    tokens: float = 0.0  # read by a layer
    pairs: float = 0.0  # of two tokens of a text that a layer reads, in all heads together
    weights: float = 0.0  # attention weights written to memory, each for one head
    logits: float = 0.0  # positions at which all logits are computed

    def __add__(self, other: "Work") -> "Work":
        return Work(*(one + two for one, two in zip(self.numbers(), other.numbers(), strict=True)))

    def __mul__(self, times: float) -> "Work":
        return Work(*(times * number for number in self.numbers()))

    def numbers(self) -> list[float]:
        return [getattr(self, each.name) for each in fields(self)]

    def seconds(self, speed: "Work") -> float:
        """How long it takes, given the seconds that each thing takes once."""
        return sum(times * each for times, each in zip(self.numbers(), speed.numbers(), strict=True))


def at_once(length: int) -> int:
    """How many copies of a text ``TextPass`` runs in a batch."""
    return max(1, TOKENS_AT_ONCE // length)


def layers(times: float, length: int, copies: int = 1, batch: int | None = None) -> Work:
    """A layer run ``times`` times over ``copies`` of a text of ``length`` tokens, in the batches of ``TextPass``."""
    tokens = times * copies * length
    return Work(calls=times * math.ceil(copies / (batch or at_once(length))), tokens=tokens, pairs=tokens * length)


def all_weights(config: GPTConfig, length: int, times: float = 1.0) -> Work:
    """The attention weights of all heads of a layer over ``length`` tokens."""
    return Work(weights=times * config.n_head * length**2)


def from_each_layer(config: GPTConfig) -> int:
    """How many layers run if one run begins in each layer."""
    return config.n_layer * (config.n_layer + 1) // 2
