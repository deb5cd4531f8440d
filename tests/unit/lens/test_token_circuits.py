"""Circuits over tokens and MLP neurons, compared with whole matrices over the vocabulary in float64."""

import copy
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import model
from helpers.files import ROOT
from helpers.models import max_difference, prompt_ids, tiny_gpt
from model.gpt import GPT
from model.lens import neurons
from model.lens import token_circuits as module
from model.lens.neurons import follow_neuron
from model.lens.passages import MIN_DISTANCE
from model.lens.token_circuits import eigenvalue_score, vocabulary_circuit

V, SIZE = 65, 6


@pytest.fixture
def gpt() -> GPT:
    """A GPT of 3 layers with 4 heads, and an output head of its own."""
    return tiny_gpt(3, n_layer=3, n_head=4, n_embd=4 * SIZE, tie_word_embeddings=False)


def weights(gpt: GPT) -> dict[str, Tensor]:
    return {name: tensor.double() for name, tensor in gpt.state_dict().items()}


def norm(w: dict[str, Tensor], name: str, x: Tensor, bias: bool = True) -> Tensor:
    y = F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"])
    return y + w[f"{name}.bias"] if bias else y


def alone(w: dict[str, Tensor], layer: int) -> Tensor:
    """Every token's embedding, plus the first MLP's output after the first layer: ``(V, C)``."""
    x = w["wte.weight"]
    if layer == 0:
        return x
    hidden = norm(w, "h.0.ln_2", x) @ w["h.0.mlp.c_fc.weight"].T + w["h.0.mlp.c_fc.bias"]
    return x + F.gelu(hidden, approximate="tanh") @ w["h.0.mlp.c_proj.weight"].T + w["h.0.mlp.c_proj.bias"]


def part(w: dict[str, Tensor], layer: int, head: int, which: str) -> tuple[Tensor, Tensor]:
    """The matrix ``(C, head_dim)`` and the bias of a head's queries, keys or values."""
    rows = slice(head * SIZE, (head + 1) * SIZE)
    weight = w[f"h.{layer}.attn.c_attn.weight"].chunk(3)["qkv".index(which)][rows]
    return weight.T, w[f"h.{layer}.attn.c_attn.bias"].chunk(3)["qkv".index(which)][rows]


def written(w: dict[str, Tensor], layer: int, head: int) -> Tensor:
    """What a head writes for every token, ``(V, C)``."""
    seen = norm(w, f"h.{layer}.ln_1", alone(w, layer), bias=False) @ part(w, layer, head, "v")[0]
    return seen @ w[f"h.{layer}.attn.c_proj.weight"][:, head * SIZE : (head + 1) * SIZE].T


