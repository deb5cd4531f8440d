"""Finding a circuit: the heads, and the edges between them, that carry the difference between pairs of prompts."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

import torch

from ...errors import InputError, InvalidValue
from ...head_tensors import Head
from ..answer import Answer
from ..progress import Progress, ignore, part, parts
from ..text_pass import TextPass
from ..token_circuits import direct_logits
from .ablated_graph import Edge, Pairs, all_of, dangling, edges_between
from .patching import PatchRun, effects, patch_run
from .sites import SITES

MAX_LOST = 0.1  # of the effect
MAX_HEADS = 32  # among which edges are measured: their number grows with its square
MAX_TRIES = 100  # to remove heads, and then edges: more than a concentrated effect needs
N_PROMOTED = 5  # tokens named for each head
READING_PART = 0.1  # of the work, roughly

# "exact" ablates every head alone. "attribution" estimates this by attribution patching, and ablates only the
# ``MAX_HEADS`` heads for which the estimates are largest.
HeadMethod = Literal["exact", "attribution"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class CircuitHead(Answer):
    """A head of a circuit. ``lost`` is the share of the effect that is lost if this head alone is ablated.

    The rest is about the first clean prompt: its output matters most at ``position``, where ablating it loses
    ``lost_there``. There it gives the largest ``weight`` to the token ``reads`` at ``key``, and what it writes directly
    raises the logits of the tokens ``promoted`` most.
    """

    layer: int
    head: int
    lost: float
    position: int
    lost_there: float
    reads: int
    key: int
    weight: float
    promoted: list[int]


@dataclass(frozen=True)
class CircuitEdge(Answer):
    """An edge of a circuit. ``lost`` is the share of the effect that is lost if this edge alone is cut from it."""

    edge: Edge
    lost: float

    def content(self) -> dict[str, Any]:
        return {"sender": self.edge.sender, "receiver": self.edge.receiver, "way": self.edge.way, "lost": self.lost}


@dataclass(frozen=True)
class PairKept(Answer):
    """The logit differences of a pair of prompts, between the tokens ``answer`` and ``wrong``, and the share kept.

    ``row`` is its index among the pairs that were asked about.
    """

    row: int
    answer: int
    wrong: int
    clean: float
    corrupted: float
    kept: float


@dataclass(frozen=True)
class FoundCircuit(Answer):
    """A circuit and how faithful it is.

    ``kept`` is the share of the effect that is left with everything else ablated: 1 is the clean prompts, 0 the
    corrupted ones. ``without_heads`` is what is left with all heads ablated: what the embeddings and MLPs carry alone.
    ``left_out`` has the index and the error of each pair that has no effect to explain.
    """

    kept: float
    without_heads: float
    heads: list[CircuitHead]
    edges: list[CircuitEdge]
    pairs: list[PairKept]
    left_out: list[dict[str, Any]] = field(default_factory=list)

    def content(self) -> dict[str, Any]:
        def named(each: Answer, *names: str) -> dict[str, Any]:
            return each.numbers() | {name: self.named([getattr(each, name)])[0] for name in names}

        return self.numbers() | {
            "heads": [named(head, "reads") | {"promoted": self.named(head.promoted)} for head in self.heads],
            "pairs": [named(pair, "answer", "wrong") for pair in self.pairs],
        }

    def __str__(self) -> str:
        rows = [f"{head_name(each.edge.sender)} -> {receiver(each.edge)}: {each.lost:.3f}" for each in self.edges]
        return "\n".join([f"{self.kept:.3f} of the effect kept; lost without each edge:", *rows])

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<pre>{html.escape(str(self))}</pre>"


def head_name(head: Head) -> str:
    return f"L{head[0]} H{head[1]}"


def receiver(edge: Edge) -> str:
    return "logits" if edge.receiver is None else f"{edge.way} of {head_name(edge.receiver)}"


@torch.inference_mode()
def find_circuit(
    runs: Sequence[PatchRun],
    *,
    max_lost: float = MAX_LOST,
    method: HeadMethod = "exact",
    progress: Progress = ignore,
) -> FoundCircuit:
    """Find few heads and edges that keep the effect: the logit difference between clean and corrupted prompts.

    ``runs`` are pairs of prompts, from ``patch_run`` in the direction "noise"; they may differ in length, and shares
    are those of the mean logit difference.

    1. Every head is ablated alone: its context vectors at all positions are those of the corrupted prompt (Vig et al.
       2020, resample ablation as in Chan et al. 2022). With the ``method`` "attribution", only the ``MAX_HEADS`` heads
       that matter most by attribution patching (Nanda 2023) are, and the rest count as less important than these.
    2. Starting with the least important, heads are ablated together while the effect changes by at most half of
       ``max_lost``.
    3. Among the heads that are left (at most ``MAX_HEADS``), every edge into the queries, keys or values of a later
       head, or into the logits, is cut alone (path patching, Wang et al. 2023, Goldowsky-Dill et al. 2023).
    4. Starting with the least important, edges are cut together while the effect changes by at most ``max_lost``, as in
       the automatic discovery of Conmy et al. 2023.

    Where an edge is cut, the receiver gets the sender's output in the corrupted prompt; what it gets otherwise is that
    of the sender in the circuit. Embeddings are always those of the clean prompt, and MLPs are computed from what
    reaches them on the way to a receiver, so they are part of the edges. Pruning is greedy, with at most ``MAX_TRIES``
    tries, and other circuits may keep the effect as well. The effect may change in either direction: a head that works
    against the answer stays.

    Raises ``InputError`` if the mean difference of all pairs vanishes, and for an unknown method.
    """
    if method not in get_args(HeadMethod):
        raise InvalidValue("method", method, "'exact' or 'attribution'")
    pairs = Pairs(runs)
    order, patched = list[Head](), pairs.every_head()
    if method == "attribution":
        estimates = pairs.estimate_lost_alone(part(progress, 0, 0.1))
        by_estimate = sorted(patched, key=lambda head: abs(estimates[head]))
        order, patched = by_estimate[:-MAX_HEADS], by_estimate[-MAX_HEADS:]
    lost = pairs.lost_alone(patched, part(progress, 0.1 if order else 0, 0.25))
    order += sorted(patched, key=lambda head: abs(lost[head]))

    def heads_suffice(removed: set[Head], progress: Progress) -> bool:
        return abs(1 - pairs.without_heads(removed, progress)) <= max_lost / 2

    removed = prune(order, heads_suffice, part(progress, 0.25, 0.4))
    heads = sorted([head for head in order if head not in removed][-MAX_HEADS:])
    if unmeasured := [head for head in heads if head not in lost]:  # that could not be removed, whatever was estimated
        lost |= pairs.lost_alone(unmeasured, ignore)
    edges = edges_between(heads)
    start = float(pairs.with_edges(edges, all_of(edges)))
    losses = start - pairs.without_each_edge(heads, part(progress, 0.4, 0.6))
    allowed = max(max_lost, abs(1 - start))

    def edges_suffice(cut: set[Edge], progress: Progress) -> bool:
        return abs(1 - float(pairs.with_edges(edges, all_of(edges, cut), progress))) <= allowed

    by_loss = [edges[i] for i in losses.abs().argsort(stable=True).tolist()]
    cut = prune(by_loss, edges_suffice, part(progress, 0.6, 0.8))
    cut |= dangling([edge for edge in edges if edge not in cut])
    left = [edge for edge in edges if edge not in cut]
    by_pair = [graph.share(graph.with_edges(left, all_of(left))) for graph in pairs.graphs]
    whole = float(pairs.with_edges(left, all_of(left)))
    losses = whole - pairs.with_edges(left, ~torch.eye(len(left), dtype=torch.bool), part(progress, 0.8, 0.85))
    heads = sorted({edge.sender for edge in left})
    steps = parts(progress, len(heads), 0.85, 1)
    return FoundCircuit(
        kept=whole,
        without_heads=pairs.without_heads(set(order)),
        heads=[describe(runs[0], head, lost[head], step) for head, step in zip(heads, steps, strict=True)],
        edges=[CircuitEdge(edge, loss) for edge, loss in zip(left, losses.tolist(), strict=True)],
        pairs=[
            PairKept(row, run.answer, run.wrong, run.clean, run.corrupted, float(share))
            for row, (run, share) in enumerate(zip(runs, by_pair, strict=True))
        ],
    )


def circuit_of(
    pairs: Sequence[Mapping[str, Any]],
    read: Callable[[Any], TextPass],
    *,
    max_lost: float = MAX_LOST,
    method: HeadMethod = "exact",
    progress: Progress = ignore,
) -> FoundCircuit:
    """``find_circuit`` of pairs: ``prompt`` and ``corrupted``, as ``read`` takes them, and the ids ``answer`` and
    ``wrong``, or None.

    Pairs without an effect to explain are left out. Raises ``InputError`` if all are.
    """
    runs, left_out = dict[int, PatchRun](), list[dict[str, Any]]()
    for index, pair in enumerate(pairs):
        texts = [read(pair[name]) for name in ("prompt", "corrupted")]
        try:
            runs[index] = patch_run(*texts, answer=pair["answer"], wrong=pair["wrong"], direction="noise")
        except InputError as error:  # which only the model can tell, such as two prompts with the same answer
            left_out.append({"row": index, "error": str(error)})
        progress(READING_PART * (index + 1) / len(pairs))
    if not runs:
        raise InputError("prompts", f"No pair could be read. {left_out[0]['error'] if left_out else ''}".rstrip())
    step = part(progress, READING_PART, 1)
    circuit = find_circuit(list(runs.values()), max_lost=max_lost, method=method, progress=step)
    kept = [replace(pair, row=row) for row, pair in zip(runs, circuit.pairs, strict=True)]
    return replace(circuit, pairs=kept, left_out=left_out)


def prune(order: Sequence[Item], suffices: Callable[[set[Item], Progress], bool], progress: Progress) -> set[Item]:
    """The items that can be removed, in this order, while the rest ``suffices``.

    Several are tried at once, half as many after each failure; after ``MAX_TRIES`` the rest stays.
    """
    removed: set[Item] = set()
    done, at_once = 0, max(1, len(order) // 2)
    for tried in range(MAX_TRIES):
        if done == len(order):
            break
        some = order[done : done + at_once]
        here = max(done / len(order), tried / MAX_TRIES)
        if suffices(removed.union(some), part(progress, here, here)):
            removed.update(some)
            done, at_once = done + len(some), 2 * at_once
        elif len(some) > 1:
            at_once = len(some) // 2
        else:
            done += 1
    progress(1)
    return removed


def describe(run: PatchRun, head: Head, lost: float, progress: Progress) -> CircuitHead:
    """Where a head matters in a pair, what it reads there, and what it writes."""
    text, (layer, index) = run.into, head
    T = len(text.ids)
    units = torch.tensor([(layer, index, position) for position in range(T)])
    there = (run.clean - effects(run, SITES["z"], units, progress)) / (run.clean - run.corrupted)
    position = int(there.abs().argmax())
    weights = text.attention(layer, heads=[index])[0, position]
    written = text.context(layer)[0, position, index] @ text.block(layer).attn.matrices().W_O[index]
    promoted = direct_logits(text.gpt, written).topk(min(N_PROMOTED, text.config.vocab_size)).indices
    key = int(weights.argmax())
    return CircuitHead(
        layer,
        index,
        lost,
        position,
        float(there[position]),
        reads=text.ids[key],
        key=key,
        weight=float(weights[key]),
        promoted=promoted.tolist(),
    )
