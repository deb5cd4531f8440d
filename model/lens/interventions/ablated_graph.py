"""The heads of a model as a graph for pairs of prompts, in which heads are ablated and the edges between them cut."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from ...errors import InputError
from ...modules.head_tensors import Head
from ..composition import WAYS, Way
from ..progress import Progress, ignore, parts
from ..text_pass import Edit, replacing
from .patch_run import MIN_DIFFERENCE, PatchRun
from .patching import ALL, attribution_patching, effects, taken
from .paths import Route, head_weights, parts_of
from .sites import SITES

CHOICES_AT_ONCE = 16  # of edges, each of which takes many partial passes, before progress is reported
OUTPUTS = SITES["mlp_out"]  # what each MLP adds to the residual stream

Node = tuple[int, int | None]  # a layer and a head, or without a head the MLP of the layer


class Edge(NamedTuple):
    """From the output of a node to the queries, keys or values of a later head, to a later MLP, which is read in one
    way only, None, or, without a receiver, to the logits.
    """

    sender: Node
    receiver: Node | None
    way: Way | None


def order(node: Node) -> tuple[int, bool, int]:
    """The place of a node in a pass: an MLP comes after the heads of its layer."""
    layer, head = node
    return layer, head is None, head or 0


def ways_into(node: Node | None) -> Sequence[Way | None]:
    return (None,) if node is None or node[1] is None else WAYS


def edges_between(nodes: Sequence[Node], *, parallel: bool = False) -> list[Edge]:
    """All edges from each of these nodes to the later ones among them and to the logits.

    An MLP reads the heads of its own layer, unless both read the same stream (``parallel``).
    """

    def reads(other: Node, one: Node) -> bool:
        is_in_layer = one[0] == other[0] and other[1] is None is not one[1] and not parallel
        return one[0] < other[0] or is_in_layer

    between = [
        Edge(one, other, way) for one in nodes for other in nodes if reads(other, one) for way in ways_into(other)
    ]
    return between + [Edge(node, None, None) for node in nodes]


def dangling(edges: Sequence[Edge]) -> set[Edge]:
    """The edges from which no path leads to the logits."""
    reaching: set[Node | None] = {None}
    for edge in sorted(edges, key=lambda edge: order(edge.sender), reverse=True):  # senders precede their receivers
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
    """One pair of prompts in which heads are ablated and edges cut.

    An edge is the path through the MLPs between its ends, which are recomputed, and not through other heads.
    """

    route: Route = "mlps"

    def __init__(self, run: PatchRun) -> None:
        self.run = run
        n_layer = run.into.config.n_layer
        self.corrupted = [taken(run, layer, SITES["z"]) for layer in range(n_layer)]  # (1, T, n_head, head_dim) each

    @cached_property
    def ablated(self) -> list[Tensor]:
        """The stream before each layer, and after all, with all heads ablated."""
        streams = [self.run.into.stream[0]]
        for layer, context in enumerate(self.corrupted):
            streams.append(self.after_layer(layer, streams[-1], context))
        return streams

    def after_layer(self, layer: int, x: Tensor, context: Tensor) -> Tensor:
        """The stream ``(B, T, C)`` after a layer whose heads have the context vectors ``(B, T, n_head, head_dim)``."""
        block = self.run.into.block(layer)
        output = block.attn.output(context)
        after: Tensor = block(x, lambda *_: output)
        return after

    def nodes(self) -> list[Node]:
        """All nodes, in their order in a pass."""
        config = self.run.into.config
        return [(layer, head) for layer in range(config.n_layer) for head in range(config.n_head)]

    def edges_between(self, nodes: Sequence[Node]) -> list[Edge]:
        return edges_between(nodes)

    def share(self, differences: Tensor) -> Tensor:
        return (differences - self.run.corrupted) / (self.run.clean - self.run.corrupted)

    def ablating(self, removed: Collection[Node]) -> Edit:
        """An edit of context vectors that ablates the heads among these nodes."""
        return replacing(self.run.into.config, heads_of(removed), self.corrupted.__getitem__)

    def without(self, removed: Collection[Node]) -> Tensor:
        """The logit difference ``(1,)`` of the clean prompt with these nodes ablated."""
        final = self.run.into.run_from(0, self.run.into.stream[0], self.ablating(removed))
        return self.run.measure(final).cpu()

    def without_each_edge(self, nodes: Sequence[Node], progress: Progress) -> Tensor:
        """The logit differences ``(n,)`` with each of ``edges_between(nodes)`` cut in turn.

        The same as ``with_edges``, but faster: with every other edge in place, what follows the receiver is an ordinary
        pass with the other nodes ablated.
        """
        heads = heads_of(nodes)
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
        values, streams = dict[Node, Tensor](), dict[Any, Tensor]()
        column = {edge: i for i, edge in enumerate(edges) if choices[:, i].any()}
        used = column.keys() - dangling(list(column))

        def stream(receiver: Node | None, way: Way | None) -> Tensor:
            """What reaches a receiver: computed once for those in one place with the same edges."""
            incoming = {edge.sender: choices[:, column[edge]] for edge in used if edge[1:] == (receiver, way)}
            place = None if receiver is None else order(receiver)[:2]
            key = place, frozenset((sender, tuple(chosen.tolist())) for sender, chosen in incoming.items())
            if key not in streams:
                streams[key] = self.reaching(receiver, incoming, values, len(choices))
            return streams[key]

        for node in sorted({edge.sender for edge in used}, key=order):
            values[node] = self.output_of(node, {way: stream(node, way) for way in ways_into(node)})
        return self.run.measure(stream(None, None))

    def output_of(self, node: Node, streams: Mapping[Any, Tensor]) -> Tensor:
        """What a node writes, given what reaches it in each way: the context vectors of a head."""
        return self.context_of(cast(Head, node), streams)

    def reaching(
        self, receiver: Node | None, incoming: Mapping[Node, Tensor], values: Mapping[Node, Tensor], n: int
    ) -> Tensor:
        """The stream ``(n, T, C)`` that a receiver reads if it gets the ``values`` ``(n, T, ...)`` of some senders.

        ``incoming`` says of each of these in which of the ``n`` cases, ``(n,)``; otherwise the sender is ablated.
        """
        layer = self.run.into.config.n_layer if receiver is None else receiver[0]
        first = min((sender[0] for sender in incoming), default=layer)
        x = self.ablated[first].expand(n, -1, -1)
        for between in range(first, layer):
            x = self.after_layer(between, x, self.mixed(between, incoming, values, n))
        return x

    def mixed(self, layer: int, incoming: Mapping[Node, Tensor], values: Mapping[Node, Tensor], n: int) -> Tensor:
        """A layer's context vectors ``(n, T, n_head, head_dim)``, in which heads are ablated unless ``incoming``."""
        context = self.corrupted[layer].repeat(n, 1, 1, 1)
        for (where, head), chosen in incoming.items():
            if where == layer and head is not None:
                context[chosen, :, head] = values[where, head][chosen]
        return context


