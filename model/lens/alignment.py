"""Which tokens of two texts correspond to each other, as in the page's ``compare/matching.mjs``."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

RELATED = 0.5  # of the longer text: where less is shared, the two are not versions of one text
MOST_CELLS = 4_500_000  # of the table of subsequences: two stretches of more than 2,048 tokens are taken to differ


class Stretch(NamedTuple):
    """``one`` tokens of one text and ``other`` tokens of another: the same ones, or where the texts differ."""

    same: bool
    one: int
    other: int


def align(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """Which position of one text corresponds to which of the other.

    Texts of equal length are aligned position by position. Otherwise the tokens of a longest common subsequence are
    aligned, and between them tokens that are replaced by as many others. In texts that have little in common, a stretch
    that is shorter than the differences on both of its sides is taken for a coincidence.
    """
    if len(one) == len(other):
        return [(position, position) for position in range(len(one))]
    start = _n_shared(one, other)
    stretches = common_stretches(one[start:], other[start:])
    rest = max(len(one), len(other)) - start
    if sum(stretch.one for stretch in stretches if stretch.same) <= RELATED * rest:
        stretches = without_coincidences(stretches)
    pairs, i, j = [(position, position) for position in range(start)], start, start
    for stretch in stretches:
        if stretch.one == stretch.other:
            pairs += [(i + k, j + k) for k in range(stretch.one)]
        i, j = i + stretch.one, j + stretch.other
    return pairs


def common_stretches(one: Sequence[int], other: Sequence[int]) -> list[Stretch]:
    """Two texts as stretches that differ and stretches that are the same, in turn, by a longest common subsequence."""
    tail = _n_shared(one[::-1], other[::-1])
    n, m = len(one) - tail, len(other) - tail
    stretches: list[Stretch] = []

    def add(same: bool, in_one: int, in_other: int) -> None:
        if stretches and stretches[-1].same == same:
            last = stretches.pop()
            in_one, in_other = in_one + last.one, in_other + last.other
        if in_one or in_other:
            stretches.append(Stretch(same, in_one, in_other))

    i = j = 0
    if (n + 1) * (m + 1) <= MOST_CELLS:
        lengths = subsequence_lengths(one[:n], other[:m])
        here, below = lengths[:2].tolist() if n else ([], [])
        while i < n and j < m:
            if one[i] == other[j]:
                add(True, 1, 1)
                i, j = i + 1, j + 1
            elif below[j] >= here[j + 1]:
                add(False, 1, 0)
                i += 1
            else:
                add(False, 0, 1)
                j += 1
                continue
            here, below = below, lengths[min(i + 1, n)].tolist()
    add(False, n - i, m - j)
    add(True, tail, tail)
    return stretches


def subsequence_lengths(one: Sequence[int], other: Sequence[int]) -> Tensor:
    """How long the longest common subsequence of ``one[i:]`` and ``other[j:]`` is, for every ``i`` and ``j``."""
    right = torch.tensor(other, dtype=torch.long)
    lengths = torch.zeros(len(one) + 1, len(other) + 1, dtype=torch.int32)
    for i in range(len(one) - 1, -1, -1):
        below = lengths[i + 1]
        best = torch.maximum(below[:-1], (below[1:] + 1) * (right == one[i]))
        lengths[i, :-1] = best.flip(0).cummax(0).values.flip(0) if other else best
    return lengths


def without_coincidences(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Without what is shorter than the differences on both of its sides: words that any two texts have in common."""
    kept: list[Stretch] = []
    for stretch in stretches:
        kept.append(stretch)
        while len(kept) > 2 and not kept[-1].same:
            before, common, after = kept[-3:]
            if common.one >= max(before[1:]) or common.one >= max(after[1:]):
                break
            merged = Stretch(False, before.one + common.one + after.one, before.other + common.other + after.other)
            kept[-3:] = [merged]
    return kept


def _n_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return n
