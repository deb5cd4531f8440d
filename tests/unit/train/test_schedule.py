"""A run bound to the clock ends in time with a learning rate of 0, however slow its steps are."""

import json
from pathlib import Path

import pytest

from helpers.training import train_flags
from model.train.__main__ import main
from model.train.schedule import ByClock
from model.train.settings import TrainSettings
from model.train.trainer import Trainer


@pytest.mark.parametrize("slowness", [0.01, 0.03, 0.4])
def test_marks_are_passed_once_and_the_end_counts_as_one(slowness: float) -> None:
    schedule = ByClock(TrainSettings(seconds=1, snapshots=5))
    assert schedule.snapshot_due(0, 0.0)
    times = [min(1.0, slowness * step) for step in range(1, 200)]
    times = times[: times.index(1.0) + 1]
    snapshots = [schedule.snapshot_due(step, done) for step, done in enumerate(times, 1)]
    evaluations = [schedule.evaluation_due(step, done) for step, done in enumerate(times, 1)]
    assert snapshots[-1] and evaluations[-1]
    assert sum(snapshots) <= 4 and sum(evaluations) <= 12
    if slowness == 0.01:
        assert sum(snapshots) == 4 and sum(evaluations) == 12


def test_the_learning_rate_falls_to_nothing_with_the_time() -> None:
    settings = TrainSettings(seconds=60, warmup=4, decay_from=0.5)
    assert [settings.learning_rate(step, 0.0) for step in (0, 3, 4, 100)] == [0.2, 0.8, 1.0, 1.0]
    assert [settings.learning_rate(100, done) for done in (0.5, 0.75, 1.0)] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("seconds_per_step", [1.0, 3.0])
def test_a_slow_machine_makes_fewer_steps_and_still_ends_well(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch, seconds_per_step: float
) -> None:
    now, rates = 100.0, []

    class Slow(Trainer):
        clock = staticmethod(lambda: now)  # time passes only when a step is made

        def step(self) -> float:
            loss = super().step()
            nonlocal now
            now += seconds_per_step
            rates.append(self.state.optimizers[1].param_groups[0]["lr"])
            return loss

    monkeypatch.setattr("model.train.__main__.Trainer", Slow)
    out = tmp_path / "out"
    main(train_flags(text, out, "--seconds", "30", "--steps", "1000", "--snapshots", "4", "--warmup", "2"))
    report = json.loads((out / "training.json").read_text())
    assert report["finished"] and report["step"] == len(rates) == 30 / seconds_per_step
    assert rates[-1] < 0.16 * max(rates)
    assert report["heads"][0]["step"] == 0 and report["heads"][-1]["step"] == report["step"]
    assert report["history"][-1]["step"] == report["step"]
