"""Finding a circuit: the heads, and the edges between them, that carry the difference between pairs of prompts."""

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor

from ...errors import InputError, InvalidValue
from ...head_tensors import Head
from ..answer import Answer
from ..composition import WAYS, Way
from ..progress import Progress, ignore, part
from ..text_pass import Edit, TextPass
from ..token_circuits import direct_logits
from .patching import ALL, MIN_DIFFERENCE, PatchRun, attribution_patching, effects, patch_run
from .paths import attention_weights, parts_of
from .sites import SITES

MAX_LOST = 0.1  # of the effect
MAX_HEADS = 32  # among which edges are measured: their number grows with its square
MAX_TRIES = 100  # to remove heads, and then edges: more than a concentrated effect needs
CHOICES_AT_ONCE = 16  # of edges, each of which takes many partial passes, before progress is reported
N_PROMOTED = 5  # tokens named for each head
READING_PART = 0.1  # of the work, roughly

# "exact" ablates every head alone. "attribution" estimates this by attribution patching, and ablates only the
# ``MAX_HEADS`` heads for which the estimates are largest.
HeadMethod = Literal["exact", "attribution"]
Item = TypeVar("Item")


class Edge(NamedTuple):
    """From the output of a head to the queries, keys or values of a later one, or, if both are None, to the logits."""

    sender: Head
    receiver: Head | None
    way: Way | None


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
        rows = [f"{named(each.edge.sender)} -> {receiver(each.edge)}: {each.lost:.3f}" for each in self.edges]
        return "\n".join([f"{self.kept:.3f} of the effect kept; lost without each edge:", *rows])

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<pre>{html.escape(str(self))}</pre>"


def named(head: Head) -> str:
    return f"L{head[0]} H{head[1]}"


def receiver(edge: Edge) -> str:
    return "logits" if edge.receiver is None else f"{edge.way} of {named(edge.receiver)}"


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


def all_of(edges: Sequence[Edge], cut: Collection[Edge] = ()) -> Tensor:
    """The choice ``(1, len(edges))`` of all edges that are not ``cut``."""
    return torch.tensor([[edge not in cut for edge in edges]], dtype=torch.bool)


def parts(progress: Progress, n: int, start: float = 0, stop: float = 1) -> list[Progress]:
    """``n`` equal parts of the fractions from ``start`` to ``stop``."""
    return [part(progress, start + (stop - start) * i / n, start + (stop - start) * (i + 1) / n) for i in range(n)]


