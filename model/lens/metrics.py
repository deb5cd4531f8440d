"""Numbers that sum up how a head looks at a text."""

import math

import torch
from torch import Tensor

METRICS = ("entropy", "distance", "first", "previous", "uniform")


def metric_sums(rows: Tensor, first: int) -> Tensor:
    """What each of ``METRICS`` is for the queries ``first``, ``first + 1``, ... summed: ``(heads, len(METRICS))``.

    ``rows`` ``(heads, n, S)`` holds their attention weights, zero beyond the query itself. For one query

    - entropy: of its weights, in bits;
    - distance: the mean number of tokens that it looks back;
    - first, previous: the weight on the first token, and on the one before it;
    - uniform: how far it is from looking everywhere alike, the total variation distance, 0 to 1.

    The first query does not count: it has nothing but itself to look at.
    """
    heads, n, S = rows.shape
    if first == 0:
        rows, first, n = rows[:, 1:], 1, n - 1
    if not n:
        return torch.zeros(heads, len(METRICS))
    queries = torch.arange(first, first + n)
    keys = torch.arange(S)
    back = queries[:, None] - keys
    even = (1 / (queries + 1))[:, None]
    away = (rows - even).abs_().masked_fill_(back < 0, 0).sum(-1) / 2
    previous = rows[:, torch.arange(n), queries - 1]
    entropy = torch.special.entr(rows).sum(-1) / math.log(2)
    parts = (entropy, (rows * back).sum(-1), rows[:, :, 0], previous, away)
    return torch.stack([part.sum(-1) for part in parts], -1)


def most_selective_head(attention: Tensor) -> tuple[int, int]:
    """The layer and head of ``(n_layer, n_head, T, T)`` whose queries look hardest at one earlier token.

    The first token does not count, as many heads rest there, nor does the query itself.
    """
    earlier = attention.tril(-1)[..., 1:, 1:]
    if earlier.shape[-1] < 2:
        return 0, 0
    sharpness = earlier.amax(-1).mean(-1)  # (n_layer, n_head)
    layer, head = divmod(int(sharpness.argmax()), attention.shape[1])
    return layer, head
