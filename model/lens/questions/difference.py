"""Two at once: how differently each head attends in two texts, in two checkpoints, or at two training steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import InputError
from ..difference import Piece, row_distances
from .progress import Progress, ignore
from .text_pass import TextPass


@dataclass(frozen=True)
class AttentionDifference:
    """How differently each head attends in two passes.

    ``pairs`` lists the aligned positions, ``(position in one, position in the other)``. ``heads`` ``(n_layer, n_head)``
    is the mean over the aligned queries of the attention weight that would have to move from some keys to others: 0 is
    the same attention, 1 is attention to entirely different tokens. ``most`` ``(n_layer, n_head)`` is the index in
    ``pairs`` of the query that differs most.
    """

    pairs: list[tuple[int, int]]
    heads: Tensor
    most: Tensor

    def largest(self) -> list[tuple[int, int]]:
        """All heads as ``(layer, head)``, the most different first."""
        order = self.heads.flatten().argsort(dim=0, descending=True, stable=True).tolist()
        return [divmod(index, self.heads.shape[1]) for index in order]


@torch.inference_mode()
def attention_difference(one: TextPass, other: TextPass, *, progress: Progress = ignore) -> AttentionDifference:
    """Compare every head's attention weights in two passes, by the same or another model of the same shape.

    The distance of two rows of attention weights is that of ``row_distances``. Raises ``InputError`` if the models have
    different numbers of layers or heads, or if the texts have no token at their beginning or end in common.
    """
    shapes = [(text.config.n_layer, text.config.n_head) for text in (one, other)]
    if shapes[0] != shapes[1]:
        found = " and ".join(f"{n_layer} layers of {n_head} heads" for n_layer, n_head in shapes)
        raise InputError("other", f"Only models with the same layers and heads can be compared, found {found}.")
    pairs = align(one.ids, other.ids)
    if not pairs:
        raise InputError("other", "The two texts share no tokens at their beginning or end that could be compared.")
    n_layer, n_head = shapes[0]
    heads, most = torch.empty(n_layer, n_head), torch.empty(n_layer, n_head, dtype=torch.long)
    pieces = [Piece(i, i + 1, j, j + 1, same=True) for i, j in pairs]
    for layer in range(n_layer):
        distances = row_distances(one.attention(layer).cpu(), other.attention(layer).cpu(), pieces)
        heads[layer], most[layer] = distances.mean(-1), distances.argmax(-1)
        progress((layer + 1) / n_layer)
    return AttentionDifference(pairs, heads, most)


def align(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """Which position of one text corresponds to which of the other.

    Texts of equal length are aligned position by position. Otherwise the tokens that both begin with are aligned, and
    those that both end with; what differs between has no counterpart.
    """
    if len(one) == len(other):
        return [(position, position) for position in range(len(one))]
    shorter = min(len(one), len(other))
    start = _n_shared(one, other)
    end = min(_n_shared(one[::-1], other[::-1]), shorter - start)
    return [(i, i) for i in range(start)] + [(len(one) - i, len(other) - i) for i in range(end, 0, -1)]


def _n_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return n
