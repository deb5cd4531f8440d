"""How differently heads attend in two passes, compared with loops over single numbers and with whole rows."""

import pytest
import torch

from helpers.models import max_difference, prompt_ids, tiny_model
from model import InputError
from model.lens.alignment import Piece
from model.lens.difference import attention_difference, head_differences
from model.lens.text_pass import TextPass

IDS = prompt_ids(12)


def singles(n: int, diverges_at: int | None = None) -> list[Piece]:
    return [Piece(i, i + 1, i, i + 1, diverges_at is None or i < diverges_at) for i in range(n)]


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
        (singles(9, diverges_at=4), 4),
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
def test_invalid_pieces_are_refused(pieces: list[Piece]) -> None:
    loaded = tiny_model()
    read = TextPass(loaded.gpt, range(1, 10))
    with pytest.raises(ValueError, match="pieces must"):
        head_differences(read, read, pieces)


def test_differences_of_texts_of_equal_length() -> None:
    tiny = tiny_model(n_layer=3, n_embd=24, n_head=4)
    other = [*IDS[:5], 1, 2, *IDS[7:]]
    fractions: list[float] = []
    found = attention_difference(TextPass(tiny.gpt, IDS), TextPass(tiny.gpt, other), progress=fractions.append)
    moved = tiny.trace(IDS).attention - tiny.trace(other).attention
    replaced = moved[..., 5:7].sum(-1).abs()  # the two tokens that differ are counted as one key
    rows = (moved.abs().sum(-1) - moved[..., 5:7].abs().sum(-1) + replaced) / 2
    assert found.pairs == [(i, i) for i in range(1, 12)]  # the first query has a single key
    assert max_difference(found.heads, rows[..., 1:].mean(-1)) < 1e-5
    assert torch.equal(found.most, rows[..., 1:].argmax(-1))
    ordered = [float(found.heads[place]) for place in found.largest()]
    assert ordered == sorted(ordered, reverse=True) and len(ordered) == 12
    assert fractions == pytest.approx([1 / 3, 2 / 3, 1])


def test_texts_that_differ_in_several_places() -> None:
    tiny = tiny_model(n_layer=3, n_embd=24, n_head=4)
    longer = [*IDS[:2], 60, *IDS[3:6], 61, 62, *IDS[6:9], *IDS[10:]]  # one swapped, two put in, one left out
    found = attention_difference(TextPass(tiny.gpt, IDS), TextPass(tiny.gpt, longer))
    pairs = [*((i, i) for i in range(6)), *((i, i + 2) for i in range(6, 9)), *((i, i + 1) for i in range(10, 12))]
    assert found.pairs == pairs[1:]
    one, other = tiny.trace(IDS).attention, tiny.trace(longer).attention
    same = [(i, j) for i, j in pairs if i != 2]
    expected = torch.zeros(3, 4)
    for i, j in pairs[1:]:
        shared_one, shared_other = one[..., i, [a for a, _ in same]], other[..., j, [b for _, b in same]]
        rest = (shared_one.sum(-1) - shared_other.sum(-1)).abs()  # of weights that sum to 1
        expected += ((shared_one - shared_other).abs().sum(-1) + rest) / 2 / len(pairs[1:])
    assert max_difference(found.heads, expected) < 1e-5


def test_texts_that_share_a_beginning_and_an_end() -> None:
    tiny = tiny_model(n_layer=3, n_embd=24, n_head=4)
    longer = [*IDS[:4], 60, 61, 62, *IDS[5:]]  # one token became three
    found = attention_difference(TextPass(tiny.gpt, IDS), TextPass(tiny.gpt, longer))
    pairs = [(i, i) for i in range(4)] + [(i, i + 2) for i in range(5, 12)]
    assert found.pairs == pairs[1:]
    one, other = tiny.trace(IDS).attention, tiny.trace(longer).attention
    expected = torch.zeros(3, 4)
    for i, j in found.pairs:
        keys = [(one[..., i, a] - other[..., j, b]).abs() for a, b in pairs]
        rest = (one[..., i, 4] - other[..., j, 4:7].sum(-1)).abs()
        expected += (sum(keys) + rest) / 2 / len(found.pairs)
    assert max_difference(found.heads, expected) < 1e-5


def test_two_models_and_the_same_one_twice() -> None:
    one, other = (tiny_model(seed, n_layer=3, n_embd=24, n_head=4) for seed in (0, 1))
    found = attention_difference(TextPass(one.gpt, IDS), TextPass(other.gpt, IDS))
    assert 0.1 < float(found.heads.min()) and float(found.heads.max()) <= 1
    assert attention_difference(TextPass(one.gpt, IDS), TextPass(one.gpt, IDS)).heads.abs().max() == 0


def test_incomparable_texts_are_refused() -> None:
    tiny, other = tiny_model(), tiny_model(n_layer=3)
    with pytest.raises(InputError, match="found 2 layers of 2 heads and 3 layers of 2 heads"):
        attention_difference(TextPass(tiny.gpt, IDS), TextPass(other.gpt, IDS))
    with pytest.raises(InputError, match="share no tokens"):
        attention_difference(TextPass(tiny.gpt, [1, 2]), TextPass(tiny.gpt, [3, 4, 5]))
    with pytest.raises(InputError, match="share no tokens"):
        attention_difference(TextPass(tiny.gpt, [1, 2]), TextPass(tiny.gpt, [3, 4]))
    with pytest.raises(InputError, match="Only the first tokens correspond"):
        attention_difference(TextPass(tiny.gpt, [1]), TextPass(tiny.gpt, [1]))
