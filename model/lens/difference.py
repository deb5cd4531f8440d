"""How differently two readings attend, head by head: two models, two sets of weights, or heads removed from one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import torch
from torch import Tensor

from ..drawing.heat_map import Part, shown_token
from ..errors import InputError
from ..modules.head_tensors import Head
from ..tokenizer import Token, text_tokens
from .alignment import Piece, TokenizedText, align, align_tokenized, check_same_tokens
from .answer import Answer, PerHead, Shape, sent
from .lens import HasLens, Lens
from .progress import Progress, ignore
from .question import Reads
from .text_pass import Text, TextPass


def head_differences(a: TextPass, b: TextPass, pieces: Sequence[Piece], first: int = 0) -> Tensor:
    """How differently each head attends: ``(n_layer, n_head)``, for the layers and heads that both models have.

    The mean of ``row_distances`` over the pieces from ``first`` on, from 0 to 1. Raises ``InputError`` if the pieces do
    not fit the texts.
    """
    check_pieces(pieces, len(a.ids), len(b.ids))
    if first >= len(pieces):
        return torch.zeros(min(a.config.n_layer, b.config.n_layer), min(a.config.n_head, b.config.n_head))
    return torch.stack([distances[:, first:].mean(-1) for distances in layer_distances(a, b, pieces)])


@dataclass(frozen=True)
class AttentionDifference(Answer):
    """The mean total variation distance of each head's attention weights, and all heads, the most different first.

    Each query is the last token of a piece of text that is the same or differs (``alignment.Piece``). A distance is the
    attention weight that would have to move from some keys to others: 0 is the same attention, 1 is attention to
    entirely different tokens.
    """

    pairs: Annotated[
        list[tuple[int, int]],
        "The queries that are compared, by position in the text and in the other text. The pair of first tokens is "
        "left out: each has a single key, so they never differ.",
    ]
    heads: Annotated[
        PerHead,
        "The mean total variation distance of the rows of attention weights, 0 to 1. Equal tokens at corresponding "
        "positions are separate keys; all other tokens of a text are pooled into one key.",
    ]
    most: Annotated[
        Tensor,
        Shape(("n_layer", "n_head"), whole=True),
        "`[layer][head]`: the index in `pairs` of the query that differs most.",
    ]
    other_model: str = ""
    other_tokens: list[Token] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return f"The most different head is {self.peak(self.heads)} of the attention weight would have to move."

    def drawn(self) -> Iterator[Part]:
        yield Part("heads", self.heads, ("n_layer", "n_head"), "The total variation distance, 0 to 1.")
        at = [[self.pairs[index][0] for index in row] for row in self.most.tolist()]
        texts = [[f"{shown_token(self.texts[i]) if self.texts else ''} ({i})" for i in row] for row in at]
        yield Part("most", texts, ("n_layer", "n_head"), "The query that differs most, with its position.")

    @sent
    def largest(self) -> list[Head]:
        """All heads as ``[layer, head]``, the most different first."""
        order = self.heads.flatten().argsort(dim=0, descending=True, stable=True).tolist()
        return [divmod(index, self.heads.shape[1]) for index in order]


def difference(
    lens: Lens,
    text: Text,
    other: Annotated[Text | None, Reads.OTHER_TEXT, "Another text; the same one by default."] = None,
    other_model: Annotated[
        HasLens | None,
        Reads.MODEL,
        "Another model with as many layers and heads, or a training step (NAME@STEP); the same one by default.",
    ] = None,
    *,
    progress: Progress = ignore,
) -> AttentionDifference:
    """How differently each head attends in two texts, two models or two training steps.

    By default both models, or both training steps, read the same text; ``other_model`` reads the second one with its
    own vocabulary. A text without another one must be a string if its token ids are other tokens there.
    """
    second = lens if other_model is None else other_model.lens
    read = lens.read(text)
    if other is None and not isinstance(text, str):
        check_same_tokens(lens.tokenizer, second.tokenizer, read.ids, "text")
    compared = second.read(text if other is None else other)
    one, two = TokenizedText(read.ids, lens.tokenizer), TokenizedText(compared.ids, second.tokenizer)
    pieces = align_tokenized(one, two).pieces
    answer = attention_difference(read, compared, pieces=pieces, progress=progress)
    other_tokens = text_tokens(second.tokenizer, compared.ids)
    return replace(answer, text_ids=tuple(read.ids), other_model=second.name, other_tokens=other_tokens)


@torch.no_grad()
def attention_difference(
    one: TextPass, other: TextPass, *, pieces: Sequence[Piece] | None = None, progress: Progress = ignore
) -> AttentionDifference:
    """Compare every head's attention weights in two passes, by the same or another model of the same shape.

    ``pieces`` says which tokens correspond; without it the ids must be those of one vocabulary, and are aligned.
    Rows of attention weights are compared by ``row_distances``: equal tokens at corresponding positions are separate
    keys, and all others count as one key, so weight that moves among those others does not count. Raises
    ``InputError`` if the models have different numbers of layers or heads, or if no token of one text corresponds to an
    equal one of the other, or none but the first tokens correspond.
    """
    shapes = [(text.config.n_layer, text.config.n_head) for text in (one, other)]
    if shapes[0] != shapes[1]:
        sizes = " and ".join(f"{n_layer} layers of {n_head} heads" for n_layer, n_head in shapes)
        raise InputError("other", f"Only models with the same layers and heads can be compared, found {sizes}.")
    pieces = align(one.ids, other.ids).pieces if pieces is None else pieces
    pairs = [(piece.a_stop - 1, piece.b_stop - 1) for piece in pieces]  # the tokens that have read all of each piece
    if not any(piece.same for piece in pieces):
        raise InputError("other", "The two texts share no tokens, so there is nothing to compare.")
    n_first = int(pairs[0] == (0, 0))  # the queries that have a single key in both texts
    if n_first == len(pairs):
        raise InputError("other", "Only the first tokens correspond, and each of them has a single key.")
    heads, most = [], []
    for distances in (each[:, n_first:] for each in layer_distances(one, other, pieces)):
        heads.append(distances.mean(-1))
        most.append(distances.argmax(-1))
        progress(len(heads) / one.config.n_layer)
    return AttentionDifference(pairs[n_first:], torch.stack(heads), torch.stack(most))


def layer_distances(a: TextPass, b: TextPass, pieces: Sequence[Piece]) -> Iterator[Tensor]:
    """``row_distances`` ``(n_head, pieces)`` for each layer, of the layers and heads that both models have."""
    n_head = min(a.config.n_head, b.config.n_head)
    for layer in range(min(a.config.n_layer, b.config.n_layer)):
        yield row_distances(a.attention(layer)[:n_head], b.attention(layer)[:n_head], pieces)


def row_distances(a: Tensor, b: Tensor, pieces: Sequence[Piece]) -> Tensor:
    """The distance between two rows of attention weights for the last token of each piece: ``(n_head, pieces)``.

    ``a`` and ``b`` are ``(n_head, T, T)``. It is the total variation distance, half the sum of the absolute
    differences: 0 is the same attention, 1 is attention to entirely different tokens. The weights on a piece are added
    up, and all tokens without a counterpart, those outside the pieces and those in pieces that are not the same, are
    counted as one key.
    """
    pooled_a = pooled(a, [(piece.a_start, piece.a_stop) for piece in pieces], [piece.same for piece in pieces])
    pooled_b = pooled(b, [(piece.b_start, piece.b_stop) for piece in pieces], [piece.same for piece in pieces])
    return (pooled_a - pooled_b).abs().sum(-1) / 2


def pooled(attention: Tensor, spans: Sequence[tuple[int, int]], counts: Sequence[bool]) -> Tensor:
    """The attention that the last token of each span gives to each span that counts, and to everything else.

    ``(n_head, T, T)`` becomes ``(n_head, spans, spans + 1)``.
    """
    rows = attention[:, [stop - 1 for _, stop in spans]]
    columns = torch.full((attention.shape[-1],), len(spans))
    for i, ((start, stop), does_count) in enumerate(zip(spans, counts, strict=True)):
        if does_count:
            columns[start:stop] = i
    return rows.new_zeros(*rows.shape[:2], len(spans) + 1).index_add_(2, columns.to(rows.device), rows)


def check_pieces(pieces: Sequence[Piece], n_a: int, n_b: int) -> None:
    """Raise ``InputError`` unless the pieces follow one another in both texts, possibly with tokens between them."""
    ends = (0, 0)
    for piece in pieces:
        is_after = piece.a_start >= ends[0] and piece.b_start >= ends[1]
        if not is_after or piece.a_stop <= piece.a_start or piece.b_stop <= piece.b_start:
            message = f"pieces must follow one another in both texts, found {tuple(piece)} after {ends}"
            raise InputError("pieces", message)
        ends = piece.a_stop, piece.b_stop
    if not pieces or ends[0] > n_a or ends[1] > n_b:
        message = f"pieces must be within the texts of {n_a} and {n_b} tokens, found an end at {ends}"
        raise InputError("pieces", message)
