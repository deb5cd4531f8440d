"""How differently heads attend in two passes, compared with loops over single numbers."""

import pytest
import torch

from helpers.models import tiny_model
from model.lens.alignment import Piece
from model.lens.difference import head_differences
from model.lens.text_pass import TextPass


def singles(n: int, parted: int | None = None) -> list[Piece]:
    return [Piece(i, i + 1, i, i + 1, parted is None or i < parted) for i in range(n)]


def by_hand(a: torch.Tensor, b: torch.Tensor, pieces: list[Piece], first: int) -> float:
    """The difference of two heads ``(T, T)``, computed number by number."""
    distances = []
    for row in pieces[first:]:
        total, shared_a, shared_b = 0.0, 0.0, 0.0
        for key in pieces:
            if key.same:
                weight_a = sum(float(a[row.a_stop - 1, i]) for i in range(key.a_start, key.a_stop))
                weight_b = sum(float(b[row.b_stop - 1, i]) for i in range(key.b_start, key.b_stop))
                total, shared_a, shared_b = total + abs(weight_b - weight_a), shared_a + weight_a, shared_b + weight_b
        total += abs(float(a[row.a_stop - 1].sum()) - shared_a - (float(b[row.b_stop - 1].sum()) - shared_b))
        distances.append(total / 2)
    return sum(distances) / len(distances)


@pytest.mark.parametrize(
    ("pieces", "first"),
    [
        (singles(9), 0),
        (singles(9, parted=4), 4),
        # Two tokens of one text correspond to one of the other, and vice versa.
        ([Piece(0, 2, 0, 1, True), Piece(2, 3, 1, 4, True), Piece(3, 4, 4, 5, True), Piece(4, 6, 5, 6, False)], 0),
        # Some tokens have no counterpart.
        ([Piece(1, 2, 0, 1, True), Piece(2, 3, 3, 4, True), Piece(5, 6, 4, 5, False), Piece(7, 8, 8, 9, True)], 1),
    ],
)
def test_differences_are_sums_of_single_weights(pieces: list[Piece], first: int) -> None:
    one, other = tiny_model(0, n_layer=3, n_head=2, n_embd=16), tiny_model(1, n_layer=2, n_head=4, n_embd=16)
    a, b = list(range(1, 10)), [1, 2, 3, 4, 15, 16, 17, 18, 19]
    found = head_differences(TextPass(one.gpt, a), TextPass(other.gpt, b), pieces, first)
    assert found.shape == (2, 2)  # the layers and heads that both models have
    attention = one.trace(a).attention, other.trace(b).attention
    for layer in range(2):
        for head in range(2):
            expected = by_hand(attention[0][layer, head], attention[1][layer, head], pieces, first)
            assert float(found[layer, head]) == pytest.approx(expected, abs=1e-6)
            assert 0 <= expected <= 1


def test_no_difference_without_a_cause() -> None:
    loaded = tiny_model(n_layer=2, n_head=2, n_embd=16)
    read = TextPass(loaded.gpt, range(1, 9))
    assert float(head_differences(read, read, singles(8)).max()) == 0
    # A muted head changes only what comes after its layer.
    muted = TextPass(loaded.gpt, range(1, 9), torch.tensor([[0.0, 1.0], [1.0, 1.0]]))
    found = head_differences(read, muted, singles(8))
    assert float(found[0].max()) == 0 and float(found[1].min()) > 0
    assert float(head_differences(read, muted, singles(8), first=8).max()) == 0  # no token is left


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [Piece(0, 2, 0, 1, True), Piece(1, 3, 1, 2, True)],
        [Piece(0, 1, 0, 2, True), Piece(1, 2, 1, 3, True)],
        [Piece(0, 0, 0, 1, True)],
        singles(10),
    ],
)
def test_pieces_that_do_not_fit(pieces: list[Piece]) -> None:
    loaded = tiny_model()
    read = TextPass(loaded.gpt, range(1, 10))
    with pytest.raises(ValueError, match="pieces must"):
        head_differences(read, read, pieces)
