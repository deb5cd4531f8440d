"""Training as a process that gets a signal."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import model
from helpers.serve_once import ROOT
from helpers.training import train_flags
from model.train.state import STATE_FILE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_leaves_cleanly(tmp_path: Path, text: Path, number: signal.Signals) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "model.train", *train_flags(text, out, "--steps", "1000000", "--eval-every", "3")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:  # the first validation shows that training runs
            if "validation" in line:
                process.send_signal(number)
                break
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert "with --resume to continue" in rest
    model.load(out)
    assert not json.loads((out / "training.json").read_text())["finished"]
    assert (out / STATE_FILE).is_file()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
