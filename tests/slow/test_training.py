"""Training as a process that gets a signal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import model
from helpers.serve_once import ROOT, free_port, wait_until_healthy
from helpers.training import TRAINING_TEXT, train_flags
from helpers.training.visitors import UPLOAD, children
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_visitors_training_ends_with_the_server(checkpoints: Path, tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--checkpoint", str(checkpoints / "tiny")]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        wait_until_healthy(url, process)
        with httpx.Client(base_url=url, timeout=120) as client:
            assert client.post(f"{UPLOAD}large", content=TRAINING_TEXT.encode()).status_code == 200
            with client.stream("GET", "/train/events") as stream:
                next(line for line in stream.iter_lines() if '"training"' in line)
                (child,) = children(process.pid)
                process.send_signal(number)
                assert child.has_ended()
        process.wait(30)
    if number == signal.SIGTERM:
        assert not list(tmp_path.glob("headscope-training-*"))
