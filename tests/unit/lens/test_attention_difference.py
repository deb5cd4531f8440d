"""Two passes compared row by row, and a map of heads against NumPy's own decomposition."""

import numpy as np
import pytest
import torch

from helpers.models import max_difference, prompt_ids, tiny_model
from model import InputError
from model.lens.difference import attention_difference
from model.lens.passages import head_map
from model.lens.text_pass import TextPass

IDS = prompt_ids(12)


def test_texts_of_one_length() -> None:
    tiny = tiny_model(n_layer=3, n_embd=24, n_head=4)
    other = [*IDS[:5], 1, 2, *IDS[7:]]
    fractions: list[float] = []
    found = attention_difference(TextPass(tiny.gpt, IDS), TextPass(tiny.gpt, other), progress=fractions.append)
    moved = tiny.trace(IDS).attention - tiny.trace(other).attention
    replaced = moved[..., 5:7].sum(-1).abs()  # the two tokens that differ are counted as one key
    rows = (moved.abs().sum(-1) - moved[..., 5:7].abs().sum(-1) + replaced) / 2
    assert found.pairs == [(i, i) for i in range(12)]
    assert max_difference(found.heads, rows.mean(-1)) < 1e-5
    assert torch.equal(found.most, rows.argmax(-1))
    ordered = [float(found.heads[place]) for place in found.largest()]
    assert ordered == sorted(ordered, reverse=True) and len(ordered) == 12
    assert fractions == pytest.approx([1 / 3, 2 / 3, 1])


def test_texts_that_differ_in_several_places() -> None:
    tiny = tiny_model(n_layer=3, n_embd=24, n_head=4)
    longer = [*IDS[:2], 60, *IDS[3:6], 61, 62, *IDS[6:9], *IDS[10:]]  # one swapped, two put in, one left out
    found = attention_difference(TextPass(tiny.gpt, IDS), TextPass(tiny.gpt, longer))
    pairs = [*((i, i) for i in range(6)), *((i, i + 2) for i in range(6, 9)), *((i, i + 1) for i in range(10, 12))]
    assert found.pairs == pairs
    one, other = tiny.trace(IDS).attention, tiny.trace(longer).attention
    same = [(i, j) for i, j in pairs if i != 2]
    expected = torch.zeros(3, 4)
    for i, j in pairs:
        shared_one, shared_other = one[..., i, [a for a, _ in same]], other[..., j, [b for _, b in same]]
        rest = (shared_one.sum(-1) - shared_other.sum(-1)).abs()  # of weights that sum to 1
        expected += ((shared_one - shared_other).abs().sum(-1) + rest) / 2 / len(pairs)
    assert max_difference(found.heads, expected) < 1e-5


def test_texts_that_share_a_beginning_and_an_end() -> None:
    tiny = tiny_model(n_layer=3, n_embd=24, n_head=4)
    longer = [*IDS[:4], 60, 61, 62, *IDS[5:]]  # one token became three
    found = attention_difference(TextPass(tiny.gpt, IDS), TextPass(tiny.gpt, longer))
    assert found.pairs == [(i, i) for i in range(4)] + [(i, i + 2) for i in range(5, 12)]
    one, other = tiny.trace(IDS).attention, tiny.trace(longer).attention
    expected = torch.zeros(3, 4)
    for i, j in found.pairs:
        keys = [(one[..., i, a] - other[..., j, b]).abs() for a, b in found.pairs]
        rest = (one[..., i, 4] - other[..., j, 4:7].sum(-1)).abs()
        expected += (sum(keys) + rest) / 2 / len(found.pairs)
    assert max_difference(found.heads, expected) < 1e-5


def test_two_models_and_the_same_one_twice() -> None:
    one, other = (tiny_model(seed, n_layer=3, n_embd=24, n_head=4) for seed in (0, 1))
    found = attention_difference(TextPass(one.gpt, IDS), TextPass(other.gpt, IDS))
    assert 0.1 < float(found.heads.min()) and float(found.heads.max()) <= 1
    assert attention_difference(TextPass(one.gpt, IDS), TextPass(one.gpt, IDS)).heads.abs().max() == 0


def test_what_cannot_be_compared() -> None:
    tiny, other = tiny_model(), tiny_model(n_layer=3)
    with pytest.raises(InputError, match="found 2 layers of 2 heads and 3 layers of 2 heads"):
        attention_difference(TextPass(tiny.gpt, IDS), TextPass(other.gpt, IDS))
    with pytest.raises(InputError, match="share no tokens"):
        attention_difference(TextPass(tiny.gpt, [1, 2]), TextPass(tiny.gpt, [3, 4, 5]))
    with pytest.raises(InputError, match="share no tokens"):
        attention_difference(TextPass(tiny.gpt, [1, 2]), TextPass(tiny.gpt, [3, 4]))


def test_a_map_is_the_principal_components() -> None:
    features = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 9, 0.1, 3, 1, 0])
    found = head_map(features)
    rows = features.double().reshape(12, 6).numpy()
    rows = (rows - rows.mean(0)) / np.where(rows.std(0) > 0, rows.std(0), 1)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    assert found.explained.tolist() == pytest.approx((values[::-1] / values.sum())[:2].tolist(), abs=1e-5)
    for axis, (points, loadings) in enumerate(zip(found.points.reshape(12, 2).T, found.axes, strict=True)):
        expected = vectors[:, -1 - axis] * np.sign(np.dot(vectors[:, -1 - axis], loadings.double().numpy()))
        assert loadings.tolist() == pytest.approx(expected.tolist(), abs=1e-5)
        assert points.tolist() == pytest.approx((rows @ expected).tolist(), abs=1e-4)
        assert loadings[loadings.abs().argmax()] > 0


def test_heads_that_are_all_alike_are_one_point() -> None:
    assert head_map(torch.ones(2, 3, 4)).points.abs().max() == 0
    assert head_map(torch.rand(1, 1, 4)).points.abs().max() == 0
    alike = torch.rand(2, 3, 1, generator=torch.Generator().manual_seed(1))
    assert head_map(alike).points[..., 1].abs().max() == 0  # one feature makes a line
    assert head_map(alike).explained.tolist() == [1, 0]