def heads_of(nodes: Collection[Node]) -> list[Head]:
    return [(layer, head) for layer, head in nodes if head is not None]


def layers_of_mlps(nodes: Collection[Node]) -> list[int]:
    return [layer for layer, head in nodes if head is None]


class Pairs:
    """Several pairs of prompts, whose mean logit difference is the effect."""

    def __init__(self, runs: Sequence[PatchRun], kind: type[Graph] = Graph) -> None:
        self.graphs = [kind(run) for run in runs]
        self.clean, self.corrupted = sum(run.clean for run in runs), sum(run.corrupted for run in runs)
        if not abs(self.clean - self.corrupted) > MIN_DIFFERENCE * len(runs):
            raise InputError("corrupted", "The differences of the pairs cancel: there is no effect to explain.")

    def kept(self, differences: Sequence[Tensor]) -> Tensor:
        """The share of the effect that is left, given the logit differences of each pair, tensors of one shape."""
        return (torch.stack(list(differences)).double().sum(0) - self.corrupted) / (self.clean - self.corrupted)

    def nodes(self) -> list[Node]:
        return self.graphs[0].nodes()

    def edges_between(self, nodes: Sequence[Node]) -> list[Edge]:
        return self.graphs[0].edges_between(nodes)

    def lost_alone(self, nodes: Sequence[Node], progress: Progress) -> dict[Node, float]:
        """The share that is lost if one of ``nodes`` alone is ablated."""
        heads, layers = heads_of(nodes), layers_of_mlps(nodes)
        places = {SITES["z"]: heads, OUTPUTS: [(layer, 0) for layer in layers]}
        units = {site: torch.tensor([(*each, ALL) for each in some]) for site, some in places.items() if some}
        left = []
        for graph, report in zip(self.graphs, parts(progress, len(self.graphs)), strict=True):
            left.append(torch.cat([effects(graph.run, site, some, report) for site, some in units.items()]))
        return self.lost_by([*heads, *((layer, None) for layer in layers)], left)

    def estimate_lost_alone(self, progress: Progress) -> dict[Node, float]:
        """The same for every node, approximated by attribution patching."""
        left, layers = list[Tensor](), layers_of_mlps(self.nodes())
        for graph, report in zip(self.graphs, parts(progress, len(self.graphs)), strict=True):
            found = attribution_patching(graph.run, SITES["z"], each_position=False, progress=report).flatten()
            mlps = [attribution_patching(graph.run, OUTPUTS, each_position=False)] if layers else []
            left.append(torch.cat([found, *mlps]))
        return self.lost_by([*heads_of(self.nodes()), *((layer, None) for layer in layers)], left)

    def lost_by(self, nodes: Sequence[Node], differences: Sequence[Tensor]) -> dict[Node, float]:
        """The share that is lost by each node, given the logit differences ``(n,)`` of each pair without it."""
        return dict(zip(nodes, (1 - self.kept(differences)).tolist(), strict=True))

    def without(self, removed: Collection[Node], progress: Progress = ignore) -> float:
        """The share that is left with these nodes ablated."""
        differences = []
        for i, graph in enumerate(self.graphs):
            differences.append(graph.without(removed))
            progress((i + 1) / len(self.graphs))
        return float(self.kept(differences))

    def without_each_edge(self, nodes: Sequence[Node], progress: Progress) -> Tensor:
        """The share ``(n,)`` that is left with each of ``edges_between(nodes)`` cut in turn."""
        pairs = zip(self.graphs, parts(progress, len(self.graphs)), strict=True)
        return self.kept([graph.without_each_edge(nodes, report) for graph, report in pairs])

    def with_edges(self, edges: Sequence[Edge], choices: Tensor, progress: Progress = ignore) -> Tensor:
        """The share ``(N,)`` that is left with only some of ``edges``: ``choices`` ``(N, len(edges))`` bool."""
        steps = parts(progress, len(self.graphs))
        pairs = zip(self.graphs, steps, strict=True)
        return self.kept([graph.with_edges(edges, choices, report) for graph, report in pairs])
