"""Whether a circuit has all heads that matter, and only these (Wang et al. 2023, section 4)."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch

from ...modules.head_tensors import Head
from ..progress import Progress
from .ablated_graph import Pairs

N_RANDOM = 8  # subsets besides the empty one


class Criteria(NamedTuple):
    incompleteness: float
    minimality: dict[Head, float]


def check_criteria(pairs: Pairs, circuit: Sequence[Head], progress: Progress) -> Criteria:
    """Both criteria for the heads of a circuit ``C`` in a model ``M``; ``F`` is the share of the effect that is kept.

    Incompleteness is the largest ``|F(C without K) - F(M without K)|`` over subsets ``K`` of the circuit. The
    minimality score of a head ``v`` is the largest ``|F(C without K and v) - F(C without K)|`` over those without
    ``v``. ``K`` is the empty set, or one of ``N_RANDOM`` subsets to which each head belongs with a chance of one half,
    the same in every call. Edges are not cut: all that the heads of the circuit write reaches all that follows.
    """
    everything = set(pairs.every_head())
    kept: dict[frozenset[Head], float] = {}

    def share(left: Collection[Head]) -> float:
        if (key := frozenset(left)) not in kept:
            kept[key] = pairs.without_heads(everything - key)
        return kept[key]

    heads, subsets = frozenset(circuit), subsets_of(circuit)
    incompleteness, minimality = 0.0, dict.fromkeys(circuit, 0.0)
    for done, subset in enumerate(subsets, start=1):
        rest = heads - subset
        incompleteness = max(incompleteness, abs(share(rest) - share(everything - subset)))
        for head in rest:
            minimality[head] = max(minimality[head], abs(share(rest - {head}) - share(rest)))
        progress(done / len(subsets))
    return Criteria(incompleteness, minimality)


def subsets_of(heads: Sequence[Head]) -> list[frozenset[Head]]:
    """The empty set, and random subsets."""
    chosen = torch.rand(N_RANDOM, len(heads), generator=torch.Generator().manual_seed(0)) < 0.5
    by_row = [frozenset(head for head, is_in in zip(heads, row, strict=True) if is_in) for row in chosen.tolist()]
    return list(dict.fromkeys([frozenset[Head](), *by_row]))
