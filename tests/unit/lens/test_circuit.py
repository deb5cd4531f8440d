"""Circuits found in the shipped models, and how heads and edges are pruned."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch

import model
from helpers.files import ROOT
from helpers.models import prompt_ids, tiny_gpt
from model import InputError, LoadedModel
from model.lens.composition import WAYS
from model.lens.interventions import circuit as module
from model.lens.interventions.ablated_graph import Edge, Node, Pairs, dangling, edges_between
from model.lens.interventions.circuit import FoundCircuit, find_circuit, prune
from model.lens.interventions.criteria import check_criteria, subsets_of
from model.lens.interventions.patch_run import PatchRun, logit_difference, patch_run
from model.lens.interventions.patching import patch_each
from model.lens.interventions.sites import SITES
from model.lens.progress import Cancelled, ignore
from model.lens.text_pass import TextPass


def shipped(name: str) -> LoadedModel:
    return model.load(ROOT / "checkpoints" / name, device="cpu", dtype="float32")


def test_induction_is_found_from_repeated_random_tokens() -> None:
    """In the corrupted prompt, the token that comes again and another one swap places at its first occurrence."""
    loaded, generator = shipped("two-layer-steps"), torch.Generator().manual_seed(0)
    runs = []
    for _ in range(8):
        tokens = torch.randperm(loaded.config.vocab_size, generator=generator)[:20].tolist()
        swapped = list(tokens)
        swapped[5], swapped[12] = tokens[12], tokens[5]
        texts = [TextPass(loaded.gpt, [*first, tokens[5]]) for first in (tokens, swapped)]
        runs.append(patch_run(*texts, answer=tokens[6], wrong=tokens[13], direction="noise"))
    states = list[Any]()
    found = find_circuit(runs, so_far=states.append)
    labels = loaded.roles().labels
    previous, induction = (head.layer * 4 + head.head for head in found.heads)
    assert [labels[i // 4][i % 4] for i in (previous, induction)] == ["previous token", "induction"]
    sender, receiver = divmod(previous, 4), divmod(induction, 4)
    assert [each.edge for each in found.edges] == [Edge(sender, receiver, "k"), Edge(receiver, None, None)]
    assert 0.9 <= found.kept <= 1.1 and abs(found.without_heads) < 1e-3
    first, second = found.heads
    assert (first.position, first.key) == (6, 5)  # it writes, where the answer stands, what came before it
    assert (second.position, second.key) == (20, 6)
    assert all(each.lost > 0.5 for each in found.edges)
    assert "not through other heads. Lost without each:" in str(found) and "L0 H2 -> k of L1 H2" in str(found)
    check_states(states, found)
    assert re.search(r"<td[^>]*>L0 H2</td><td[^>]*>k of L1 H2</td>", found._repr_html_())


def check_states(states: Sequence[Any], found: FoundCircuit) -> None:
    """What was left, step by step: fewer and fewer nodes, then edges between them, and never less than was found."""
    sizes = [(len(each["nodes"]), each["n_edges"]) for each in states]
    pruned, cut = [(n, m) for n, m in sizes if m is None], [(n, m) for n, m in sizes if m is not None]
    assert sizes == [*pruned, *cut] and pruned == sorted(pruned, reverse=True) and cut == sorted(cut, reverse=True)
    assert len(cut) > 1 and cut[-1][1] >= len(found.edges)
    left = [(each["sender"], each["receiver"], each["way"]) for each in states[-1]["edges"]]
    assert {each.edge for each in found.edges} <= set(left)
    lost = {(each["layer"], each["head"]): each["lost"] for each in states[-1]["nodes"]}
    assert all(lost[each.layer, each.head] == each.lost for each in found.heads)


def test_heads_chosen_by_attribution_patching(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimates choose which heads are patched; all that is said of these is exact."""
    loaded, text = shipped("stories-bpe"), "Once there was a child named{}. One day,"
    rows = [{"prompt": text.format(" Lily"), "corrupted": text.format(" Mia"), "answer": " Lily", "wrong": " Mia"}]
    options = {"direction": "noise", "answer": " Lily", "wrong": " Mia"}
    texts = [row[name] for row in rows for name in ("prompt", "corrupted")]
    sites = loaded.patch_site(*texts, "z", positions="all", estimate=True, **options)  # type: ignore[arg-type]
    assert sites.exact is not None and sites.estimate is not None
    monkeypatch.setattr(module, "MAX_NODES", 12)
    estimated = (1 - sites.estimate).abs().flatten().topk(12).indices.tolist()
    exact = 1 - sites.exact
    found = loaded.circuit(rows, method="attribution")
    assert {8 * each.layer + each.head for each in found.heads} <= set(estimated)
    assert found.kept >= 0.9 and all(abs(each.lost - exact[each.layer, each.head]) < 1e-4 for each in found.heads)
    with pytest.raises(InputError, match="'exact' or 'attribution'"):
        loaded.circuit(rows, method="mean")  # type: ignore[arg-type]


