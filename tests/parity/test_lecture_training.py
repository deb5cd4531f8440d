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


def test_a_training_draws_its_table_and_batches_as_the_lecture_does(texts: Texts) -> None:
    """One ``torch.manual_seed`` in the lecture is for the table and, after it, for all batches."""
    n_steps = 3
    training = BigramTraining(texts.shakespeare, n_steps, 1e-3)
    training.advance(float("inf"))
    ids = training.trained_on
    torch.manual_seed(1337)
    table = torch.nn.Embedding(len(training.tokenizer.characters), len(training.tokenizer.characters))
    optimizer = torch.optim.AdamW(table.parameters(), lr=1e-3)
    losses = []
    for _ in range(n_steps):
        starts = torch.randint(len(ids) - 8, (32,))
        inputs = torch.stack([ids[i : i + 8] for i in starts])
        targets = torch.stack([ids[i + 1 : i + 9] for i in starts])
        loss = torch.nn.functional.cross_entropy(table(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert training.losses == pytest.approx(losses, abs=1e-5)


def test_the_recorded_numbers_are_those_of_the_lecture_s_seed() -> None:
    found = recorded()
    characters = found["before"]["characters"]
    assert found["after"]["held_out"] == 2.4864
    assert found["table"][characters.index("Y")][characters.index("o")] == 0.3578


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
