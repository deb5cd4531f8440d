"""The recorded training of rung 3 can be reproduced, and quotes no more of the text than allowed."""

from typing import Any

import pytest
import torch

from bench import lecture
from helpers.texts import Texts
from model import ladder
from model.ladder.bigram import BigramTraining
from web.learn.bigram import lecture_training, recorded


@pytest.fixture
def recording(texts: Texts) -> dict[str, Any]:
    """The shipped recording, or one of a made text by the same script."""
    return recorded() if texts.are_published else lecture.record(texts.shakespeare)


def test_the_recorded_table_is_as_good_as_it_says(recording: dict[str, Any], texts: Texts) -> None:
    text, found = texts.shakespeare, recording
    before, after = found["before"], found["after"]
    ids = torch.tensor(ladder.CharacterTokenizer(text).encode(text))
    n = before["n_train"]
    logs = torch.tensor(found["table"], dtype=torch.float64).log()
    assert logs.exp().sum(dim=1) == pytest.approx(1, abs=1e-3)
    for part, loss in ((ids[:n], after["loss"]), (ids[n:], after["held_out"])):
        assert -logs[part[:-1], part[1:]].mean().item() == pytest.approx(loss, abs=1e-3)
    assert before["floor"] == pytest.approx(ladder.counted_bigram_loss(ids[:n], 65), abs=1e-4)
    again = BigramTraining(text, 10_000, 1e-3)
    assert again.loss_on(again.held_out) == pytest.approx(before["held_out"], abs=1e-4)
    first = again.advance(0)["points"]  # less than one point of the curve
    assert first == [] and len(found["training"]["points"]) == 200


def test_recording_quotes_the_three_hundred_characters_that_the_lecture_prints() -> None:
    before = recorded()["before"]
    assert len(before["beginning"]) == len(before["ids"]) == 300
    assert before["beginning"] == "".join(before["characters"][i] for i in before["ids"])


def test_the_sentence_is_rated_by_the_table() -> None:
    found = recorded()
    characters = found["before"]["characters"]
    *_, end = lecture_training("qu~a")
    assert [each["probability"] for each in end["sentence"]] == [
        None,
        found["table"][characters.index("q")][characters.index("u")],
        None,
        None,
    ]
    assert [each["known"] for each in end["sentence"]] == [True, True, False, True] and end["n_sentence"] == 4
