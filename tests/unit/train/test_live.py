"""The measurements of a watched run, compared with plain computations of the same quantities."""

import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import model
from helpers.models import ALPHABET, tiny_model
from helpers.training import TRAINING_TEXT
from model.lens.head_roles import COPYING, NO_ROLE, head_roles
from model.tokenizer import CharTokenizer
from model.train.live import MAX_SENTENCE, WINDOWS, LiveTrainer, Throttle, sentence_of, watched_windows
from model.train.losses import SMOOTHING, bigram_loss, uniform_loss, validation_loss
from model.train.settings import TrainSettings
from model.train.writing import write_text


def test_the_bigram_loss_is_that_of_counted_pairs() -> None:
    tokenizer = CharTokenizer.train(TRAINING_TEXT + "!")  # "!" is never seen
    train, held_out = TRAINING_TEXT[:2_000], TRAINING_TEXT[2_000:2_300] + "!t"
    pairs, firsts = Counter(itertools.pairwise(train)), Counter(train[:-1])
    V = tokenizer.vocab_size
    expected = 0.0
    for pair in itertools.pairwise(held_out):
        expected -= math.log((pairs[pair] + SMOOTHING) / (firsts[pair[0]] + SMOOTHING * V))
    ids = [torch.tensor(tokenizer.encode(text), dtype=torch.int32) for text in (train, held_out)]
    train_ids, held_ids = ids
    assert bigram_loss(train_ids, held_ids[:-1], held_ids[1:], V) == pytest.approx(
        expected / (len(held_out) - 1), rel=1e-9
    )
    assert uniform_loss(V) == math.log(V)


@pytest.mark.parametrize("n_tokens", [1_026, 1_500, 100_000])
def test_watched_windows_lie_evenly_in_the_text(n_tokens: int) -> None:
    windows = watched_windows(torch.arange(n_tokens), 16)
    assert windows
    inputs, targets = windows
    assert len(inputs) == WINDOWS and torch.equal(inputs + 1, targets)
    assert inputs[0, 0] == 0 and targets[-1, -1] == n_tokens - 1
    gaps = inputs[1:, 0] - inputs[:-1, 0]
    assert int(gaps.max() - gaps.min()) <= 1


@pytest.mark.parametrize("n_tokens", [2, 17, 1_025])
def test_few_held_out_tokens_are_all_watched(n_tokens: int) -> None:
    assert watched_windows(torch.arange(n_tokens), 16) is None


def test_the_weights_with_the_lowest_held_out_loss_are_kept(tmp_path: Path) -> None:
    """The held-out part has the same characters in another order: knowing which are frequent helps, more does not."""
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("efghijklmnop" + "abcd" * 447 + "dcba" * 50)
    told: list[dict[str, Any]] = []
    small = {"n_layer": 1, "n_head": 2, "n_embd": 16, "context_length": 16, "batch_size": 4, "dropout": 0.0}
    settings = TrainSettings(data=str(text), steps=120, warmup=2, snapshots=2, **small)
    assert EveryStep(settings, out, told.append).run()
    losses = {event["step"]: event["validation_loss"] for event in told if event["kind"] == "loss"}
    end = next(event for event in told if event["kind"] == "end")
    best = min(losses, key=losses.__getitem__)
    assert losses[120] > losses[best] + 0.5 and 0 < end["kept"] == best < 120 == end["step"]
    assert end["loss"] == pytest.approx(losses[best], abs=1e-3)  # the same tokens: the curve does not jump at its end
    loaded = model.load(out, dtype="float32")
    held_out = torch.tensor(loaded.tokenizer.encode("dcba" * 50))
    assert validation_loss(loaded.gpt, held_out, 16) == pytest.approx(end["loss"], abs=1e-4)
    report = json.loads((out / "training.json").read_text())
    assert report["best_step"] == best and report["best_validation_loss"] == end["loss"]
    assert [row["validation_loss"] for row in report["history"]] == [losses[step] for step in losses if step]
    # The slider over the snapshots has these weights too, with the scores of their heads.
    assert (out / f"steps/{best:06d}.safetensors").is_file() and (out / "steps/000120.safetensors").is_file()
    assert best in (steps := [row["step"] for row in report["heads"]]) and steps == sorted(set(steps))
    # They are the last that is shown, and their heads have the roles that they have when the model is opened.
    shown = [event for event in told if event["kind"] == "snapshot"][-1]
    seconds = {event["step"]: event["seconds"] for event in told if event["kind"] == "loss"}
    assert (shown["step"], shown["seconds"]) == (best, seconds[best])
    labels = [label for row in head_roles(loaded).labels for label in row]
    for role, label in zip((role for row in shown["heads"]["roles"] for role in row), labels, strict=True):
        assert label == role[0].replace("_", " ") if role else label in (NO_ROLE, COPYING)


