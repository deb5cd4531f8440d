"""Choices for the text that the page opens with: where to cut it, and which head to show."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from .head_roles import CLEAR_ROLE, text_scores
from .metrics import most_selective_head

LEAST_REAL = 0.08  # minimum probability of a real alternative
MOST_CERTAIN = 0.6


class FittingHead(NamedTuple):
    """The head that fits a role best in a text, and its mean attention weight there."""

    role: str
    head: tuple[int, int]  # layer and head
    score: float


def fitting_heads(attention: Tensor, ids: Sequence[int]) -> list[FittingHead]:
    """For each role, the head that fits it best in the text ``ids``; ``attention`` is ``(n_layer, n_head, T, T)``."""
    return [
        FittingHead(role, divmod(int(scores.argmax()), scores.shape[1]), round(float(scores.max()), 4))
        for role, scores in text_scores(attention, ids).items()
    ]


def head_to_open(attention: Tensor, fitting: Sequence[FittingHead]) -> tuple[int, int]:
    """The layer and head of the first role that a head clearly has, otherwise of the most selective head."""
    return fitting[0].head if fitting[0].score >= CLEAR_ROLE else most_selective_head(attention)


def cut_at_open_choice(logits: Tensor, first: int) -> int:
    """How many tokens to keep, at least ``first``, so that the last one had three or four real alternatives.

    The next-token bars, which start there, then show a real choice. ``logits`` ``(T, vocab_size)`` are those of the
    whole text.
    """
    T = len(logits)
    if T <= first:
        return T
    probabilities = logits[first - 1 : T - 1].softmax(-1)  # for the tokens from ``first`` on
    real = (probabilities >= LEAST_REAL).sum(-1)
    largest = probabilities.amax(-1)
    open_choices = (((real == 3) | (real == 4)) & (largest <= MOST_CERTAIN)).nonzero().flatten()
    # As late as possible, to show more of the text.
    return first + int(open_choices[-1]) + 1 if len(open_choices) else T
