"""A run may be saved, stopped and resumed before its second snapshot, when its charts hold nothing but step 0."""

import json
import os
import signal
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.training import TRAINING_TEXT
from model.train.settings import TrainSettings
from model.train.state import STATE_FILE
from model.train.trainer import Trainer

STEPS = 400  # enough that the scale of the snapshots is not linear near step 0


@pytest.fixture
def settings(tmp_path: Path) -> TrainSettings:
    data = tmp_path / "text.txt"
    data.write_text(TRAINING_TEXT)
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 8, "context_length": 8, "batch_size": 2}
    return TrainSettings(data=str(data), steps=STEPS, snapshots=2, eval_every=STEPS, sample_every=0, **shape)


class Stopped(Trainer):
    """A run that receives SIGTERM during every step."""

    def step(self) -> float:
        os.kill(os.getpid(), signal.SIGTERM)
        return super().step()


def circles(chart: Path) -> int:
    return len(list(ET.fromstring(chart.read_text()).iter("{http://www.w3.org/2000/svg}circle")))


def test_a_run_stops_and_resumes_before_the_second_snapshot(settings: TrainSettings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for step in (1, 2, 3):
        trainer = Stopped(settings, out, resume=step > 1)
        assert not trainer.run()
        assert trainer.progress["step"] == step
        assert (out / STATE_FILE).is_file()
        assert [row["step"] for row in json.loads((out / "training.json").read_text())["heads"]] == [0]
        assert (out / "README.md").is_file()
        assert circles(out / "heads.svg") == 4  # three roles and the uniform head, one point each


def test_a_run_saves_before_the_second_snapshot(settings: TrainSettings, tmp_path: Path) -> None:
    trainer = Trainer(replace(settings, save_every=1, steps=3), tmp_path / "out")
    assert trainer.run()
    assert [row["step"] for row in trainer.progress["heads"]] == [0, 3]
    assert circles(tmp_path / "out" / "heads.svg") == 0
