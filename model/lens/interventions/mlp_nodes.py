"""The graph of a pair of prompts in which each layer's MLP is a node of its own, beside the heads."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from ...modules.head_tensors import Head
from ..composition import WAYS, Way
from ..progress import Progress
from .ablated_graph import OUTPUTS, Edge, Graph, Node, edges_between, layers_of_mlps, order, ways_into
from .patch_run import PatchRun
from .patching import taken
from .paths import Route


class NodesPass(NamedTuple):
    """A pass over all nodes, layer by layer."""

    stream: list[Tensor]  # before each layer, and after the last
    read: list[Tensor]  # by each MLP
    contexts: list[Tensor]
    mlps: list[Tensor]  # what each adds to the stream


class MLPGraph(Graph):
    """One pair of prompts in which heads and MLPs are ablated, and edges cut.

    An edge is the direct path in the residual stream: any other path leads through other nodes. This is the graph of
    Conmy et al. 2023.
    """

    route: Route = "direct"

    def __init__(self, run: PatchRun) -> None:
        super().__init__(run)
        self.mlps = [taken(run, layer, OUTPUTS) for layer in range(run.into.config.n_layer)]  # (1, T, C) each

    @cached_property
    def attention(self) -> list[Tensor]:
        """What the attention of each layer adds with all of its heads ablated."""
        return [self.attention_adds(layer, context) for layer, context in enumerate(self.corrupted)]

    def nodes(self) -> list[Node]:
        return sorted([*super().nodes(), *((layer, None) for layer in range(len(self.mlps)))], key=order)

    def edges_between(self, nodes: Sequence[Node]) -> list[Edge]:
        return edges_between(nodes, parallel=self.run.into.config.parallel)

    def attention_adds(self, layer: int, context: Tensor) -> Tensor:
        """What attention with the context vectors ``(B, T, n_head, head_dim)`` adds to the stream, ``(B, T, C)``."""
        block = self.run.into.block(layer)
        return block.attention_output(block.attn.output(context))

    def mlp_adds(self, layer: int, x: Tensor) -> Tensor:
        """What an MLP that reads the stream ``x`` adds to it, ``(B, T, C)``."""
        block = self.run.into.block(layer)
        return block.mlp_output(block.mlp.output(block.neurons(x)))

    def read_by_mlp(self, x: Tensor, attention: Tensor) -> Tensor:
        """What the MLP of a layer reads, given the stream before the layer and what its attention adds."""
        return x if self.run.into.config.parallel else x + attention

    def run_nodes(
        self,
        removed: Collection[Node],
        x: Tensor,
        start: int = 0,
        *,
        contexts: Mapping[int, Tensor] | None = None,
        mlps: Mapping[int, Tensor] | None = None,
    ) -> NodesPass:
        """A pass from the stream ``x`` ``(B, T, C)`` before layer ``start`` on, with ``removed`` nodes ablated.

        ``contexts`` and ``mlps`` are put in place of what a layer would compute.
        """
        into, ablate = self.run.into, self.ablating(removed)
        contexts = {} if contexts is None else contexts
        outputs = {layer: self.mlps[layer] for layer in layers_of_mlps(removed)} | (dict(mlps) if mlps else {})
        found = NodesPass([x], [], [], [])
        for layer in range(start, into.config.n_layer):
            block = into.block(layer)
            if layer in contexts:
                context = contexts[layer]
            else:
                own, _ = block.attn.context(block.attention_input(x), head_mask=into.mask_of(layer))
                context = ablate(layer, own)
            added = self.attention_adds(layer, context)
            read = self.read_by_mlp(x, added)
            output = outputs[layer] if layer in outputs else self.mlp_adds(layer, read)
            x = x + added + output
            for kept, each in zip(found, (x, read, context, output), strict=True):
                kept.append(each)
        return found

    def without(self, removed: Collection[Node]) -> Tensor:
        return self.run.measure(self.run_nodes(removed, self.run.into.stream[0]).stream[-1]).cpu()

    def without_each_edge(self, nodes: Sequence[Node], progress: Progress) -> Tensor:
        into, edges, removed = self.run.into, self.edges_between(nodes), set(self.nodes()) - set(nodes)
        plain = self.run_nodes(removed, into.stream[0])
        written = {node: self.written(node, plain) for node in nodes}
        found = dict[Edge, Tensor]()
        for receiver in (*nodes, None):
            for way in ways_into(receiver):
                for some in batches([edge for edge in edges if edge[1:] == (receiver, way)], into.batch_size):
                    x = self.read_by(receiver, plain) - torch.cat([written[edge.sender] for edge in some])
                    found |= zip(some, self.with_input(receiver, way, x, plain, removed), strict=True)
                    progress(len(found) / len(edges))
        progress(1)
        return torch.stack([found[edge] for edge in edges]) if edges else torch.empty(0)

    def written(self, node: Node, plain: NodesPass) -> Tensor:
        """What a node adds to the stream ``(1, T, C)``, minus what it adds where it is ablated."""
        layer, head = node
        if head is None:
            return plain.mlps[layer] - self.mlps[layer]
        ablated = plain.contexts[layer].clone()
        ablated[:, :, head] = self.corrupted[layer][:, :, head]
        return self.attention_adds(layer, plain.contexts[layer]) - self.attention_adds(layer, ablated)

    def read_by(self, receiver: Node | None, plain: NodesPass) -> Tensor:
        if receiver is None:
            return plain.stream[-1]
        return (plain.read if receiver[1] is None else plain.stream)[receiver[0]]

    def with_input(
        self, receiver: Node | None, way: Way | None, x: Tensor, plain: NodesPass, removed: Collection[Node]
    ) -> Tensor:
        """The logit differences ``(B,)`` if a receiver reads ``x`` ``(B, T, C)`` in one way."""
        if receiver is None:
            return self.run.measure(x).cpu()
        layer, head = receiver
        before = plain.stream[layer].expand(len(x), -1, -1)
        if head is None:
            done = self.run_nodes(removed, before, layer, mlps={layer: self.mlp_adds(layer, x)})
        else:
            changed = plain.contexts[layer].repeat(len(x), 1, 1, 1)
            streams = {each: x if each == way else plain.stream[layer] for each in WAYS}
            changed[:, :, head] = self.context_of((layer, head), streams)
            done = self.run_nodes(removed, before, layer, contexts={layer: changed})
        return self.run.measure(done.stream[-1]).cpu()

    def output_of(self, node: Node, streams: Mapping[Any, Tensor]) -> Tensor:
        """What a node writes: the context vectors of a head, or what an MLP adds to the stream."""
        layer, head = node
        return self.mlp_adds(layer, streams[None]) if head is None else self.context_of(cast(Head, node), streams)

    def reaching(
        self, receiver: Node | None, incoming: Mapping[Node, Tensor], values: Mapping[Node, Tensor], n: int
    ) -> Tensor:
        def attention(layer: int) -> Tensor:
            if all(sender[0] != layer or sender[1] is None for sender in incoming):
                return self.attention[layer]
            return self.attention_adds(layer, self.mixed(layer, incoming, values, n))

        def mlp(layer: int) -> Tensor:
            if (layer, None) not in incoming:
                return self.mlps[layer]
            chosen = incoming[layer, None][:, None, None]
            return torch.where(chosen, values[layer, None], self.mlps[layer])

        last = self.run.into.config.n_layer if receiver is None else receiver[0]
        x = self.run.into.stream[0].expand(n, -1, -1)
        for layer in range(last):
            x = x + attention(layer) + mlp(layer)
        return self.read_by_mlp(x, attention(last)) if receiver is not None and receiver[1] is None else x


def batches(edges: Sequence[Edge], size: int) -> list[Sequence[Edge]]:
    return [edges[start : start + size] for start in range(0, len(edges), size)]
