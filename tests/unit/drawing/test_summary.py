"""Summaries by compiled loops, compared with those by torch."""

import numpy as np
import pytest
import torch

from model.drawing.summary import Summary, compile_summaries
from model.kernels.summaries import log2


def summaries(capacity: int, blocks: list[torch.Tensor], *, is_square: bool) -> Summary:
    summary, first = Summary(len(blocks[0]), capacity, is_square=is_square), 0
    for block in blocks:
        summary.add(slice(None), first, block)
        first += block.shape[1]
    return summary


@pytest.mark.parametrize("sizes", [(1,), (3, 1, 20, 9), (66, 64, 3, 7), (300,)])
@pytest.mark.parametrize("is_square", [False, True])
def test_loops_compute_what_torch_does(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], is_square: bool
) -> None:
    if is_square:
        sizes = (sum(sizes),)  # all rows are added at once
    blocks, S = [], 0
    for n in sizes:
        S += n
        weights = torch.rand(5, n, S, generator=torch.Generator().manual_seed(S)) ** 8
        weights[0] = torch.nan  # a rollout that was not computed
        weights[1, :, 0] = 1  # a sink beside small numbers
        weights = weights if is_square else weights.tril(S - n)
        blocks.append(weights / weights.sum(-1, keepdim=True))
    monkeypatch.setattr(Summary, "summarise", None)
    expected = summaries(S, blocks, is_square=is_square)
    compile_summaries()
    found = summaries(S, blocks, is_square=is_square)
    assert torch.equal(found.thumbnails.cells, expected.thumbnails.cells)
    torch.testing.assert_close(found.sums, expected.sums, atol=1e-4, rtol=2e-5, equal_nan=True)


def test_the_logarithm() -> None:
    numbers = np.exp(np.linspace(-87, 0, 10_001, dtype=np.float32))
    found = np.array([log2(number) for number in numbers])
    assert np.abs(found - np.log2(numbers.astype(np.float64))).max() < 1e-5
    assert np.abs(found - np.log2(numbers.astype(np.float64)))[numbers > 0.5].max() < 1e-6
    assert log2(np.float32(1)) == 0 and 0 * log2(np.float32(0)) == 0
