"""A phrase read twice: against the model's own forward pass, and the induction head that a shipped model has formed."""

import pytest
import torch

import model
from helpers.files import ROOT
from helpers.models import tiny_model
from model.ladder import read_twice, scores_without
from model.lens.composition import composition

PHRASE = [5, 9, 3, 7, 1, 8]


@pytest.mark.parametrize("muted", [[], [(1, 0)], [(0, 1), (1, 2)]])
def test_the_reading_is_the_models_own(muted: list[tuple[int, int]]) -> None:
    gpt = tiny_model(2, n_layer=2, n_head=4, n_embd=32, context_length=16).gpt.eval()
    mask = torch.ones(2, 4)
    for place in muted:
        mask[place] = 0
    ids = torch.tensor([PHRASE * 2])
    with torch.inference_mode():
        forward = gpt(ids, record=range(2), head_mask=mask)
    found = read_twice(gpt, PHRASE, muted)
    expected = torch.nn.functional.cross_entropy(forward.logits[0, :-1], ids[0, 1:], reduction="none")
    torch.testing.assert_close(found.losses, expected)
    torch.testing.assert_close(found.weights[0], forward.attention[0][0])
    assert found.second_loss == pytest.approx(expected[6:].mean().item())
    by_hand = [float(found.weights[1, 2, query, query - 5]) for query in range(6, 12)]
    assert found.induction[1, 2].item() == pytest.approx(sum(by_hand) / 6)


def test_the_induction_head_needs_the_previous_token_head() -> None:
    folder = ROOT / "checkpoints" / "two-layer-steps"
    gpt = model.load(folder, device="cpu", dtype="float32").gpt
    phrase = torch.randint(300, 500, (16,), generator=torch.Generator().manual_seed(0)).tolist()
    read = read_twice(gpt, phrase)
    assert divmod(int(read.induction.argmax()), 4) == (1, 2) and read.induction.max() > 0.5
    assert read.second_loss < 0.5 < 4 < read.first_loss
    fed = scores_without(gpt, phrase, 1, 2)
    assert int(fed.argmin()) == int(read.previous_token.argmax()) == 2
    # Muting tells the heads apart; the composition of weights hardly does.
    (_, other), scores = fed.sort().values[0, :2], composition(gpt).scores["k"][1][2][0]
    assert fed.min() < other / 3 and scores.max() < 1.1 * scores.sort().values[-2]
    assert fed.min() < 0.1 and read_twice(gpt, phrase, [(0, 2)]).second_loss > read.second_loss + 2
    before = model.load(f"{folder}@000536", device="cpu", dtype="float32").gpt
    assert read_twice(before, phrase).induction[1, 2] < 0.1
