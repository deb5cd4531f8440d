"""Circuits of GPT-2: heads ablated and edges cut one receiver at a time, with hooks in transformers in float64."""

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
from helpers.oracles.gpt2_shapes import reference, transformers_keys, write
from model.lens.interventions.ablated_graph import Edge, Pairs, all_of, edges_between
from model.lens.interventions.circuit import find_circuit
from model.lens.interventions.patch_run import PatchRun, patch_run
from model.lens.progress import ignore
from model.lens.text_pass import TextPass
from model.modules.head_tensors import Head

TOLERANCE = 1e-4
N_TOKENS, ANSWER, WRONG = 9, 7, 3
Contexts = dict[int, Tensor]  # layer -> (T, n_head * head_dim)
Hook = Callable[..., Any]


class Theirs:
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
        values: dict[Head, Tensor] = {}

        def reaching(layer: int, receiver: Head | None, way: str | None) -> Contexts:
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
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Theirs, PatchRun]:
    gpt = reference(**transformers_keys(request.param))
    loaded = model.load(write(gpt, tmp_path), device="cpu", dtype="float32")
    texts = [TextPass(loaded.gpt, prompt_ids(N_TOKENS, loaded.config.vocab_size, seed)) for seed in (0, 1)]
    return Theirs(gpt), patch_run(*texts, answer=ANSWER, wrong=WRONG, direction="noise")


def test_cut_edges_equal_hooks_on_transformers(both: tuple[Theirs, PatchRun]) -> None:
    theirs, run = both
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
    assert float(graph.without_heads(every)) == pytest.approx(float(found[4]), abs=TOLERANCE)
    assert float(graph.without_heads(set())) == pytest.approx(run.clean, abs=TOLERANCE)


def test_ablated_heads_equal_hooks_on_transformers(both: tuple[Theirs, PatchRun]) -> None:
    theirs, run = both
    plain, config = theirs.run(run.source.ids, {})[1], run.into.config
    removed = {(layer, head) for layer in range(config.n_layer) for head in range(config.n_head) if (layer + head) % 2}
    contexts: Contexts = {}
    for layer in range(config.n_layer):
        contexts[layer] = theirs.run(run.into.ids, contexts)[1][f"z{layer}"].clone()
        for head in range(config.n_head):
            if (layer, head) in removed:
                contexts[layer][:, theirs.span(head)] = plain[f"z{layer}"][:, theirs.span(head)]
    logits = theirs.run(run.into.ids, contexts)[0]
    found = Pairs([run]).graphs[0].without_heads(removed)
    assert float(found) == pytest.approx(float(logits[ANSWER] - logits[WRONG]), abs=TOLERANCE)


def test_what_a_found_circuit_says_equals_hooks_on_transformers(both: tuple[Theirs, PatchRun]) -> None:
    theirs, run = both
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
