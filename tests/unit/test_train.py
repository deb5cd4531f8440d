"""Training as a person runs it: it learns, it stops and goes on unharmed, it refuses what cannot work."""

import errno
import itertools
import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import model
from model.layout import check_writable
from model.train import main
from model.train_settings import TrainSettings
from model.trainer import Trainer
from model.training_state import STATE_FILE

ROOT = Path(__file__).resolve().parents[2]
TEXT = "the cat sat on the mat. the dog sat on the cat. the mat lay on the dog. " * 40
SMALL = ["--n-layer", "2", "--n-head", "2", "--n-embd", "16", "--context-length", "16", "--batch-size", "4"]
QUIET = ["--sample-every", "0", "--eval-every", "5", "--save-every", "5", "--warmup", "2"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def flags(text: Path, out: Path, *more: str) -> list[str]:
    return ["--data", str(text), "--out", str(out), *SMALL, *QUIET, *more]


class StopAfter(Trainer):
    """A run that gets its signal during a chosen step."""

    stop_step = 0

    def step(self) -> float:
        loss = super().step()
        if self.progress["step"] + 1 == self.stop_step:
            os.kill(os.getpid(), signal.SIGTERM)
        return loss


def run_to(step: int, settings: TrainSettings, out: Path, resume: bool) -> Trainer:
    trainer = StopAfter(settings, out, resume=resume)
    trainer.stop_step = step
    trainer.run()
    return trainer


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, text: Path, kind: str) -> None:
    settings = TrainSettings(
        data=str(text),
        tokenizer=kind,
        vocab_size=280,
        n_layer=2,
        n_head=2,
        n_embd=16,
        context_length=16,
        batch_size=4,
        steps=14,
        eval_every=6,
        save_every=100,
        sample_every=0,
        attn_dropout=0.1,
        autocast="float32",
    )
    whole = run_to(0, settings, tmp_path / "whole", resume=False)
    run_to(4, settings, tmp_path / "parts", resume=False)
    assert (tmp_path / "parts" / STATE_FILE).is_file()
    run_to(9, settings, tmp_path / "parts", resume=True)
    parts = run_to(0, settings, tmp_path / "parts", resume=True)
    for (name, a), (_, b) in zip(whole.gpt.state_dict().items(), parts.gpt.state_dict().items(), strict=True):
        assert torch.equal(a, b), name
    assert whole.progress["history"] == parts.progress["history"]
    assert not (tmp_path / "parts" / STATE_FILE).exists()


