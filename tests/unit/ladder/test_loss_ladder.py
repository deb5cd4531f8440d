"""The loss ladder: the recorded losses fall from part to part, and a seed gives the same ones again."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from model.ladder.loss_ladder import CONTEXT_LENGTH, MODELS, GrowingModel, train_one, train_peeking
from web.learn.bigram import recorded
from web.learn.block import loss_ladder

TEXT = "the cat sat on the mat, and the dog sat on the cat. " * 30


def test_every_part_lowers_the_recorded_loss() -> None:
    found = loss_ladder()["models"]
    assert [each["name"] for each in found] == list(MODELS)
    *losses, bare = [each["held_out_loss"] for each in found]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == len(losses)
    gains = [before - after for before, after in pairwise(losses)]
    assert gains[3] == min(gains)  # residual stream and layer norm, with a single block
    assert bare > losses[3] + 0.1  # but without them, four blocks are worse than one, by more than chance


def test_the_bigram_model_has_half_the_steps_of_rung_3() -> None:
    assert 2 * loss_ladder()["steps"] == recorded()["training"]["steps"]


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_gives_the_same_losses(name: str) -> None:
    first, second, other = (train_one(name, TEXT, steps=20, seed=seed) for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize("settings", [{}, {"has_mlp": True}, {"n_layer": 4, "has_mlp": True, "has_residual": True}])
def test_no_token_looks_ahead(settings: dict[str, Any]) -> None:
    model = GrowingModel(10, 4, **settings)
    ids = torch.arange(CONTEXT_LENGTH)[None]
    changed = ids.clone()
    changed[0, 5] = 9
    torch.testing.assert_close(model(ids)[:, :5], model(changed)[:, :5])
    assert not torch.equal(model(ids)[:, 5:], model(changed)[:, 5:])


def test_only_without_the_mask_does_training_promise_more_than_writing_keeps() -> None:
    masked, peeking = (train_peeking(has_mask, TEXT, steps=400) for has_mask in (True, False))
    assert masked.in_training == pytest.approx(masked.writing, abs=1e-4)
    assert peeking.in_training < masked.in_training < peeking.writing


def test_rung_7_prints_the_recorded_losses() -> None:
    masked, peeking = loss_ladder()["peeking"]
    told = (Path(__file__).parents[3] / "web/js/learn/content/07_causal_masking.mjs").read_text(encoding="utf-8")
    for loss in (masked["writing"], peeking["in_training"], peeking["writing"]):
        assert f"{loss:.2f}" in told
    assert masked["in_training"] == masked["writing"] and peeking["writing"] > math.log(65)


@pytest.mark.release
@pytest.mark.timeout(900)
@pytest.mark.parametrize("has_mask", [True, False])
def test_the_recorded_losses_with_and_without_the_mask_are_reproduced(has_mask: bool, texts: object) -> None:
    from helpers.texts import Texts

    assert isinstance(texts, Texts)
    if not texts.are_published:
        pytest.skip("needs tiny Shakespeare")
    again = train_peeking(has_mask, texts.shakespeare)
    recorded = loss_ladder()["peeking"][0 if has_mask else 1]
    assert again.in_training == pytest.approx(recorded["in_training"], abs=0.02)
    assert again.writing == pytest.approx(recorded["writing"], abs=0.02 if has_mask else 0.5)


@pytest.mark.release
@pytest.mark.timeout(900)  # four blocks take minutes
@pytest.mark.parametrize("place", range(len(MODELS)), ids=MODELS)
def test_the_recorded_losses_are_reproduced(place: int, texts: object) -> None:
    from helpers.texts import Texts

    assert isinstance(texts, Texts)
    if not texts.are_published:
        pytest.skip("needs tiny Shakespeare")
    recorded = loss_ladder()["models"][place]
    again = train_one(recorded["name"], texts.shakespeare)
    # Without residual sums and norms, the rounding of a processor decides as much as a seed: 2.30 to 2.63 were seen.
    tolerance = 0.25 if recorded["name"] == "four bare blocks" else 0.01
    for name in ("train_loss", "held_out_loss"):
        assert getattr(again, name) == pytest.approx(recorded[name], abs=tolerance)