class Graph:
    """One pair of prompts in which heads are ablated and edges cut."""

    def __init__(self, run: PatchRun) -> None:
        self.run = run
        into = run.into
        n_layer = into.config.n_layer
        self.corrupted = [run.source.context(layer) for layer in range(n_layer)]  # (1, T, n_head, head_dim) each
        self.ablated = [into.stream[0]]  # the stream before each layer with all heads ablated
        for layer in range(n_layer):
            self.ablated.append(self.after_layer(layer, self.ablated[-1], self.corrupted[layer]))

    def after_layer(self, layer: int, x: Tensor, context: Tensor) -> Tensor:
        """The stream ``(B, T, C)`` after a layer whose heads have the context vectors ``(B, T, n_head, head_dim)``."""
        block = self.run.into.block(layer)
        output = block.attn.output(context)
        after: Tensor = block(x, lambda *_: output)
        return after

    def share(self, differences: Tensor) -> Tensor:
        return (differences - self.run.corrupted) / (self.run.clean - self.run.corrupted)

    def ablating(self, removed: Collection[Head]) -> Edit:
        """An edit of context vectors that ablates these heads."""

        def ablate(layer: int, context: Tensor) -> Tensor:
            columns = [head for where, head in removed if where == layer]
            changed = context.clone()
            changed[:, :, columns] = self.corrupted[layer][:, :, columns]
            return changed

        return ablate

    def without_heads(self, removed: set[Head]) -> Tensor:
        """The logit difference ``(1,)`` of the clean prompt with these heads ablated."""
        final = self.run.into.run_from(0, self.run.into.stream[0], self.ablating(removed))
        return self.run.measure(final).cpu()

    def without_each_edge(self, heads: Sequence[Head], progress: Progress) -> Tensor:
        """The logit differences ``(n,)`` with each of ``edges_between(heads)`` cut in turn.

        The same as ``with_edges``, but faster: with every other edge in place, what follows the receiver is an ordinary
        pass with the other heads ablated.
        """
        into, n_layer = self.run.into, self.run.into.config.n_layer
        every = {(layer, head) for layer in range(n_layer) for head in range(into.config.n_head)}
        ablate, contexts, stream = self.ablating(every - set(heads)), list[Tensor](), list[Tensor]()

        def keep(layer: int, context: Tensor) -> Tensor:
            contexts.append(ablate(layer, context))
            return contexts[-1]

        into.gpt.run_blocks(into.stream[0], into.attend(keep), stream)
        by_edge: dict[Edge, Tensor] = {}
        n_done, edges = 0, edges_between(heads)
        for start in range(0, len(heads), into.batch_size):
            senders = heads[start : start + into.batch_size]
            x = into.stream[0].expand(len(senders), -1, -1)  # with each sender ablated, and the other heads unchanged
            for layer in range(n_layer):
                rows = [row for row, sender in enumerate(senders) if sender[0] < layer]
                for receiver in [head for head in heads if head[0] == layer and rows]:
                    for way in WAYS:
                        context = self.context_of(
                            receiver, {each: x[rows] if each == way else stream[layer] for each in WAYS}
                        )
                        changed = contexts[layer].repeat(len(rows), 1, 1, 1)
                        changed[:, :, receiver[1]] = context
                        final = into.run_from(layer + 1, self.after_layer(layer, stream[layer], changed), ablate)
                        differences = self.run.measure(final).cpu()
                        by_edge |= {
                            Edge(senders[row], receiver, way): each for row, each in zip(rows, differences, strict=True)
                        }
                        n_done += len(rows)
                        progress(n_done / len(edges))
                changed = contexts[layer].repeat(len(senders), 1, 1, 1)
                for row, (where, head) in enumerate(senders):
                    if where == layer:
                        changed[row, :, head] = self.corrupted[layer][0, :, head]
                x = self.after_layer(layer, x, changed)
            by_edge |= {
                Edge(sender, None, None): each for sender, each in zip(senders, self.run.measure(x).cpu(), strict=True)
            }
        progress(1)
        return torch.stack([by_edge[edge] for edge in edges]) if edges else torch.empty(0)

    def context_of(self, head: Head, streams: Mapping[Way, Tensor]) -> Tensor:
        """A head's context vectors ``(B, T, head_dim)`` with queries, keys and values from the streams before it."""
        into, (layer, index) = self.run.into, head
        query, key, value = (parts_of(into, layer, index, streams[way])[way] for way in WAYS)
        context, mask = attention_weights(into, layer, query, key) @ value, into.mask_of(layer)
        return context if mask is None else context * mask[index]

    def with_edges(self, edges: Sequence[Edge], choices: Tensor, progress: Progress = ignore) -> Tensor:
        """The logit differences ``(N,)`` with only some of ``edges``: ``choices`` ``(N, len(edges))`` bool."""
        differences = []
        at_once = min(self.run.into.batch_size, CHOICES_AT_ONCE)
        for some in choices.to(self.run.into.device).split(at_once):
            differences.append(self.with_some_edges(edges, some).cpu())
            progress(sum(map(len, differences)) / max(len(choices), 1))
        return torch.cat(differences)

    def with_some_edges(self, edges: Sequence[Edge], choices: Tensor) -> Tensor:
        into, values, streams = self.run.into, dict[Head, Tensor](), dict[Any, Tensor]()
        column = {edge: i for i, edge in enumerate(edges) if choices[:, i].any()}
        used = column.keys() - dangling(list(column))

        def stream(layer: int, receiver: Head | None, way: Way | None) -> Tensor:
            """What reaches a receiver before its layer: computed once for those with the same edges."""
            incoming = {edge.sender: choices[:, column[edge]] for edge in used if edge[1:] == (receiver, way)}
            key = layer, frozenset((sender, tuple(chosen.tolist())) for sender, chosen in incoming.items())
            if key not in streams:
                first = min((sender[0] for sender in incoming), default=layer)
                x = self.ablated[first].expand(len(choices), -1, -1)
                for between in range(first, layer):
                    context = self.corrupted[between].repeat(len(choices), 1, 1, 1)
                    for (where, head), chosen in incoming.items():
                        if where == between:
                            context[chosen, :, head] = values[where, head][chosen]
                    x = self.after_layer(between, x, context)
                streams[key] = x
            return streams[key]

        for head in sorted({edge.sender for edge in used}):
            values[head] = self.context_of(head, {way: stream(head[0], head, way) for way in WAYS})
        return self.run.measure(stream(into.config.n_layer, None, None))


