"""Two at once: how differently each head attends in two texts, in two checkpoints, or at two training steps."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import InputError
from ..difference import Piece, row_distances
from .alignment import align
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

    The distance of two rows of attention weights is that of ``row_distances``; equal tokens at corresponding positions
    are keys of their own, all others are counted as one. Raises ``InputError`` if the models have different numbers of
    layers or heads, or if no token of one text corresponds to an equal one of the other.
    """
    shapes = [(text.config.n_layer, text.config.n_head) for text in (one, other)]
    if shapes[0] != shapes[1]:
        found = " and ".join(f"{n_layer} layers of {n_head} heads" for n_layer, n_head in shapes)
        raise InputError("other", f"Only models with the same layers and heads can be compared, found {found}.")
    pairs = align(one.ids, other.ids)
    pieces = [Piece(i, i + 1, j, j + 1, same=one.ids[i] == other.ids[j]) for i, j in pairs]
    if not any(piece.same for piece in pieces):
        raise InputError("other", "The two texts share no tokens that could be compared.")
    n_layer, n_head = shapes[0]
    heads, most = torch.empty(n_layer, n_head), torch.empty(n_layer, n_head, dtype=torch.long)
    for layer in range(n_layer):
        distances = row_distances(one.attention(layer).cpu(), other.attention(layer).cpu(), pieces)
        heads[layer], most[layer] = distances.mean(-1), distances.argmax(-1)
        progress((layer + 1) / n_layer)
    return AttentionDifference(pairs, heads, most)
