"""Circuits of GPT-2, and with MLPs as nodes those of every family, compared with hooks in transformers in float64."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

import model
from helpers.models import max_difference, prompt_ids
from helpers.oracles.families import ONE_OF_EACH, one_of_each_kind
from helpers.oracles.families import reference as reference_family
from helpers.oracles.families import write as write_family
from helpers.oracles.gpt2_shapes import reference, transformers_keys, write
from helpers.oracles.hooks import Theirs, contexts, hooked, inputs_of, replacing
from model.lens.interventions.ablated_graph import OUTPUTS, Edge, Node, Pairs, all_of, edges_between, order
from model.lens.interventions.circuit import ablated, find_circuit
from model.lens.interventions.mlp_nodes import MLPGraph
from model.lens.interventions.patch_run import PatchRun, patch_run
from model.lens.interventions.sites import SITES
from model.lens.progress import ignore
from model.lens.text_pass import TextPass

TOLERANCE = 1e-4
N_TOKENS, ANSWER, WRONG = 9, 7, 3
Contexts = dict[int, Tensor]  # layer -> (T, n_head * head_dim)
Hook = Callable[..., Any]


class TheirGPT2:
    """A GPT-2 of transformers in which context vectors and projections are replaced."""

    def __init__(self, gpt: GPT2LMHeadModel) -> None:
        self.gpt = gpt.double()
        self.n_head = gpt.config.n_head
        self.size = gpt.config.n_embd // self.n_head

    def span(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    @torch.inference_mode()
    def run(
        self, ids: list[int], contexts: Contexts, projected: tuple[int, Tensor] | None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The last logits, and every layer's projection and context vectors, with some of them replaced."""
        found: dict[str, Tensor] = {}

        def keep(name: str, index: int) -> Hook:
            return lambda _module, given, output: found.__setitem__(name, (given[0], output)[index][0])

        with ExitStack() as stack:
            for layer, block in enumerate(self.gpt.transformer.h):
                if projected is not None and projected[0] == layer:
                    value = projected[1][None]
                    hook: Hook = lambda _module, _given, _output, value=value: value  # noqa: E731
                    stack.enter_context(block.attn.c_attn.register_forward_hook(hook))
                if layer in contexts:
                    given = contexts[layer][None]
                    before: Hook = lambda _module, _given, given=given: (given,)  # noqa: E731
                    stack.enter_context(block.attn.c_proj.register_forward_pre_hook(before))
                stack.enter_context(block.attn.c_attn.register_forward_hook(keep(f"qkv{layer}", 1)))
                stack.enter_context(block.attn.c_proj.register_forward_hook(keep(f"z{layer}", 0)))
            return self.gpt(torch.tensor([ids])).logits[0, -1], found

    def difference(self, run: PatchRun, edges: list[Edge]) -> float:
        """The logit difference with these edges alone."""
        clean, corrupted = run.into.ids, run.source.ids
        n_layer = len(self.gpt.transformer.h)
        plain = self.run(corrupted, {})[1]
        values: dict[Node, Tensor] = {}

        def reaching(layer: int, receiver: Node | None, way: str | None) -> Contexts:
            contexts = {below: plain[f"z{below}"].clone() for below in range(layer)}
            for edge in edges:
                if (edge.receiver, edge.way) == (receiver, way):
                    contexts[edge.sender[0]][:, self.span(edge.sender[1])] = values[edge.sender]
            return contexts

        for layer, head in sorted({edge.sender for edge in edges}):
            parts = []
            for i, way in enumerate("qkv"):
                qkv = self.run(clean, reaching(layer, (layer, head), way))[1][f"qkv{layer}"]
                parts.append(qkv.chunk(3, -1)[i])
            z = self.run(clean, {}, projected=(layer, torch.cat(parts, -1)))[1][f"z{layer}"]
            values[layer, head] = z[:, self.span(head)]
        logits = self.run(clean, reaching(n_layer, None, None))[0]
        return float(logits[ANSWER] - logits[WRONG])