class Pairs:
    """Several pairs of prompts, whose mean logit difference is the effect."""

    def __init__(self, runs: Sequence[PatchRun]) -> None:
        self.graphs = [Graph(run) for run in runs]
        self.clean, self.corrupted = sum(run.clean for run in runs), sum(run.corrupted for run in runs)
        if not abs(self.clean - self.corrupted) > MIN_DIFFERENCE * len(runs):
            raise InputError("corrupted", "The differences of the pairs cancel: there is no effect to explain.")

    def kept(self, differences: Sequence[Tensor]) -> Tensor:
        """The share of the effect that is left, given the logit differences of each pair, tensors of one shape."""
        return (torch.stack(list(differences)).double().sum(0) - self.corrupted) / (self.clean - self.corrupted)

    def every_head(self) -> list[Head]:
        config = self.graphs[0].run.into.config
        return [(layer, head) for layer in range(config.n_layer) for head in range(config.n_head)]

    def lost_alone(self, heads: Sequence[Head], progress: Progress) -> dict[Head, float]:
        """The share that is lost if one of ``heads`` alone is ablated."""
        units = torch.tensor([(*head, ALL) for head in heads])
        pairs = zip(self.graphs, parts(progress, len(self.graphs)), strict=True)
        left = self.kept([effects(graph.run, SITES["z"], units, step) for graph, step in pairs])
        return dict(zip(heads, (1 - left).tolist(), strict=True))

    def estimate_lost_alone(self, progress: Progress) -> dict[Head, float]:
        """The same for every head, approximated by attribution patching."""
        pairs = zip(self.graphs, parts(progress, len(self.graphs)), strict=True)
        estimates = [
            attribution_patching(graph.run, SITES["z"], each_position=False, progress=step) for graph, step in pairs
        ]
        return dict(zip(self.every_head(), (1 - self.kept(estimates)).flatten().tolist(), strict=True))

    def without_heads(self, removed: set[Head], progress: Progress = ignore) -> float:
        """The share that is left with these heads ablated."""
        differences = []
        for i, graph in enumerate(self.graphs):
            differences.append(graph.without_heads(removed))
            progress((i + 1) / len(self.graphs))
        return float(self.kept(differences))

    def without_each_edge(self, heads: Sequence[Head], progress: Progress) -> Tensor:
        """The share ``(n,)`` that is left with each of ``edges_between(heads)`` cut in turn."""
        pairs = zip(self.graphs, parts(progress, len(self.graphs)), strict=True)
        return self.kept([graph.without_each_edge(heads, step) for graph, step in pairs])

    def with_edges(self, edges: Sequence[Edge], choices: Tensor, progress: Progress = ignore) -> Tensor:
        """The share ``(N,)`` that is left with only some of ``edges``: ``choices`` ``(N, len(edges))`` bool."""
        steps = parts(progress, len(self.graphs))
        pairs = zip(self.graphs, steps, strict=True)
        return self.kept([graph.with_edges(edges, choices, step) for graph, step in pairs])


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


def edges_between(heads: Sequence[Head]) -> list[Edge]:
    """All edges from each of these heads to the later ones among them and to the logits."""
    to_heads = [Edge(one, other, way) for one in heads for other in heads if one[0] < other[0] for way in WAYS]
    return to_heads + [Edge(head, None, None) for head in heads]


def dangling(edges: Sequence[Edge]) -> set[Edge]:
    """The edges from which no path leads to the logits."""
    reaching: set[Head | None] = {None}
    for edge in sorted(edges, key=lambda edge: edge.sender, reverse=True):  # senders come before their receivers
        if edge.receiver in reaching:
            reaching.add(edge.sender)
    return {edge for edge in edges if edge.receiver not in reaching}


def describe(run: PatchRun, head: Head, lost: float, progress: Progress) -> CircuitHead:
    """Where a head matters in a pair, what it reads there, and what it writes."""
    text, (layer, index) = run.into, head
    T = len(text.ids)
    units = torch.tensor([(layer, index, position) for position in range(T)])
    there = (run.clean - effects(run, SITES["z"], units, progress)) / (run.clean - run.corrupted)
    position = int(there.abs().argmax())
    weights = text.attention(layer)[index, position]
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