def gained(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """The norm without its bias and division."""
    return (x - x.mean(-1, keepdim=True)) * w[f"{name}.weight"]


def whole_ov(w: dict[str, Tensor], layer: int, head: int, earlier: tuple[int, int] | None) -> Tensor:
    if earlier is None:
        added = written(w, layer, head)
    else:
        seen = gained(w, f"h.{layer}.ln_1", written(w, *earlier)) @ part(w, layer, head, "v")[0]
        added = seen @ w[f"h.{layer}.attn.c_proj.weight"][:, head * SIZE : (head + 1) * SIZE].T
    return gained(w, "ln_f", added) @ w["lm_head.weight"].T


def whole_qk(w: dict[str, Tensor], layer: int, head: int, earlier: tuple[int, int] | None, side: str | None) -> Tensor:
    seen = norm(w, f"h.{layer}.ln_1", alone(w, layer))
    q, k = (seen @ W + b for W, b in (part(w, layer, head, which) for which in "qk"))
    if earlier is not None:
        read = gained(w, f"h.{layer}.ln_1", written(w, *earlier)) @ part(w, layer, head, str(side))[0]
        q, k = (read, k) if side == "q" else (q, read)
    return q @ k.T / SIZE**0.5


CASES: list[dict[str, Any]] = [
    {"circuit": "ov", "layer": 0},
    {"circuit": "ov", "layer": 2},
    {"circuit": "ov", "layer": 2, "earlier": (0, 3)},
    {"circuit": "ov", "layer": 2, "earlier": (1, 1)},
    {"circuit": "qk", "layer": 0},
    {"circuit": "qk", "layer": 2},
    {"circuit": "qk", "layer": 1, "earlier": (0, 3), "side": "q"},
    {"circuit": "qk", "layer": 2, "earlier": (1, 2), "side": "k"},
]


@pytest.mark.parametrize("at_once", [None, 3 * V])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_circuits_equal_whole_matrices(
    gpt: GPT, case: dict[str, Any], at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if at_once is not None:
        monkeypatch.setattr(module, "LOGITS_AT_ONCE", at_once)
    w, head = weights(gpt), 2
    layer, earlier = case["layer"], case.get("earlier")
    if case["circuit"] == "ov":
        whole = whole_ov(w, layer, head, earlier)
    else:
        whole = whole_qk(w, layer, head, earlier, case.get("side"))
    fractions: list[float] = []
    found = vocabulary_circuit(gpt, head=head, **case, progress=fractions.append)
    scale = float(whole.abs().max())
    assert max_difference(found.left @ found.right.T, whole) < 1e-5 * scale
    for source in (None, 7):
        entries = whole if source is None else whole[source : source + 1]
        pairs = found.largest(50, source)
        expected = entries.flatten().topk(50).values
        assert max_difference(pairs.value, expected) < 1e-5 * scale
        assert max_difference(whole[pairs.source, pairs.target], expected) < 1e-5 * scale
        assert source is None or (pairs.source == source).all()
    eigenvalues = torch.linalg.eigvals(whole)
    largest = eigenvalues.abs().sort(descending=True).values
    assert max_difference(found.eigenvalues().abs(), largest[:SIZE]) < 1e-4 * float(largest[0])
    score = float(eigenvalues.real.sum() / largest.sum())
    assert eigenvalue_score(found.eigenvalues()) == pytest.approx(score, abs=1e-4)
    assert fractions == sorted(fractions) and fractions[-1] == 1


def test_all_pairs_may_be_requested(gpt: GPT) -> None:
    found = vocabulary_circuit(gpt, circuit="ov", layer=0, head=1)
    pairs = found.largest(V * V + 1)
    assert len({*zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)}) == V * V
    assert len(found.largest(V + 1, source=3).value) == V


def test_a_head_that_copies_has_the_score_1(gpt: GPT) -> None:
    """Its OV matrix is the projection to its own directions, in the space in which tokens are read."""
    for name, sign in (("copies", 1), ("suppresses", -1)):
        attn = gpt.h[0].attn
        gpt.ln_f.weight[:] = gpt.h[0].ln_1.weight[:] = 1
        gpt.lm_head.weight[:] = gpt.wte.weight
        attn.c_attn.weight[-4 * SIZE : -3 * SIZE] = torch.eye(4 * SIZE)[:SIZE]
        attn.c_proj.weight[:, :SIZE] = sign * torch.eye(4 * SIZE)[:, :SIZE]
        score = eigenvalue_score(vocabulary_circuit(gpt, circuit="ov", layer=0, head=0).eigenvalues())
        assert score == pytest.approx(sign, abs=1e-6), name
    attn.c_proj.weight[:, :SIZE] = 0
    assert eigenvalue_score(vocabulary_circuit(gpt, circuit="ov", layer=0, head=0).eigenvalues()) == 0


@pytest.mark.parametrize(
    ("asked", "field", "message"),
    [
        ({"layer": 3}, "layer", "from 0 to 2"),
        ({"head": 4}, "head", "from 0 to 3"),
        ({"circuit": "vo"}, "circuit", "'ov' or 'qk'"),
        ({"distance": 1}, "distance", "An OV circuit has no distance"),
        ({"circuit": "qk", "distance": 1}, "distance", "positions are not rotary"),
        ({"side": "q"}, "side", "with an earlier head, and nothing otherwise"),
        ({"circuit": "qk", "earlier": (0, 1)}, "side", "found null"),
        ({"circuit": "qk", "earlier": (0, 1), "side": "v"}, "side", "found 'v'"),
        ({"earlier": (2, 1)}, "earlier_layer", "a layer before layer 2"),
        ({"earlier": (0, 4)}, "earlier_head", "from 0 to 3"),
    ],
)
def test_impossible_circuits_are_refused(gpt: GPT, asked: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(model.InputError, match=message) as refused:
        vocabulary_circuit(gpt, **{"circuit": "ov", "layer": 2, "head": 0} | asked)
    assert refused.value.field == field


# ---- Neurons ---------------------------------------------------------------------------------------------------------


def test_a_neuron_in_a_text_that_fits_into_one_window(gpt: GPT) -> None:
    ids, index = prompt_ids(32), 5
    w, exact = weights(gpt), copy.deepcopy(gpt).double()
    x = exact.embed(torch.tensor([ids]))
    for layer in range(3):
        block = exact.h[layer]
        middle = x + block.attn(block.ln_1(x))[0]
        hidden = norm(w, f"h.{layer}.ln_2", middle) @ w[f"h.{layer}.mlp.c_fc.weight"].T
        expected = F.gelu(hidden + w[f"h.{layer}.mlp.c_fc.bias"], approximate="tanh")[0, :, index]
        found = follow_neuron(gpt, ids, layer=layer, neuron=index)
        first = found.highest[0]
        assert first.position == int(expected.argmax())
        assert first.activation == pytest.approx(float(expected.max()), abs=1e-5)
        shown = slice(first.start, first.start + len(first.activations))
        assert max_difference(torch.tensor(first.activations), expected[shown]) < 1e-5
        assert found.lowest[0].position == int(expected.argmin())
        assert found.mean == pytest.approx(float(expected.mean()), abs=1e-6)
        assert found.positive == pytest.approx(float((expected > 0).double().mean()))
        x = block(x, lambda block, y: block.attn(y)[0])


def test_places_of_a_long_text_are_apart_and_in_order(gpt: GPT) -> None:
    ids = prompt_ids(700)
    found = follow_neuron(gpt, ids, layer=1, neuron=0, top=8)
    for places, sign in ((found.highest, 1), (found.lowest, -1)):
        values = [sign * place.activation for place in places]
        assert len(places) == 8 and values == sorted(values, reverse=True)
        positions = sorted(place.position for place in places)
        assert all(b - a >= MIN_DISTANCE for a, b in pairwise(positions))
        for place in places:
            assert place.activations[place.position - place.start] == place.activation
    assert len(follow_neuron(gpt, ids[:1], layer=0, neuron=0).highest) == 1


def test_windows_are_read_together(gpt: GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several at once, the first and the last of other lengths; each token's activation is that in its own window."""
    ids, reports = prompt_ids(700), list[float]()
    together = follow_neuron(gpt, ids, layer=2, neuron=3, top=20, progress=reports.append)
    monkeypatch.setattr(neurons, "TOKENS_AT_ONCE", 1)
    alone = follow_neuron(gpt, ids, layer=2, neuron=3, top=20)
    assert [place.position for place in together.highest] == [place.position for place in alone.highest]
    for one, other in zip(together.highest, alone.highest, strict=True):
        assert one.activations == pytest.approx(other.activations, abs=1e-5)
    assert together.mean == pytest.approx(alone.mean, abs=1e-6)
    assert reports == sorted(reports) and reports[-1] == 1


def test_what_a_neuron_writes(gpt: GPT) -> None:
    w = weights(gpt)
    direction = w["h.1.mlp.c_proj.weight"][:, 3]
    expected = gained(w, "ln_f", direction) @ w["lm_head.weight"].T
    found = follow_neuron(gpt, [1, 2], layer=1, neuron=3, top=V).writes
    assert max_difference(found.raised, expected.sort(descending=True).values) < 1e-5
    assert max_difference(expected[found.suppressed], expected.sort().values) < 1e-5
    assert found.norm == pytest.approx(float(direction.norm()))


def test_the_induction_head_of_the_shipped_model_copies() -> None:
    loaded = model.load(ROOT / "checkpoints" / "two-layer-steps", device="cpu", dtype="float32")
    scores = [
        eigenvalue_score(vocabulary_circuit(loaded.gpt, circuit="ov", layer=1, head=head).eigenvalues())
        for head in range(4)
    ]
    assert scores[2] == max(scores) and scores[2] > 0.5
