"""Every shell command of README and docs/ that needs no network and no other program, run in a copy of the code."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from helpers.models import ALPHABET, randomise
from helpers.oracles.other_gpts import nanogpt_weights
from helpers.serve_once import ROOT, free_port, wait_until_healthy

DOCUMENTS = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
SMALL = "--n-layer 1 --n-head 2 --n-embd 8 --context-length 8 --steps 3 --batch-size 2"
# What is not run here, and why. Each pattern must match a command, so that the list does not outlive the documents.
ELSEWHERE = {
    r"^pip install": ".ci/run installs",
    r"^npm ": ".ci/run installs",
    r"^docker |^serve |^vllm |^transformers serve|^ct2-|^HEADSCOPE_REPLICAS": "runs another program",
    r"--engine-url": "needs another engine: tests/http",
    r"EleutherAI|openai-community|web\.publish space": "needs the Hub",
    r"^python -m bench\.": "takes minutes; tests/release/test_bench.py runs them small",
    r"^python -m pytest|^python app\.py$": ".ci/run runs it",
    r"model\.checkpoint gguf": "needs an environment of its own: tests/release/test_gguf.py",
    r"--root-path": "serves below a proxy: tests/http/test_below_a_path.py",
    r"Headscope-Model-Token": "needs a model trained on the page: tests/training",
    r"gpt2\.pth": "needs published weights: tests/parity/test_convert.py",
    r"^llm |^lm_eval |^cat |^server=": "tests/release/test_clients.py",
}
PROGRAMS = r"python|curl|pip|npm|docker|serve|vllm|transformers|ct2-[\w-]+|HEADSCOPE_REPLICAS=|llm|lm_eval|cat|server="


def commands() -> list[str]:
    """One a line; an open quote or a backslash continues on the next line."""
    found = []
    for document in DOCUMENTS:
        lines = iter((ROOT / document).read_text().splitlines())
        for line in lines:
            if not re.match(rf"    (?:{PROGRAMS})", line) or re.match(r"    \w+ = |    server = ", line):
                continue
            command = line.strip()
            while command.count("'") % 2 or command.endswith("\\"):
                command += "\n" + next(lines).strip()
            found += [part.strip() for part in command.split(" && ")]
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository with the files that the documents name."""
    for name in ("app.py", "model", "web"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "checkpoints", tmp_path / "checkpoints")
    (tmp_path / "input.txt").write_text("".join(ALPHABET))
    (tmp_path / "text.txt").write_text("a small text to learn from. " * 40)
    (tmp_path / "out").mkdir()
    gpt = nanogpt_weights(n_layer=2, n_embd=24, vocab_size=len(ALPHABET), context_length=32)
    randomise(gpt, seed=3, std=0.2)
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 24, "block_size": 32, "vocab_size": len(ALPHABET), "bias": True}
    torch.save({"model": gpt.state_dict(), "model_args": sizes}, tmp_path / "out" / "ckpt.pt")
    return tmp_path


def adapted(command: str, port: int) -> str:
    """With the files that are there, a small model to train, this Python and the app's port."""
    command = command.replace("127.0.0.1:7860", f"127.0.0.1:{port}")
    command = command.replace("FILE", "text.txt").replace("path/to/folder", "checkpoints/stories-bpe")
    command = re.sub("^curl ", "curl --fail-with-body --silent --show-error ", command)
    command = re.sub("^python ", f"{sys.executable} ", command)
    return f"{command} {SMALL}" if "model.train" in command else command


def test_every_command_is_run_or_listed(copy: Path) -> None:
    everything = commands()
    for pattern in ELSEWHERE:
        assert any(re.search(pattern, command) for command in everything), pattern
    here = [command for command in everything if not any(re.search(pattern, command) for pattern in ELSEWHERE)]
    assert len(here) >= 9, here
    port = free_port()
    with subprocess.Popen([sys.executable, "app.py", "--port", str(port)], cwd=copy) as server:
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}", server)
            for command in here:
                mine = copy / "checkpoints" / "mine"
                shutil.rmtree(mine, ignore_errors=True)
                if not re.search(r"convert|model\.train", command):
                    shutil.copytree(copy / "checkpoints" / "stories-bpe", mine)
                done = subprocess.run(
                    adapted(command, port), shell=True, cwd=copy, capture_output=True, text=True, timeout=240
                )
                assert done.returncode == 0, (command, done.stdout, done.stderr)
        finally:
            server.terminate()
