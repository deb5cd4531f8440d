"""Rungs 4 and 5 of the ladder: averages of the tokens, first with equal weights, then with the text's own.

The names are offered by :mod:`model.ladder` too, where the whole ladder is listed. Inputs are token vectors `(T, C)` or
`(B, T, C)`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

# ---- Rung 4: the average of the past, three ways ---------------------------------------------------------------------


def average_by_loop(x: Tensor) -> Tensor:
    """Row ``t`` of the result is the mean of rows ``0..t`` of ``x``: the plainest way to hear from the past."""
    return torch.stack([x[..., : t + 1, :].mean(dim=-2) for t in range(x.shape[-2])], dim=-2)


def average_by_matrix(x: Tensor) -> Tensor:
    """The same as one product: row ``t`` of a lower-triangular ``(T, T)`` matrix holds ``1 / (t + 1)`` up to ``t``."""
    weights = x.new_ones(x.shape[-2], x.shape[-2]).tril()
    return weights / weights.sum(dim=1, keepdim=True) @ x


def average_by_softmax(x: Tensor) -> Tensor:
    """The same as a softmax of equal scores with the future masked.

    Put scores that depend on the tokens in place of the zeros, and this is causal attention.
    """
    attn_scores = x.new_zeros(x.shape[-2], x.shape[-2])
    return torch.softmax(mask_future(attn_scores), dim=-1) @ x


def mask_future(attn_scores: Tensor) -> Tensor:
    """``attn_scores`` ``(..., T, T)`` with minus infinity, whose exp is 0, where the key comes after the query.

    Raises ``ValueError`` unless there are as many keys as queries.
    """
    if attn_scores.ndim < 2 or attn_scores.shape[-1] != attn_scores.shape[-2]:
        raise ValueError(f"attention scores of a text with itself are (..., T, T), found {tuple(attn_scores.shape)}")
    future = torch.ones_like(attn_scores, dtype=torch.bool).triu(diagonal=1)
    return attn_scores.masked_fill(future, -torch.inf)


# ---- Rung 5: self-attention without weights --------------------------------------------------------------------------

# "Your journey starts with one step": three made-up numbers per word, small enough to follow by hand.
JOURNEY = {
    "Your": (0.43, 0.15, 0.89),
    "journey": (0.55, 0.87, 0.66),
    "starts": (0.57, 0.85, 0.64),
    "with": (0.22, 0.58, 0.33),
    "one": (0.77, 0.25, 0.10),
    "step": (0.05, 0.80, 0.55),
}


class Attention(NamedTuple):
    """Every stage of attention: scores and weights ``(..., T, T)`` as [query][key], context vectors ``(..., T, C)``."""

    scores: Tensor
    weights: Tensor
    context: Tensor


def sum_normalise(attn_scores: Tensor) -> Tensor:
    """Divide by the sum: weights that add up to 1, but only for positive scores are they a sensible share."""
    return attn_scores / attn_scores.sum(dim=-1, keepdim=True)


def naive_softmax(attn_scores: Tensor) -> Tensor:
    """``exp(s) / sum exp(s)``: positive for every score, and NaN above about 88, where exp overflows float32."""
    return attn_scores.exp() / attn_scores.exp().sum(dim=-1, keepdim=True)


def stable_softmax(attn_scores: Tensor) -> Tensor:
    """Softmax after taking the largest score from all: the same weights, since the common factor cancels, for any size.

    Each row needs one finite score.
    """
    return naive_softmax(attn_scores - attn_scores.amax(dim=-1, keepdim=True))


def attention_without_weights(x: Tensor) -> Attention:
    """Each token is query, key and value at once: similar vectors, by dot product, attend to each other most."""
    attn_scores = x @ x.mT
    attn_weights = stable_softmax(attn_scores)
    return Attention(attn_scores, attn_weights, attn_weights @ x)
