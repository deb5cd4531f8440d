"""A run that is killed, wherever that happens, leaves a folder that --resume continues from, and no stray files."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import model
from helpers.training import train_flags
from model.checkpoint.write import remove_leftovers, write_atomic
from model.train.__main__ import main
from model.train.state import STATE_FILE, TrainingState
from model.train.trainer import Trainer

FLAGS = ("--steps", "6", "--eval-every", "3", "--save-every", "100")


class Killed(BaseException):
    """Raised in place of the end of the process."""


def kill(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize("method", ["write_weights", "snapshot", "step", "evaluate", "finish"])
def test_a_run_killed_anywhere_can_be_resumed(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Trainer, method, kill)
        main(train_flags(text, out, *FLAGS, "--snapshots", "2"))
    with pytest.raises(SystemExit):
        main(train_flags(text, out, *FLAGS))
    assert main(["--out", str(out), "--resume"]) == 0
    assert model.load(out).config.n_layer == 2
    assert not (out / STATE_FILE).exists()


def test_a_run_killed_before_its_first_save_left_nothing(
    tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(TrainingState, "save", kill)
        main(train_flags(text, tmp_path / "out", *FLAGS))
    assert main(train_flags(text, tmp_path / "out", *FLAGS)) == 0


def test_weights_without_a_state_are_not_written_over(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(train_flags(text, out, *FLAGS)) == 0
    for more, words in (([], "already contains model.safetensors: choose another --out"), (["--resume"], "finished")):
        with pytest.raises(SystemExit):
            main([*train_flags(text, out, *FLAGS), *more])
        assert words in capsys.readouterr().err


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "steps").mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f"out/.resume.safetensors.{gone.pid}", f"out/steps/.000001.safetensors.{gone.pid}"]
    kept = [f"out/.resume.safetensors.{os.getpid()}", "out/.notes", f"out/a.{gone.pid}", f".other.{gone.pid}.abcdefgh"]
    for name in (*names, *kept):
        (tmp_path / name).write_text("half")
    (tmp_path / f".out.{gone.pid}.abcd_123").mkdir()
    remove_leftovers(out)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)
    assert not (tmp_path / f".out.{gone.pid}.abcd_123").exists()


def test_a_process_killed_while_it_writes_leaves_what_the_next_run_removes(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        write_atomic(tmp_path / "file", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        os._exit(0)
    (tmp_path / f".file.{child}").write_text("half")
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []
