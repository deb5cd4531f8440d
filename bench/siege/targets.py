"""What the besieged server serves: the shipped model, and checkpoints that are costly in one respect."""

import json
import os
import shutil
import string
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from bench.harness import CACHE, ROOT, chat_checkpoint, free_port, random_checkpoint
from bench.process import ours, serving
from model import GPTConfig
from model.config import RotaryConfig
from model.tokenizer import CharTokenizer

# The server ends if its event loop is blocked for ten seconds, and stops questions that would take several minutes.
WATCHED = ("--watchdog-seconds", "10", "--max-question-seconds", "120")
LONG_TOKEN = "long-token"
MANY_STEPS = {"many-steps": None, "many-rotary-steps": RotaryConfig(n_dim=64)}
LONG_ID = 511  # of the last token in the vocabulary, whose place the long one takes
N_STEPS = 24
DIARY = b"my private diary, page one. "


def besieged_command(port: int) -> list[str]:
    """The command that starts the server."""
    folders = [chat_checkpoint(), long_token_checkpoint(), *map(many_steps_checkpoint, MANY_STEPS)]
    return ours(port, *(word for folder in folders for word in ("--checkpoint", str(folder))), *WATCHED)


def long_token_checkpoint() -> Path:
    """A shipped model with an added token of 50,000 characters. A server may refuse it."""
    shipped, folder = ROOT / "checkpoints" / "two-layer-steps", CACHE / LONG_TOKEN
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(shipped / name, folder)
    spec = json.loads((shipped / "tokenizer.json").read_text())
    vocab = spec["model"]["vocab"]
    last = next(text for text, i in vocab.items() if i == LONG_ID)
    del vocab[last]
    spec["model"]["merges"] = [merge for merge in spec["model"]["merges"] if joined(merge) != last]
    added = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    spec["added_tokens"].append({"id": LONG_ID, "content": "Z" * 50_000, **added})
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    return folder


def joined(merge: str | list[str]) -> str:
    return "".join(merge.split(" ") if isinstance(merge, str) else merge)


def many_steps_checkpoint(name: str) -> Path:
    """A model with more steps of its training than are kept in memory."""
    shape = GPTConfig(n_layer=4, n_head=4, n_embd=256, vocab_size=65, context_length=64, rotary=MANY_STEPS[name])
    folder = random_checkpoint(name, shape, CharTokenizer.train(string.ascii_letters + string.digits + " ,."))
    steps = folder / "steps"
    steps.mkdir(exist_ok=True)
    for i in range(N_STEPS):
        if not (steps / f"{i:06}.safetensors").is_file():
            os.link(folder / "model.safetensors", steps / f"{i:06}.safetensors")
    return folder


def files_left_by_a_killed_server(seconds: float = 60.0) -> int:
    """How many files with a visitor's text there are after a server was killed and another one started."""
    with tempfile.TemporaryDirectory() as temporary:

        def holding() -> list[Path]:
            files = [path for path in Path(temporary).rglob("*") if path.is_file()]
            return [path for path in files if DIARY in path.read_bytes()]

        for is_first in (True, False):
            port = free_port()
            command = ["env", f"TMPDIR={temporary}", *ours(port, "--checkpoint", str(chat_checkpoint()))]
            with serving(command, port) as server:
                if not is_first:
                    break
                headers = {"Content-Type": "text/plain"}
                url = f"http://127.0.0.1:{port}/train/text?size=small"
                urllib.request.urlopen(urllib.request.Request(url, DIARY * 400, headers), timeout=30).close()
                until = time.monotonic() + seconds
                while not holding() and time.monotonic() < until:
                    time.sleep(0.2)
                assert holding(), "no file has the text that a training learns from"
                subprocess.run(["kill", "-9", str(server.pid)], check=True)
        return len(holding())