@pytest.fixture(params=["plain", "scaled by layer", "untied head"])
def gpt2(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TheirGPT2, PatchRun]:
    gpt = reference(**transformers_keys(request.param))
    loaded = model.load(write(gpt, tmp_path), device="cpu", dtype="float32")
    texts = [TextPass(loaded.gpt, prompt_ids(N_TOKENS, loaded.config.vocab_size, seed)) for seed in (0, 1)]
    return TheirGPT2(gpt), patch_run(*texts, answer=ANSWER, wrong=WRONG, direction="noise")


def test_cut_edges_equal_hooks_on_transformers(gpt2: tuple[TheirGPT2, PatchRun]) -> None:
    theirs, run = gpt2
    config, graph = run.into.config, Pairs([run]).graphs[0]
    edges = edges_between([(layer, head) for layer in range(config.n_layer) for head in range(config.n_head)])
    chosen = torch.rand(3, len(edges), generator=torch.Generator().manual_seed(0)) < torch.tensor([[0.8], [0.4], [0.1]])
    found = graph.with_edges(edges, torch.cat([chosen, all_of(edges), all_of(edges, edges)]))
    for difference, choice in zip(found[:3].tolist(), chosen.tolist(), strict=True):
        kept = [edge for edge, is_kept in zip(edges, choice, strict=True) if is_kept]
        assert difference == pytest.approx(theirs.difference(run, kept), abs=TOLERANCE)
    assert float(found[3]) == pytest.approx(run.clean, abs=TOLERANCE)
    every = {edge.sender for edge in edges}
    one_cut = graph.with_edges(edges, ~torch.eye(len(edges), dtype=torch.bool))
    assert max_difference(graph.without_each_edge(sorted(every), ignore), one_cut) < TOLERANCE
    some = sorted(every)[::2]
    one_cut = graph.with_edges(edges_between(some), ~torch.eye(len(edges_between(some)), dtype=torch.bool))
    assert max_difference(graph.without_each_edge(some, ignore), one_cut) < TOLERANCE
    assert float(found[4]) == pytest.approx(theirs.difference(run, []), abs=TOLERANCE)
    assert float(graph.without(every)) == pytest.approx(float(found[4]), abs=TOLERANCE)
    assert float(graph.without(set())) == pytest.approx(run.clean, abs=TOLERANCE)


def test_ablated_heads_equal_hooks_on_transformers(gpt2: tuple[TheirGPT2, PatchRun]) -> None:
    theirs, run = gpt2
    plain, config = theirs.run(run.source.ids, {})[1], run.into.config
    removed = {(layer, head) for layer in range(config.n_layer) for head in range(config.n_head) if (layer + head) % 2}
    contexts: Contexts = {}
    for layer in range(config.n_layer):
        contexts[layer] = theirs.run(run.into.ids, contexts)[1][f"z{layer}"].clone()
        for head in range(config.n_head):
            if (layer, head) in removed:
                contexts[layer][:, theirs.span(head)] = plain[f"z{layer}"][:, theirs.span(head)]
    logits = theirs.run(run.into.ids, contexts)[0]
    found = Pairs([run]).graphs[0].without(removed)
    assert float(found) == pytest.approx(float(logits[ANSWER] - logits[WRONG]), abs=TOLERANCE)


