"""Composition scores compared with full matrices, and for heads constructed to read or to ignore each other."""

import pytest
import torch
from torch import Tensor

import model
from helpers.files import ROOT
from helpers.models import max_difference, tiny_gpt
from model.gpt import GPT
from model.lens.composition import WAYS, Way, composition


def whole_matrices(gpt: GPT, layer: int, head: int, centred: bool) -> dict[str, Tensor]:
    """W_OV and W_QK of a head as ``(C, C)`` in float64; row vectors are multiplied from the left."""
    block, C = gpt.h[layer], gpt.config.n_embd
    d = gpt.config.head_dim
    norm = torch.diag(block.ln_1.weight.double())
    if centred:
        norm = (torch.eye(C) - 1 / C).double() @ norm
    query, key, value = (norm @ w[d * head : d * head + d].T for w in block.attn.c_attn.weight.double().split(C))
    output = block.attn.c_proj.weight.double()[:, d * head : d * head + d]
    return {"ov": value @ output.T, "qk": query @ key.T}


@pytest.mark.parametrize("centred", [False, True])
def test_composition_equals_whole_matrices(centred: bool) -> None:
    gpt = tiny_gpt(2, n_layer=3, n_embd=24, n_head=4)
    found = composition(gpt, centred=centred)
    for later in range(3):
        assert all(found.scores[way][later].shape == (4, later, 4) for way in WAYS)
        for head in range(4):
            own = whole_matrices(gpt, later, head, centred)
            for earlier in range(later):
                for other in range(4):
                    ov = whole_matrices(gpt, earlier, other, centred)["ov"]
                    ways: dict[Way, Tensor] = {"q": own["qk"], "k": own["qk"].T, "v": own["ov"]}
                    for way, matrix in ways.items():
                        expected = (ov @ matrix).norm() / (ov.norm() * matrix.norm())
                        assert float(found.scores[way][later][head, earlier, other]) == pytest.approx(float(expected))


def test_a_head_that_reads_exactly_what_another_writes() -> None:
    """Layer 0 writes its four directions per head; layer 1's head 0 has keys from those of head 1 alone."""
    gpt = tiny_gpt(0, n_embd=16, n_head=4)
    first, second = gpt.h[0].attn, gpt.h[1].attn
    gpt.h[1].ln_1.weight[:] = 1
    first.c_proj.weight[:] = torch.eye(16)  # head h writes into the dimensions 4h to 4h + 3
    second.c_attn.weight[16:20] = 0
    second.c_attn.weight[16:20, 4:8] = torch.eye(4)
    scores = composition(gpt).scores["k"][1][0, 0]
    assert scores[1] > 0.3 and scores[[0, 2, 3]].abs().max() < 1e-7
    second.c_attn.weight[16:20] = 0
    assert composition(gpt).scores["k"][1][0].abs().max() == 0  # rather than 0 / 0


def test_deviations_are_those_over_random_rotations() -> None:
    """The closed form, compared with many orthogonal matrices drawn at random."""
    gpt, n = tiny_gpt(2, n_layer=2, n_embd=12, n_head=2), 20_000
    gpt.h[0].attn.c_proj.weight[:, 0] *= 5  # singular values that differ
    found = composition(gpt)
    drawn = torch.linalg.qr(torch.randn(n, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    rotations = drawn[0] * drawn[1].diagonal(dim1=1, dim2=2).sign()[:, None]  # uniform over the orthogonal group
    ov = whole_matrices(gpt, 0, 0, False)["ov"]
    own = whole_matrices(gpt, 1, 1, False)
    ways: dict[Way, Tensor] = {"q": own["qk"], "k": own["qk"].T, "v": own["ov"]}
    for way, matrix in ways.items():
        scale = ov.norm() * matrix.norm()
        squares = ((ov @ rotations @ matrix).flatten(1).norm(dim=1) / scale).square()
        assert float(squares.mean().sqrt()) == pytest.approx(found.chance, rel=0.02)
        expected = (((ov @ matrix).norm() / scale).square() - 1 / 12) / squares.std()
        assert float(found.deviations[way][1][1, 0, 0]) == pytest.approx(float(expected), rel=0.05, abs=0.02)


def test_the_shipped_model_with_an_induction_head() -> None:
    """The previous-token head L0 H2 comes first among those that feed the induction head L1 H2, by 2 % only."""
    loaded = model.load(ROOT / "checkpoints" / "two-layer-steps", device="cpu", dtype="float32")
    found = composition(loaded.gpt)
    expected = torch.tensor([0.083, 0.103, 0.105, 0.084])
    assert max_difference(found.scores["k"][1][2, 0], expected) < 0.0005
    assert max_difference(composition(loaded.gpt, centred=True).scores["k"][1][2, 0], expected) < 0.001
    above = found.deviations["k"][1][2, 0]
    assert found.chance == pytest.approx(160**-0.5)
    assert above[1] > 10 and above[2] > 10 and above[[0, 3]].max() < 3
