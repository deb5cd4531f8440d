"""Whether a circuit has all nodes that matter, and only these (Wang et al. 2023, section 4)."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch

from ..progress import Progress
from .ablated_graph import Node, Pairs

N_RANDOM = 8  # subsets besides the empty one


class Criteria(NamedTuple):
    incompleteness: float
    minimality: dict[Node, float]


def check_criteria(pairs: Pairs, circuit: Sequence[Node], progress: Progress) -> Criteria:
    """Both criteria for the nodes of a circuit ``C`` in a model ``M``; ``F`` is the share of the effect that is kept.

    Incompleteness is the largest ``|F(C without K) - F(M without K)|`` over subsets ``K`` of the circuit. The
    minimality score of a node ``v`` is the largest ``|F(C without K and v) - F(C without K)|`` over those without
    ``v``. ``K`` is the empty set, or one of ``N_RANDOM`` subsets to which each node belongs with a chance of one half,
    the same in every call. Edges are not cut: all that the nodes of the circuit write reaches all that follows.
    """
    everything = set(pairs.nodes())
    kept: dict[frozenset[Node], float] = {}

    def share(left: Collection[Node]) -> float:
        if (key := frozenset(left)) not in kept:
            kept[key] = pairs.without(everything - key)
        return kept[key]

    whole, subsets = frozenset(circuit), subsets_of(circuit)
    incompleteness, minimality = 0.0, dict.fromkeys(circuit, 0.0)
    for done, subset in enumerate(subsets, start=1):
        rest = whole - subset
        incompleteness = max(incompleteness, abs(share(rest) - share(everything - subset)))
        for node in rest:
            minimality[node] = max(minimality[node], abs(share(rest - {node}) - share(rest)))
        progress(done / len(subsets))
    return Criteria(incompleteness, minimality)


def subsets_of(nodes: Sequence[Node]) -> list[frozenset[Node]]:
    """The empty set, and random subsets."""
    chosen = torch.rand(N_RANDOM, len(nodes), generator=torch.Generator().manual_seed(0)) < 0.5
    by_row = [frozenset(node for node, is_in in zip(nodes, row, strict=True) if is_in) for row in chosen.tolist()]
    return list(dict.fromkeys([frozenset[Node](), *by_row]))