def test_training_learns_and_leaves_a_checkpoint(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(flags(text, out, "--steps", "60", "--dropout", "0", "--sample-every", "30")) == 0
    report = json.loads((out / "training.json").read_text())
    losses = [row["validation_loss"] for row in report["history"]]
    assert losses[-1] < 0.7 * losses[0]
    assert report["finished"] and report["step"] == 60 and report["settings"]["data"] == "text.txt"
    assert len(report["data_sha256"]) == 64
    loaded = model.load(out)
    assert "".join(step.text for step in loaded.generate("the ", 8, seed=1))
    assert f"{report['best_validation_loss']:.4f}" in (out / "README.md").read_text()
    assert "validation" in capsys.readouterr().out


def test_a_bpe_vocabulary_is_learned_and_stories_end(tmp_path: Path) -> None:
    text = tmp_path / "stories.txt"
    text.write_text("The cat sat on the mat.\n<|endoftext|>\nThe dog ran to the cat.\n<|endoftext|>\n" * 30)
    out = tmp_path / "out"
    assert main(flags(text, out, "--steps", "5", "--tokenizer", "bpe", "--vocab-size", "280")) == 0
    loaded = model.load(out)
    assert loaded.tokenizer.kind == "bpe"
    assert loaded.eos_token_id == loaded.bos_token_id == loaded.tokenizer.special_tokens["<|endoftext|>"]


def test_weights_are_kept_in_half_precision_where_that_costs_nothing(tmp_path: Path, text: Path) -> None:
    from safetensors.torch import load_file

    out = tmp_path / "out"
    main(flags(text, out, "--steps", "5"))
    assert {tensor.dtype for tensor in load_file(out / "model.safetensors").values()} == {torch.float16}
    assert json.loads((out / "config.json").read_text())["dtype"] == "float32"
    assert model.load(out).dtype == torch.float32


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_leaves_cleanly(tmp_path: Path, text: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "model.train", *flags(text, out, "--steps", "1000000", "--eval-every", "3")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:  # the first validation shows that training runs
            if "validation" in line:
                process.send_signal(number)
                break
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert "--resume goes on" in rest
    model.load(out)
    assert not json.loads((out / "training.json").read_text())["finished"]
    assert (out / STATE_FILE).is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--n-embd", "15"], "found n_embd 15 with n_head 2, expected an n_embd divisible by n_head"),
        (["--steps", "0"], "steps must be an integer from 1"),
        (["--muon-lr", "nan"], "muon_lr must be at least 0 and below 10, found nan"),
        (["--dropout", "1"], "resid_pdrop must be a number of at least 0 and below 1, found 1.0"),
        (["--tokenizer", "words"], "tokenizer must be 'char' or 'bpe', found 'words'"),
        (["--tokenizer", "bpe", "--vocab-size", "100"], "at least 257 tokens, found vocab_size=100"),
        (["--device", "abacus"], "device 'abacus' cannot be used here"),
        (["--resume"], "resume.safetensors: found no file"),
        (["--context-length", "99999"], "tokens, at least 100000 are needed"),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(flags(text, tmp_path / "out", *more))
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_nothing_is_written_over_and_resume_goes_on_with_the_same_run_only(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    settings = TrainSettings(data=str(text), n_layer=2, n_head=2, n_embd=16, context_length=16, batch_size=4, steps=9)
    run_to(3, settings, out, resume=False)
    for more, words in (
        (["--data", str(text)], "add --resume to go on"),
        (["--resume", "--n-embd", "32"], "--n-embd 32: the stopped run was started with 16"),
    ):
        with pytest.raises(SystemExit):
            main(["--out", str(out), *more])
        assert words in capsys.readouterr().err
    text.write_text(TEXT + "more")
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--resume"])
    assert "its SHA-256 differs" in capsys.readouterr().err


def test_snapshots_are_evenly_spaced_on_a_log_scale() -> None:
    steps = sorted(TrainSettings(steps=4000, snapshots=12).snapshot_steps())
    assert len(steps) == 12 and steps[0] == 0 and steps[-1] == 4000
    gaps = [math.log1p(b / 40) - math.log1p(a / 40) for a, b in itertools.pairwise(steps)]
    assert max(gaps) - min(gaps) < 0.01
    assert TrainSettings(steps=7, snapshots=12).snapshot_steps() <= set(range(8))
    assert TrainSettings(steps=7, snapshots=0).snapshot_steps() == set()


def test_snapshots_are_kept_and_open_as_models(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    main(flags(text, out, "--steps", "9", "--snapshots", "4"))
    assert sorted(path.name for path in (out / "steps").iterdir()) == [
        f"{step:06d}.safetensors" for step in (0, 1, 4, 9)
    ]
    first, last = model.load(f"{out}@000000"), model.load(f"{out}@000009")
    assert first.name == "out@000000"
    assert not torch.equal(first.trace("the cat").logits, last.trace("the cat").logits)
    with pytest.raises(model.CheckpointError, match="steps/000003.safetensors: found no file"):
        model.load(f"{out}@000003")


@pytest.mark.parametrize(
    "out", ["text.txt", "text.txt/out", "/proc/out", "/proc/some/out", "/dev/null", "x" * 300], ids=str
)
def test_a_place_that_cannot_hold_a_checkpoint_is_refused_before_training(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr(Trainer, "__init__", lambda *_, **__: pytest.fail("begun all the same"))
    with pytest.raises(SystemExit) as stopped:
        main(flags(text, tmp_path / out))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / out}: no checkpoint can be written there (" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == [text]


def test_looking_whether_a_place_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "deep" / "out")
    check_writable(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_line_and_what_was_saved_stays(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The weights fit, the state for --resume does not."""
    out = tmp_path / "out"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    try:
        with pytest.raises(SystemExit) as stopped:
            main(flags(text, out, "--steps", "20"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert stopped.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "File too large" in error and f"what was saved in {out} before stays" in error
    assert model.load(out).config.n_layer == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "text.txt"]


def test_an_error_of_the_system_is_one_line(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Trainer, "save", full)
    with pytest.raises(SystemExit) as stopped:
        main(flags(text, tmp_path / "out", "--steps", "20"))
    assert stopped.value.code == 2
    assert "No space left on device (what was saved in" in capsys.readouterr().err.splitlines()[-1]


def test_a_state_that_lacks_a_newer_setting_goes_on_with_its_default(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    settings = TrainSettings(data=str(text), n_layer=1, n_head=2, n_embd=16, context_length=16, batch_size=4, steps=6)
    trainer = run_to(3, settings, out, resume=False)
    del trainer.progress["settings"]["snapshots"]
    trainer.state.save(out)
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--resume", "--snapshots", "4"])
    assert main(["--out", str(out), "--resume", "--snapshots", "0"]) == 0


def test_a_finished_run_says_so(tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    main(flags(text, out, "--steps", "1", "--n-layer", "1", "--n-head", "1", "--batch-size", "1"))
    with pytest.raises(SystemExit) as stopped:
        main(["--out", str(out), "--resume"])
    assert stopped.value.code == 2
    assert f"the run in {out} is finished: nothing is left to resume, name another --out" in capsys.readouterr().err
    card = (out / "README.md").read_text()
    assert "1 layer, 1 head, 16 wide" in card
    assert "for 1 step of 1 window, 0 minutes (" in card
    assert "Loss over 1 step of training" in (out / "loss.svg").read_text()
