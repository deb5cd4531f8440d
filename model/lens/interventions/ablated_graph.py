"""The heads of a model as a graph for pairs of prompts, in which heads are ablated and the edges between them cut."""

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...errors import InputError
from ...modules.head_tensors import Head
from ..composition import WAYS, Way
from ..progress import Progress, ignore, parts
from ..text_pass import Edit, replacing
from .patch_run import MIN_DIFFERENCE, PatchRun
from .patching import ALL, attribution_patching, effects
from .paths import head_weights, parts_of
from .sites import SITES

CHOICES_AT_ONCE = 16  # of edges, each of which takes many partial passes, before progress is reported


class Edge(NamedTuple):
    """From the output of a head to the queries, keys or values of a later one, or, if both are None, to the logits."""

    sender: Head
    receiver: Head | None
    way: Way | None


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


def all_of(edges: Sequence[Edge], cut: Collection[Edge] = ()) -> Tensor:
    """The choice ``(1, len(edges))`` of all edges that are not ``cut``."""
    return torch.tensor([[edge not in cut for edge in edges]], dtype=torch.bool)


class AblatedPass(NamedTuple):
    """A pass with some heads ablated: of each layer, the context vectors and the stream before it."""

    ablate: Edit
    contexts: list[Tensor]
    stream: list[Tensor]


class Graph:
    """One pair of prompts in which heads are ablated and edges cut."""

    def __init__(self, run: PatchRun) -> None:
        self.run = run
        into = run.into
        n_layer = into.config.n_layer
        self.corrupted = [run.contexts(layer) for layer in range(n_layer)]  # (1, T, n_head, head_dim) each
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
        return replacing(self.run.into.config, removed, self.corrupted.__getitem__)

    def without_heads(self, removed: set[Head]) -> Tensor:
        """The logit difference ``(1,)`` of the clean prompt with these heads ablated."""
        final = self.run.into.run_from(0, self.run.into.stream[0], self.ablating(removed))
        return self.run.measure(final).cpu()

    def without_each_edge(self, heads: Sequence[Head], progress: Progress) -> Tensor:
        """The logit differences ``(n,)`` with each of ``edges_between(heads)`` cut in turn.

        The same as ``with_edges``, but faster: with every other edge in place, what follows the receiver is an ordinary
        pass with the other heads ablated.
        """
        into, plain = self.run.into, self.ablated_pass(heads)
        by_edge: dict[Edge, Tensor] = {}
        n_done, edges = 0, edges_between(heads)
        for start in range(0, len(heads), into.batch_size):
            senders = heads[start : start + into.batch_size]
            x = into.stream[0].expand(len(senders), -1, -1)  # with each sender ablated, and the other heads unchanged
            for layer in range(into.config.n_layer):
                rows = [row for row, sender in enumerate(senders) if sender[0] < layer]
                receivers = [head for head in heads if head[0] == layer] if rows else []
                for receiver, way in product(receivers, WAYS):
                    differences = self.cut_into(receiver, way, x[rows], plain)
                    by_edge |= {
                        Edge(senders[row], receiver, way): each for row, each in zip(rows, differences, strict=True)
                    }
                    n_done += len(rows)
                    progress(n_done / len(edges))
                x = self.after_ablated(layer, x, senders, plain)
            by_edge |= {
                Edge(sender, None, None): each for sender, each in zip(senders, self.run.measure(x).cpu(), strict=True)
            }
        progress(1)
        return torch.stack([by_edge[edge] for edge in edges]) if edges else torch.empty(0)

    def ablated_pass(self, heads: Sequence[Head]) -> AblatedPass:
        """A pass over the clean prompt with all heads but ``heads`` ablated."""
        into, contexts = self.run.into, list[Tensor]()
        n_layer, n_head = into.config.n_layer, into.config.n_head
        ablate = self.ablating({(layer, head) for layer in range(n_layer) for head in range(n_head)} - set(heads))

        def keep(layer: int, context: Tensor) -> Tensor:
            contexts.append(ablate(layer, context))
            return contexts[-1]

        return AblatedPass(ablate, contexts, into.streams(into.stream[0], keep))

    def cut_into(self, receiver: Head, way: Way, x: Tensor, plain: AblatedPass) -> Tensor:
        """The logit differences ``(B,)`` if a receiver reads the streams ``x`` ``(B, T, C)`` in one way."""
        layer, head = receiver
        stream, changed = plain.stream[layer], plain.contexts[layer].repeat(len(x), 1, 1, 1)
        changed[:, :, head] = self.context_of(receiver, {each: x if each == way else stream for each in WAYS})
        final = self.run.into.run_from(layer + 1, self.after_layer(layer, stream, changed), plain.ablate)
        return self.run.measure(final).cpu()

    def after_ablated(self, layer: int, x: Tensor, senders: Sequence[Head], plain: AblatedPass) -> Tensor:
        """The stream after a layer, given ``x`` ``(B, T, C)`` before it, with one of ``senders`` ablated in each row.

        The context vectors of the other heads are unchanged.
        """
        changed = plain.contexts[layer].repeat(len(senders), 1, 1, 1)
        for row, (where, head) in enumerate(senders):
            if where == layer:
                changed[row, :, head] = self.corrupted[layer][0, :, head]
        return self.after_layer(layer, x, changed)

    def context_of(self, head: Head, streams: Mapping[Way, Tensor]) -> Tensor:
        """A head's context vectors ``(B, T, head_dim)`` with queries, keys and values from the streams before it."""
        into, (layer, index) = self.run.into, head
        query, key, value = (parts_of(into, layer, index, streams[way])[way] for way in WAYS)
        context, mask = head_weights(into, layer, query, key) @ value, into.mask_of(layer)
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
        left = self.kept([effects(graph.run, SITES["z"], units, report) for graph, report in pairs])
        return dict(zip(heads, (1 - left).tolist(), strict=True))

    def estimate_lost_alone(self, progress: Progress) -> dict[Head, float]:
        """The same for every head, approximated by attribution patching."""
        pairs = zip(self.graphs, parts(progress, len(self.graphs)), strict=True)
        estimates = [
            attribution_patching(graph.run, SITES["z"], each_position=False, progress=report) for graph, report in pairs
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
        return self.kept([graph.without_each_edge(heads, report) for graph, report in pairs])

    def with_edges(self, edges: Sequence[Edge], choices: Tensor, progress: Progress = ignore) -> Tensor:
        """The share ``(N,)`` that is left with only some of ``edges``: ``choices`` ``(N, len(edges))`` bool."""
        steps = parts(progress, len(self.graphs))
        pairs = zip(self.graphs, steps, strict=True)
        return self.kept([graph.with_edges(edges, choices, report) for graph, report in pairs])