def test_what_a_found_circuit_says_equals_hooks_on_transformers(gpt2: tuple[TheirGPT2, PatchRun]) -> None:
    theirs, run = gpt2
    found = find_circuit([run])

    def share(edges: list[Edge]) -> float:
        return (theirs.difference(run, edges) - run.corrupted) / (run.clean - run.corrupted)

    edges = [each.edge for each in found.edges]
    assert found.kept == pytest.approx(share(edges), abs=1e-3) and abs(1 - found.kept) <= 0.1 + 1e-3
    for each in found.edges[:: max(1, len(edges) // 6)]:
        without = share([edge for edge in edges if edge != each.edge])
        assert each.lost == pytest.approx(found.kept - without, abs=1e-3)
    assert {(head.layer, head.head) for head in found.heads} == {edge.sender for edge in edges}
    assert found.pairs[0].kept == pytest.approx(found.kept, abs=1e-5)


# ---- MLPs as nodes ---------------------------------------------------------------------------------------------------


class Nodes:
    """The nodes of transformers' model: what they write in the corrupted prompt, and how they are put into a pass."""

    def __init__(self, theirs: Theirs, run: PatchRun) -> None:
        self.theirs, self.run = theirs, run
        self.ids, self.layers = run.into.ids, range(theirs.n_layer)
        self.contexts = contexts(theirs, run.source.ids)
        self.mlps = self.outputs(run.source.ids)

    def adder(self, layer: int) -> Any:
        """The module whose output the layer adds to the stream after attention."""
        names = self.theirs.names
        return self.theirs.part_of(layer, "post_2" if names.post_2 else "mlp" if names.mlp else "last")

    def outputs(self, ids: list[int]) -> list[Tensor]:
        """What each MLP adds to the stream, ``(T, C)``."""
        found: dict[int, Tensor] = {}
        with ExitStack() as stack:
            for layer in self.layers:
                hook = lambda _module, _given, y, layer=layer: found.__setitem__(layer, y.flatten(0, -2))  # noqa: E731
                stack.enter_context(hooked(self.adder(layer), hook))
            self.theirs(ids)
        return [found[layer] for layer in self.layers]

    def without(self, removed: set[Node]) -> float:
        with ExitStack() as stack:
            for layer, head in removed:
                if head is None:
                    hook = lambda _module, _given, y, layer=layer: self.mlps[layer].view_as(y)  # noqa: E731
                    stack.enter_context(hooked(self.adder(layer), hook))
                else:
                    span = self.theirs.span(head)
                    hook = replacing(span, self.contexts[str(layer)][:, span])
                    stack.enter_context(hooked(self.theirs.output(layer), hook, before=True))
            return self.measure(self.theirs(self.ids).logits[0, -1])

    @staticmethod
    def measure(logits: Tensor) -> float:
        return float(logits[ANSWER] - logits[WRONG])

    def stream(self, receiver: Node | None, incoming: dict[Node, Tensor]) -> Tensor:
        """The sum of what all earlier nodes add: those ``incoming`` with their values, the others ablated."""
        layer = len(self.layers) if receiver is None else receiver[0]
        x = inputs_of(self.theirs, {"x": self.theirs.layer(0)}, self.ids)["x"]
        reads_attention = receiver is not None and receiver[1] is None and not self.run.into.config.parallel
        for below in range(layer + reads_attention):
            context = self.contexts[str(below)].clone()
            for (where, head), value in incoming.items():
                if where == below and head is not None:
                    context[:, self.theirs.span(head)] = value
            x = x + self.theirs.part_of(below, "post_1")(self.theirs.output(below)(context))
            if below < layer:
                x = x + incoming.get((below, None), self.mlps[below])
        return x

    def with_edges(self, edges: list[Edge]) -> float:
        theirs, values = self.theirs, dict[Node, Tensor]()

        def reaching(receiver: Node | None, way: str | None) -> Tensor:
            chosen = {edge.sender: values[edge.sender] for edge in edges if edge[1:] == (receiver, way)}
            return self.stream(receiver, chosen)

        for layer, head in sorted({edge.sender for edge in edges}, key=order):
            if head is None:
                read = theirs.part_of(layer, "norm_2")(reaching((layer, None), None))
                values[layer, None] = theirs.part_of(layer, "post_2")(theirs.mlp(layer, read))
                continue
            seen = {way: theirs.part_of(layer, "norm_1")(reaching((layer, head), way)) for way in "qkv"}
            projected = {way: theirs.projection(layer, way)(seen[way])[None] for way in "qkv"}
            put = [projected[way] for way in "qkv"]
            if theirs.is_fused:
                parts = [each.unflatten(-1, (theirs.n_head, 3, theirs.size)) for each in put]
                put = [torch.stack([part[..., i, :] for i, part in enumerate(parts)], -2).flatten(-3)]
            with ExitStack() as stack:
                for module, value in zip(theirs.projections(layer), put, strict=True):
                    stack.enter_context(hooked(module, lambda *_, value=value: value))
                values[layer, head] = contexts(theirs, self.ids)[str(layer)][:, theirs.span(head)]
        return self.measure(theirs.head(theirs.norm(reaching(None, None)))[-1])


@pytest.fixture(params=one_of_each_kind(ONE_OF_EACH))
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Nodes, MLPGraph]:
    gpt = reference_family(request.param)
    loaded = model.load(write_family(gpt, tmp_path), device="cpu", dtype="float32")
    texts = [TextPass(loaded.gpt, prompt_ids(N_TOKENS, loaded.config.vocab_size, seed)) for seed in (0, 1)]
    run = patch_run(*texts, answer=ANSWER, wrong=WRONG, direction="noise")
    theirs = Theirs(gpt)
    theirs.gpt.double()
    with torch.inference_mode():
        return Nodes(theirs, run), MLPGraph(run)


@torch.inference_mode()
def test_cut_direct_paths_equal_hooks_on_transformers(both: tuple[Nodes, MLPGraph]) -> None:
    theirs, graph = both
    edges = graph.edges_between(graph.nodes())
    chosen = torch.rand(2, len(edges), generator=torch.Generator().manual_seed(0)) < torch.tensor([[0.8], [0.3]])
    found = graph.with_edges(edges, torch.cat([chosen, all_of(edges), all_of(edges, edges)]))
    for difference, choice in zip(found[:2].tolist(), chosen.tolist(), strict=True):
        kept = [edge for edge, is_kept in zip(edges, choice, strict=True) if is_kept]
        assert difference == pytest.approx(theirs.with_edges(kept), abs=TOLERANCE)
    assert found[2:].tolist() == pytest.approx([graph.run.clean, theirs.without(set(graph.nodes()))], abs=TOLERANCE)
    some = graph.nodes()[::2]
    edges = graph.edges_between(some)
    one_cut = graph.with_edges(edges, ~torch.eye(len(edges), dtype=torch.bool))
    assert max_difference(graph.without_each_edge(some, ignore), one_cut) < TOLERANCE


@torch.inference_mode()
def test_ablated_nodes_equal_hooks_on_transformers(both: tuple[Nodes, MLPGraph]) -> None:
    theirs, graph = both
    for removed in (graph.nodes()[::2], graph.nodes()[1::3], graph.nodes(), []):
        assert float(graph.without(removed)) == pytest.approx(theirs.without(set(removed)), abs=TOLERANCE)


@torch.inference_mode()
def test_replaced_nodes_equal_hooks_on_transformers(both: tuple[Nodes, MLPGraph]) -> None:
    """With zeros, and with the mean over several corrupted prompts at each position."""
    theirs, graph = both
    run, removed = graph.run, graph.nodes()[::2]
    others = [run.source, TextPass(run.into.gpt, prompt_ids(N_TOKENS, run.into.config.vocab_size, seed=2))]
    read = [(contexts(theirs.theirs, text.ids), theirs.outputs(text.ids)) for text in others]
    for ablation in ("zero", "mean"):
        instead = ablated(ablation, others, [SITES["z"], OUTPUTS])[0]  # type: ignore[arg-type]
        factor = 0.5 if ablation == "mean" else 0.0
        theirs.contexts = {layer: factor * (one + read[1][0][layer]) for layer, one in read[0][0].items()}
        theirs.mlps = [factor * (one + other) for one, other in zip(read[0][1], read[1][1], strict=True)]
        found = MLPGraph(run._replace(instead=instead)).without(removed)
        assert float(found) == pytest.approx(theirs.without(set(removed)), abs=TOLERANCE)


@torch.inference_mode()
def test_what_a_circuit_with_mlps_says_equals_hooks_on_transformers(both: tuple[Nodes, MLPGraph]) -> None:
    theirs, graph = both
    found = find_circuit([graph.run], mlps=True)

    def share(difference: float) -> float:
        return float(graph.share(torch.tensor(difference)))

    edges = [each.edge for each in found.edges]
    assert found.kept == pytest.approx(share(theirs.with_edges(edges)), abs=1e-3)
    assert found.without_heads == pytest.approx(share(theirs.without(set(graph.nodes()))), abs=1e-3)
    nodes: dict[Node, Any] = {(each.layer, each.head): each for each in found.heads}
    nodes |= {(each.layer, None): each for each in found.mlps}
    assert nodes.keys() == {edge.sender for edge in edges} and found.route == "direct"
    for node, each in nodes.items():
        assert each.lost == pytest.approx(1 - share(theirs.without({node})), abs=1e-3)
