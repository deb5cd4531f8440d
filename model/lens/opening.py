"""Choices for the text that the page opens with: where to cut it, and which head to show."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..drawing.metrics import most_selective_head
from ..modules.head_tensors import Head
from .head_roles import CLEAR_COPYING, CLEAR_ROLE, text_scores

MIN_COPIED = 0.6  # weight on the token that is written next, in an opening about copying
MIN_REAL = 0.08  # minimum probability of a real alternative
MAX_CERTAINTY = 0.6


class FittingHead(NamedTuple):
    """The head that fits a role best in a text, and its mean attention weight there."""

    role: str
    head: Head
    score: float


def fitting_heads(attention: Tensor, ids: Sequence[int]) -> list[FittingHead]:
    """For each role, the head that fits it best in the text ``ids``; ``attention`` is ``(n_layer, n_head, T, T)``."""
    return [
        FittingHead(role, divmod(int(scores.argmax()), scores.shape[1]), round(float(scores.max()), 4))
        for role, scores in text_scores(attention, ids).items()
    ]


class CopiedToken(NamedTuple):
    """From ``query``, a copying head looks at ``key`` with ``weight``; the next token is the same as that at ``key``.

    ``probability`` is the model's for that token.
    """

    head: Head
    query: int
    key: int
    weight: float
    probability: float


def copied_tokens(attention: Tensor, logits: Tensor, ids: Sequence[int], copying: Tensor) -> list[CopiedToken]:
    """Where a head gives the token that comes next at least ``MIN_COPIED`` of its attention, the clearest first.

    ``attention`` ``(n_layer, n_head, T, T)`` and ``logits`` ``(T, vocab_size)`` are those of the whole text ``ids``;
    ``copying`` ``(n_layer, n_head)`` are the ``copying_scores`` of the heads. The first token does not count as a key,
    because heads without anything to look at rest there.
    """
    tokens = torch.tensor(ids)
    probabilities = logits[:-1].softmax(-1).gather(1, tokens[1:, None])[:, 0]
    weights, keys = attention[:, :, :-1].max(-1)
    is_copied = (tokens[keys] == tokens[1:]) & (keys > 0) & (weights >= MIN_COPIED)
    copies = []
    for layer, head, query in (is_copied & (copying >= CLEAR_COPYING)[:, :, None]).nonzero().tolist():
        key, weight = int(keys[layer, head, query]), float(weights[layer, head, query])
        copies.append(CopiedToken((layer, head), query, key, weight, float(probabilities[query])))
    return sorted(copies, key=lambda copied: copied.weight * copied.probability, reverse=True)


def head_to_open(attention: Tensor, fitting: Sequence[FittingHead]) -> Head:
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
    real = (probabilities >= MIN_REAL).sum(-1)
    largest = probabilities.amax(-1)
    open_choices = (((real == 3) | (real == 4)) & (largest <= MAX_CERTAINTY)).nonzero().flatten()
    # As late as possible, to show more of the text.
    return first + int(open_choices[-1]) + 1 if len(open_choices) else T