def test_a_head_that_cannot_be_removed_is_measured_whatever_was_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this model, a head that the estimates leave out is needed, while some of those that they choose are not."""
    monkeypatch.setattr(module, "MAX_NODES", 4)
    gpt, ids = tiny_gpt(12, n_head=4), prompt_ids(8, seed=12)
    changed = [*ids[:3], (ids[3] + 1) % 65, *ids[4:]]
    run = patch_run(TextPass(gpt, ids), TextPass(gpt, changed), answer=1, wrong=2, direction="noise")
    exact = 1 - Pairs([run]).kept([patch_each(run, SITES["z"], each_position=False)])
    found = find_circuit([run], method="attribution").heads
    assert (0, 0) in [(each.layer, each.head) for each in found]
    assert all(each.lost == pytest.approx(float(exact[each.layer, each.head]), abs=1e-4) for each in found)


@pytest.mark.slow
def test_heads_that_copy_a_name_are_found() -> None:
    loaded = shipped("stories-bpe")
    names = [(" Lily", " Mia"), (" Tim", " Tom")]
    text = "Once there was a child named{}. One day,"
    rows = [
        {"prompt": text.format(one), "corrupted": text.format(other), "answer": one, "wrong": other}
        for one, other in names
    ]
    found = loaded.circuit(rows)
    assert 0.9 <= found.kept <= 1.1
    to_logits = [each.edge.sender for each in found.edges if each.edge.receiver is None]
    assert to_logits
    for layer, head in to_logits:
        assert loaded.token_circuit(layer, head).eigenvalue_score > 0.9
    (name,) = loaded.tokenizer.encode(names[0][0])
    for each in found.heads:
        if (each.layer, each.head) in to_logits:
            assert each.promoted[0] == name == loaded.tokenizer.encode(text.format(" Lily"))[each.key]
    assert [pair.answer for pair in found.pairs] == [loaded.tokenizer.encode(one)[0] for one, _ in names]


@pytest.mark.parametrize("useless", [set(), {3}, {0, 1, 2, 3}, {1, 2, 5, 6}, set(range(9))])
def test_pruning_removes_exactly_the_unneeded_items(useless: set[int]) -> None:
    fractions: list[float] = []
    removed = prune(range(9), lambda some, _: some <= useless, fractions.append)
    assert removed == useless
    assert fractions == sorted(fractions) and fractions[-1] == 1


def test_pruning_ends_after_so_many_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRIES", 5)
    assert prune(range(100), lambda some, _: max(some) < 20, ignore) == set(range(12))


def test_edges_between_nodes() -> None:
    heads = edges_between([(0, 0), (1, 1), (2, 0)])
    assert len(heads) == 3 * 3 + 3 and not dangling(heads)
    nodes: list[Node] = [(0, 1), (0, None), (1, 0)]
    assert edges_between(nodes) == [
        Edge((0, 1), (0, None), None),
        *(Edge((0, 1), (1, 0), way) for way in WAYS),
        *(Edge((0, None), (1, 0), way) for way in WAYS),
        *(Edge(node, None, None) for node in nodes),
    ]
    assert Edge((0, 1), (0, None), None) not in edges_between(nodes, parallel=True)
    assert dangling([Edge((0, 1), (0, None), None), Edge((1, 0), None, None)]) == {Edge((0, 1), (0, None), None)}


def test_edges_that_lead_nowhere() -> None:
    kept = [Edge((0, 0), (1, 1), "q"), Edge((1, 1), (2, 0), "k"), Edge((0, 0), None, None)]
    assert dangling(kept) == set(kept[:2])


def random_run(seed: int = 0, answer: int = 1, wrong: int = 2) -> PatchRun:
    gpt = tiny_gpt(0, n_layer=3, n_head=4)
    texts = [TextPass(gpt, prompt_ids(12, seed=seed + other)) for other in (0, 1)]
    return patch_run(*texts, answer=answer, wrong=wrong, direction="noise")


def test_progress_never_decreases_and_may_cancel() -> None:
    fractions: list[float] = []
    find_circuit([random_run(), random_run(5)], progress=fractions.append)
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] == pytest.approx(1)

    def cancel(fraction: float) -> None:
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        find_circuit([random_run()], progress=cancel)


@pytest.mark.parametrize("mlps", [False, True])
def test_a_strict_bound_keeps_the_model_whole(mlps: bool) -> None:
    found = find_circuit([random_run()], max_lost=1e-9, mlps=mlps)
    assert found.kept == pytest.approx(1, abs=1e-4) and len(found.heads) == 12
    assert [each.layer for each in found.mlps] == ([0, 1, 2] if mlps else [])
    assert ("L1 MLP -> logits" in str(found)) == ("direct path" in found.summary) == mlps


def test_pairs_whose_effects_cancel_are_refused() -> None:
    with pytest.raises(InputError, match="cancel"):
        find_circuit([random_run(), random_run(answer=2, wrong=1)])


def test_criteria_are_the_differences_that_they_are_defined_by() -> None:
    """Computed anew from single ablations of the same subsets."""
    pairs = Pairs([random_run(), random_run(5)])
    circuit: list[Node] = [(0, 0), (0, 1), (1, 0)]
    everything = set(pairs.nodes())
    found = check_criteria(pairs, circuit, ignore)

    def kept(heads: set[Node]) -> float:
        return pairs.without(everything - heads)

    gaps, changes = list[float](), {head: list[float]() for head in circuit}
    for subset in map(set, subsets_of(circuit)):
        rest = set(circuit) - subset
        gaps.append(abs(kept(rest) - kept(everything - subset)))
        for head in rest:
            changes[head].append(abs(kept(rest - {head}) - kept(rest)))
    assert found.incompleteness == pytest.approx(max(gaps), abs=1e-5)
    assert found.minimality == pytest.approx({head: max(each) for head, each in changes.items()}, abs=1e-5)
    assert check_criteria(pairs, pairs.nodes(), ignore).incompleteness == pytest.approx(0, abs=1e-5)


def test_a_mean_is_taken_over_the_corrupted_prompts_at_each_position() -> None:
    loaded, text = shipped("two-layer-steps"), list(range(10, 22))
    rows = [
        {"prompt": [*text, first], "corrupted": [*text[:-1], other, first], "answer": 5, "wrong": 6}
        for first, other in ((11, 40), (12, 50))
    ]
    found = loaded.circuit(rows, ablation="mean")
    sources = [TextPass(loaded.gpt, row["corrupted"]) for row in rows]
    mean = torch.stack([torch.stack([each.context(layer)[0] for layer in range(2)]) for each in sources]).mean(0)
    gone = []
    for row in rows:
        clean = TextPass(loaded.gpt, row["prompt"])
        final = clean.run_from(0, clean.stream[0], lambda layer, context: mean[layer][None].expand_as(context))
        gone.append(float(logit_difference(loaded.gpt, 5, 6, final)))
    clean, corrupted = (sum(getattr(pair, name) for pair in found.pairs) for name in ("clean", "corrupted"))
    assert found.without_heads == pytest.approx((sum(gone) - corrupted) / (clean - corrupted), abs=1e-3)
    rows[1]["prompt"], rows[1]["corrupted"] = rows[1]["prompt"][1:], rows[1]["corrupted"][1:]
    with pytest.raises(InputError, match="prompts of one length in tokens, found 12 and 13"):
        loaded.circuit(rows, ablation="mean")
    with pytest.raises(InputError, match="'resample', 'mean' or 'zero'"):
        loaded.circuit(rows, ablation="none")  # type: ignore[arg-type]
