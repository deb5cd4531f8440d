"""Training refuses impossible settings with one line before it writes anything, and saved files are kept."""

import errno
import resource
from pathlib import Path

import pytest

import model
from helpers.training import train_flags
from model.checkpoint.write import check_writable
from model.train.__main__ import main
from model.train.trainer import Trainer


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--n-embd", "15"], "found n_embd 15 with n_head 2, expected n_embd to be a multiple of n_head"),
        (["--steps", "0"], "steps must be an integer from 1"),
        (["--arch", "mamba"], "arch must be 'gpt2' or 'llama', found 'mamba'"),
        (["--muon-lr", "nan"], "muon_lr must be at least 0 and below 10, found nan"),
        (["--dropout", "1"], "resid_pdrop must be a number of at least 0 and below 1, found 1.0"),
        (["--tokenizer", "words"], "tokenizer must be 'char' or 'bpe', found 'words'"),
        (["--tokenizer", "bpe", "--vocab-size", "100"], "at least 257 tokens, found vocab_size=100"),
        (["--device", "abacus"], "device 'abacus' cannot be used here"),
        (["--average", "1"], "average must be at least 0 and below 1, found 1.0"),
        (["--repeated", "1.5"], "repeated must be from 0 to 1, found 1.5"),
        (["--prompt", "\u00fc"], "\u00fc"),
        (["--resume"], "left no resume.safetensors, so there is nothing to resume: choose another --out"),
        (["--context-length", "99999"], "tokens, but at least 100000 are needed"),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(train_flags(text, tmp_path / "out", *more))
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize(
    "out", ["text.txt", "text.txt/out", "/proc/out", "/proc/some/out", "/dev/null", "x" * 300], ids=str
)
def test_a_place_that_cannot_hold_a_checkpoint_is_refused_before_training(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr(Trainer, "__init__", lambda *_, **__: pytest.fail("begun all the same"))
    with pytest.raises(SystemExit) as stopped:
        main(train_flags(text, tmp_path / out))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / out}: cannot write a checkpoint there (" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == [text]


def test_looking_whether_a_place_can_be_written_leaves_nothing(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "deep" / "out")
    check_writable(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_prints_one_line_and_keeps_saved_files(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The weights fit, the state for --resume no longer does once the optimizers have theirs: the first one stays."""
    out = tmp_path / "out"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
    try:
        with pytest.raises(SystemExit) as stopped:
            main(train_flags(text, out, "--steps", "20"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert stopped.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "File too large" in error and f"earlier saves in {out} are intact" in error
    assert model.load(out).config.n_layer == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "text.txt"]
    assert main(["--out", str(out), "--resume"]) == 0


def test_a_system_error_gives_one_line(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Trainer, "save", full)
    with pytest.raises(SystemExit) as stopped:
        main(train_flags(text, tmp_path / "out", "--steps", "20"))
    assert stopped.value.code == 2
    assert "No space left on device (earlier saves in" in capsys.readouterr().err.splitlines()[-1]
