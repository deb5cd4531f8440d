"""Attribution, four measures of a head, logit lens and ledger beyond what the comparison with transformers covers."""

import math
import random

import pytest
import torch

import model
from helpers.files import ROOT
from helpers.models import max_difference, prompt_ids, tiny_gpt
from model.lens import one_head
from model.lens.attribution import attribution
from model.lens.float32 import in_float32
from model.lens.ledger import ledger
from model.lens.logit_lens import decided_at, logit_lens
from model.lens.one_head import EDGES_AT_A_TIME, spearman
from model.lens.text_pass import TextPass

IDS = prompt_ids(10)
SHIPPED = sorted(path.parent.name for path in ROOT.glob("checkpoints/*/config.json"))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_parts_of_a_shipped_model_add_up_to_the_logit(name: str) -> None:
    loaded = model.load(ROOT / "checkpoints" / name, device="cpu")
    ids = prompt_ids(60, loaded.config.vocab_size)
    text, expected = TextPass(in_float32(loaded.gpt), ids), loaded.trace(ids).logits
    for position in (0, 30, 59):
        token = int(expected[position].argmax())
        found = attribution(text, position=position, token=token)
        assert found.difference <= 1e-4
        assert found.sum == pytest.approx(float(expected[position, token]), abs=1e-3)
        assert found.probability == pytest.approx(float(expected[position].softmax(-1)[token]), abs=1e-4)


def test_a_head_that_is_muted_has_no_part() -> None:
    gpt = tiny_gpt(n_layer=3)
    mask = torch.tensor([[1.0, 0.0], [2.0, 1.0], [1.0, 1.0]])
    text = TextPass(gpt, IDS, mask)
    found = attribution(text, position=9, token=3)
    assert found.heads[0, 1] == 0 and found.difference <= 1e-4
    muted = one_head.head(text, layer=0, head=1, position=9, token=3)
    assert not muted.norm.any() and not muted.attribution.any() and muted.loss_change.abs().max() < 1e-6
    doubled = one_head.head(text, layer=1, head=0, position=9, token=3)
    assert float(doubled.attribution.sum()) == pytest.approx(float(found.heads[1, 0]), abs=1e-5)
    assert max(ledger(text, layer=1, head=0, query=9, key=4, token=3).errors.values()) < 1e-5


def test_a_model_without_query_key_and_value_biases() -> None:
    text = TextPass(tiny_gpt(qkv_bias=False, scale_attn_weights=False), IDS)
    assert attribution(text, position=9, token=3).difference <= 1e-4
    assert ledger(text, layer=1, head=1, query=9, key=0, token=3).scale == 1


def test_all_edges_of_one_key() -> None:
    """For the first token the only edge is the whole head."""
    gpt = tiny_gpt(n_layer=3)
    found = one_head.head(TextPass(gpt, IDS[:1]), layer=1, head=1, position=0, token=3)
    mask = torch.ones(3, 2)
    mask[1, 1] = 0
    losses = [-gpt(torch.tensor([IDS[:1]]), head_mask=m).logits[0, 0].log_softmax(-1)[3] for m in (None, mask)]
    assert float(found.loss_change[0]) == pytest.approx(float(losses[1] - losses[0]), abs=1e-5)
    assert found.removed == (pytest.approx(float(losses[1] - losses[0]), abs=1e-5), None)
    assert set(found.correlations().values()) == {None}


def test_the_whole_head_removed_is_a_pass_with_that_head_masked() -> None:
    gpt, ids = tiny_gpt(n_layer=3), torch.tensor([IDS])
    found = one_head.head(TextPass(gpt, IDS), layer=0, head=1, position=6, token=3).removed
    mask = torch.ones(3, 2)
    mask[0, 1] = 0
    plain, masked = (gpt(ids, head_mask=m).logits[0].log_softmax(-1) for m in (None, mask))
    assert found.token == pytest.approx(float(plain[6, 3] - masked[6, 3]), abs=1e-5)
    changes = (plain - masked)[:-1].gather(1, ids[0, 1:, None])
    assert found.text == pytest.approx(float(changes.mean()), abs=1e-5)