class EveryStep(LiveTrainer):
    """A run whose loss is measured after every step."""

    def __init__(self, settings: TrainSettings, folder: Path, report: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(settings, folder, report)
        self.losses = Throttle(itertools.count().__next__, 0.0, 1e9)
        self.samples = Throttle(lambda: 0.0, 1.0, 1.0)


def test_the_bigram_line_is_measured_where_the_curve_is_and_the_clock_stops_with_the_training(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TRAINING_TEXT * (1 + 30_000 // len(TRAINING_TEXT)))
    told: list[dict[str, Any]] = []
    small = {"n_layer": 1, "n_head": 2, "n_embd": 16, "context_length": 16, "batch_size": 4, "dropout": 0.0}
    trainer = SlowEnd(TrainSettings(data=str(text), steps=3, warmup=1, **small), tmp_path / "out", told.append)
    assert trainer.windows and trainer.run()
    start, end = (next(event for event in told if event["kind"] == kind) for kind in ("start", "end"))
    train, held_out, V = trainer.data.train, trainer.data.validation, trainer.config.vocab_size
    assert start["bigram"] == bigram_loss(train, *trainer.windows, V)
    assert end["bigram"] == bigram_loss(train, held_out[:-1], held_out[1:], V) != start["bigram"]
    report = json.loads((tmp_path / "out" / "training.json").read_text())
    assert report["bigram_validation_loss"] == end["bigram"]
    assert 0 < end["seconds"] < 1_000


class SlowEnd(LiveTrainer):
    """A run whose loss on all held-out tokens takes 1,000 seconds to measure."""

    skipped = 0.0

    def clock(self) -> float:
        return time.monotonic() + self.skipped

    def validation_loss(self) -> float:
        self.skipped += 1_000
        return super().validation_loss()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("of it.\n\nA short one\nThis line is long enough to be shown.\n", "This line is long enough to be shown."),
        ("x\n" + "word " * 30, "word " * 8 + "word"),
        ("n" * 100, "n" * MAX_SENTENCE),
        ("a\nb\nc\n", "a\nb\nc\n"),
    ],
)
def test_the_sentence_is_a_whole_line_or_whole_words(text: str, sentence: str) -> None:
    assert sentence_of(text) == sentence


def test_a_model_writes_as_much_as_requested() -> None:
    loaded = tiny_model(tokenizer=CharTokenizer.train(ALPHABET), context_length=32)
    told: list[tuple[int, str]] = []
    text = write_text(loaded, 3_000, seed=1, report=lambda *now: told.append(now))
    assert 3_000 <= len(text) < 3_000 + 64 * 33 and set(text) <= {*ALPHABET, "\n"}
    counts = [n for n, _ in told]
    assert counts == sorted(counts) and len(counts) == 4
    assert write_text(loaded, 3_000, seed=1, report=lambda *_: None) == text
    assert write_text(loaded, 3_000, seed=2, report=lambda *_: None) != text
