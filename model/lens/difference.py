"""How differently two readings attend, head by head: two models, two sets of weights, or heads removed from one."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .residuals import Residuals


class Piece(NamedTuple):
    """Tokens ``a_start`` to ``a_stop - 1`` of one text that belong to tokens ``b_start`` to ``b_stop - 1`` of another.

    With one tokenizer each piece is one token. With two it is the least text that ends where both have a token's end.
    ``same`` says that both have the same text there, so that a weight on it can be compared.
    """

    a_start: int
    a_stop: int
    b_start: int
    b_stop: int
    same: bool


def head_differences(a: Residuals, b: Residuals, pieces: Sequence[Piece], first: int = 0) -> Tensor:
    """How differently each head attends: ``(n_layer, n_head)``, of the layers and heads that both models have.

    For the last token of each piece from ``first`` on: half the sum over the pieces that are the same of the absolute
    difference of the weights on them, which is the total variation distance where all of them are the same; the mean
    over those tokens, from 0 to 1. Raises ``ValueError`` for pieces that do not fit the texts.
    """
    check_pieces(pieces, len(a.ids), len(b.ids))
    n_layer = min(a.gpt.config.n_layer, b.gpt.config.n_layer)
    n_head = min(a.gpt.config.n_head, b.gpt.config.n_head)
    same = torch.tensor([piece.same for piece in pieces])
    spans_a = [(piece.a_start, piece.a_stop) for piece in pieces]
    spans_b = [(piece.b_start, piece.b_stop) for piece in pieces]
    found = torch.zeros(n_layer, n_head)
    if first >= len(pieces):
        return found
    for layer in range(n_layer):
        weights_a = pooled(a.attention(layer)[:n_head], spans_a)
        weights_b = pooled(b.attention(layer)[:n_head], spans_b)
        found[layer] = ((weights_b - weights_a).abs() * same)[:, first:].sum(-1).mean(-1) / 2
    return found


def pooled(attention: Tensor, spans: Sequence[tuple[int, int]]) -> Tensor:
    """What the last token of each span gives to all of each span: ``(n_head, T, T)`` to ``(n_head, spans, spans)``."""
    rows = attention[:, [stop - 1 for _, stop in spans]]
    columns = torch.tensor([i for i, (start, stop) in enumerate(spans) for _ in range(start, stop)])
    first, last = spans[0][0], spans[-1][1]
    return torch.zeros(*rows.shape[:2], len(spans)).index_add_(2, columns, rows[..., first:last])


def check_pieces(pieces: Sequence[Piece], n_a: int, n_b: int) -> None:
    """Raise ``ValueError`` unless the pieces follow one another from the beginning of both texts."""
    ends = (0, 0)
    for piece in pieces:
        if (piece.a_start, piece.b_start) != ends or piece.a_stop <= piece.a_start or piece.b_stop <= piece.b_start:
            raise ValueError(f"pieces must follow one another from the first token on, found {tuple(piece)}")
        ends = piece.a_stop, piece.b_stop
    if not pieces or ends[0] > n_a or ends[1] > n_b:
        raise ValueError(f"pieces must be within the texts of {n_a} and {n_b} tokens, found an end at {ends}")