def test_the_difference_of_two_logits() -> None:
    text = TextPass(tiny_gpt(n_layer=3), IDS)
    one, other = (attribution(text, position=9, token=token) for token in (3, 8))
    found = attribution(text, position=9, token=3, against=8)
    assert max_difference(found.heads, one.heads - other.heads) < 1e-5
    assert found.logit == pytest.approx(one.logit - other.logit, abs=1e-5) and found.difference < 1e-5
    assert found.biases == pytest.approx(one.biases - other.biases, abs=1e-5)


def test_spearman_with_ties_against_a_loop() -> None:
    draw = random.Random(0)
    for _ in range(20):
        one, other = ([draw.randrange(6) for _ in range(12)] for _ in range(2))

        def rank(values: list[int], value: int) -> float:
            return sum(v < value for v in values) + (values.count(value) - 1) / 2

        a, b = ([rank(values, value) - 5.5 for value in values] for values in (one, other))
        expected = sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(
            sum(x * x for x in a) * sum(y * y for y in b)
        )
        assert spearman(torch.tensor(one), torch.tensor(other)) == pytest.approx(expected)
    rising = torch.arange(5.0)
    assert spearman(rising, rising.exp()) == pytest.approx(1) and spearman(rising, -rising) == pytest.approx(-1)
    assert spearman(rising, torch.ones(5)) is None and spearman(rising[:2], rising[:2]) is None


def test_correlations_with_unsigned_measures_use_magnitudes() -> None:
    found = one_head.head(TextPass(tiny_gpt(), IDS), layer=1, head=0, position=9, token=3)
    pairs = found.correlations()
    assert len(pairs) == 6
    assert pairs["weight", "attribution"] == spearman(found.weight, found.attribution.abs())
    assert pairs["attribution", "loss_change"] == spearman(found.attribution, found.loss_change)


def test_where_a_token_is_decided() -> None:
    tokens = torch.tensor([[5, 1, 9, 4], [5, 2, 4, 4], [5, 1, 4, 3], [5, 2, 4, 4]])
    assert decided_at(tokens).tolist() == [0, 3, 1, 3]


def test_the_logit_lens_follows_a_token() -> None:
    text = TextPass(tiny_gpt(n_layer=3), IDS)
    whole, one = logit_lens(text, top=65), logit_lens(text, token=7)
    assert torch.equal(one.answer, whole.probabilities[whole.ids == 7].view(4, 10))
    assert torch.equal(one.kl, whole.kl)


def test_the_logit_lens_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TextPass(tiny_gpt(n_layer=3), IDS)
    whole = logit_lens(text, top=100)
    assert whole.ids.shape == (4, 10, 65)
    assert max_difference(whole.probabilities.sum(-1), torch.ones(4, 10)) < 1e-5
    monkeypatch.setattr("model.lens.logit_lens.LOGITS_AT_ONCE", 3 * 65)
    fractions: list[float] = []
    pieces = logit_lens(text, top=2, progress=fractions.append)
    assert torch.equal(pieces.ids, whole.ids[..., :2]) and max_difference(pieces.kl, whole.kl) < 1e-5
    assert torch.equal(pieces.decided, whole.decided)
    assert fractions == sorted(fractions) and fractions[-1] == pytest.approx(1) and len(fractions) == 16


def test_edges_are_cut_one_by_one_for_any_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TextPass(tiny_gpt(n_layer=3), IDS)
    whole = one_head.head(text, layer=0, head=1, position=9, token=3).loss_change
    monkeypatch.setattr("model.lens.one_head.EDGES_AT_A_TIME", 3)
    fractions: list[float] = []
    pieces = one_head.head(text, layer=0, head=1, position=9, token=3, progress=fractions.append)
    assert max_difference(pieces.loss_change, whole) < 5e-6 and fractions == [0.15, 0.3, 0.45, 0.5, 1]
    assert EDGES_AT_A_TIME > 10
