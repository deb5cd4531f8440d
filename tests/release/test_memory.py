"""The memory that loading a checkpoint takes, and that visitors leave allocated in the server."""

import subprocess
import sys
from pathlib import Path

import pytest

from helpers.models import tiny_model
from helpers.serve_once import ROOT

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux's /proc")
# A separate process, so that memory left by other tests does not count. The model is narrow, as only the shape of its
# attention fills memory: 48 heads x 256 tokens, as the shipped character model has them.
VISITS = """
import os, sys
sys.path[:0] = [{root!r}, {tests!r}]
import torch
torch.set_num_threads(1)
from helpers.engine import recorded_events
from helpers.models import tiny_model
from web.runs.store import Runs

loaded = tiny_model(n_layer=6, n_head=8, n_embd=48, context_length=256)
runs = Runs()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def visit(seed):
    run = runs.new(loaded, [1 + seed % 60], 255)
    for event in recorded_events(loaded, [1 + seed % 60], 256, seed=seed):
        run.take(event)
        if run.recording.n_rows % 64 == 0:
            run.frame(run.recording.n_rows - 64)
            runs.exact.picture(run, 2, 5, 0)
            runs.exact.logits(run, len(run.ids) - 1)
    runs.end(run)
    for layer, column in ((0, 0), (3, 8), (5, 9), (6, 8)):
        runs.exact.picture(run, layer, column, 0)
    runs.exact.logits(run, 40)
    runs.recompute(loaded, run.ids, 1) if seed % 5 == 0 else None

for seed in range(20):
    visit(seed)
before = resident()
for seed in range(20, 220):
    visit(seed)
print(resident() - before)
"""


# VmHWM is the peak of the memory since the writing of "5".
LOADING = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
import torch
torch.set_num_threads(1)
import model

def status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024

model.load({small!r}, device="cpu")  # so that everything is imported
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
loaded = model.load({large!r}, device="cpu", dtype={dtype!r})
print(status("VmHWM") - before)
"""


@pytest.mark.parametrize(("dtype", "n_bytes"), [("float32", 4), ("bfloat16", 2)])
def test_a_checkpoint_is_read_tensor_by_tensor(dtype: str, n_bytes: int, tmp_path: Path) -> None:
    """The weights are in memory once, apart from a few matrices; the file has 18 of the largest."""
    tiny_model().save(tmp_path / "small")
    large = tiny_model(n_layer=6, n_head=8, n_embd=512)
    large.save(tmp_path / "large")
    program = LOADING.format(root=str(ROOT), small=str(tmp_path / "small"), large=str(tmp_path / "large"), dtype=dtype)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    weights, largest = n_bytes * large.gpt.config.n_parameters, 4 * 512 * 4 * 512
    assert 0.9 * weights < int(done.stdout) < weights + 8 * largest


def test_two_hundred_visits_leave_less_than_fifty_megabytes() -> None:
    program = VISITS.format(root=str(ROOT), tests=str(ROOT / "tests"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50_000_000
