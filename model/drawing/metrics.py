"""Numbers that summarise how a head attends to a text."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ..modules.head_tensors import Head

METRICS = ("entropy", "distance", "first", "previous", "uniform")
DISTANCES = range(2, 7)  # distances in tokens at which weights are measured, besides the previous token
FURTHEST = DISTANCES[-1]
FRAME_MEASURES = (*METRICS, *(f"{n} back" for n in DISTANCES))
FIRST_QUERIES = torch.tensor([1] * len(METRICS) + list(DISTANCES))  # the first query that each of these is about


def metric_sums(rows: Tensor, first: int, *, is_square: bool = False) -> Tensor:
    """Each of ``METRICS`` summed over the queries ``first``, ``first + 1``, ...: ``(heads, len(METRICS))``.

    ``rows`` ``(heads, n, S)`` holds the queries' attention weights, zero for keys after the query. For each query:

    - entropy: the entropy of its weights, in bits;
    - distance: how many tokens back it looks, on average;
    - first, previous: the weight on the first token, and on the token before the query;
    - uniform: the total variation distance from uniform weights, from 0 to 1.

    The first query of the text is left out because it can only look at itself. With ``is_square`` a query can also look
    at later keys, at their absolute distance; the first query is still left out, as it has no token before it.
    """
    heads, n, S = rows.shape
    if first == 0:
        rows, first, n = rows[:, 1:], 1, n - 1
    if not n:
        return torch.zeros(heads, len(METRICS))
    queries = torch.arange(first, first + n)
    keys = torch.arange(S)
    distance = (queries[:, None] - keys).to(rows.dtype)
    if is_square:
        distance = distance.abs()
    uniform = (1 / (torch.full_like(queries, S) if is_square else queries + 1))[:, None]
    # Half the sum of the absolute differences: as both sum to 1, the sum of those that are positive.
    variation = torch.maximum(rows, uniform).sum(-1) - S * uniform[:, 0]
    previous = rows.diagonal(first - 1, 1, 2)
    metrics = (entropy_in_bits(rows), rows.flatten(1) @ distance.flatten(), rows[:, :, 0], previous, variation)
    return torch.stack([metric if metric.dim() == 1 else metric.sum(-1) for metric in metrics], -1)


def distance_sums(rows: Tensor, first: int) -> Tensor:
    """The weight on the token ``n`` before the query, for each ``n`` of ``DISTANCES``: ``(heads, len(DISTANCES))``.

    ``rows`` ``(heads, n, S)`` belong to the queries ``first``, ``first + 1``, ..., over which the weights are summed. A
    query with fewer than ``n`` tokens before it adds nothing.
    """
    if first < FURTHEST:
        rows, first = F.pad(rows, (FURTHEST - first, 0)), FURTHEST
    # Of each query, the weights from ``FURTHEST`` tokens before it on: one key further than those of the query before.
    heads, query, key = rows.stride()
    start = rows.storage_offset() + (first - FURTHEST) * key
    size = len(rows), rows.shape[1], len(DISTANCES)
    return rows.as_strided(size, (heads, query + key, key), start).sum(1).flip(-1)


def entropy_in_bits(rows: Tensor) -> Tensor:
    """The entropy of attention weights ``(..., S)``, which sum to 1: ``(...)``."""
    logs = rows.clamp_min(torch.finfo(rows.dtype).tiny).log2_()  # torch.special.entr takes several times as long
    return -logs.mul_(rows).sum(-1)


def most_selective_head(attention: Tensor) -> Head:
    """The layer and head of ``(n_layer, n_head, T, T)`` whose queries concentrate most on one earlier token.

    The first token, an attention sink for many heads, and the query itself do not count.
    """
    earlier = attention.tril(-1)[..., 1:, 1:]
    if earlier.shape[-1] < 2:
        return 0, 0
    sharpness = earlier.amax(-1).mean(-1)  # (n_layer, n_head)
    layer, head = divmod(int(sharpness.argmax()), attention.shape[1])
    return layer, head
