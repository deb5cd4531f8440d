"""How long until the first token: from ``python app.py`` to an answer over HTTP, compared with the bare imports.

    python -m bench.start [--quick]

The first token is requested as soon as the port answers. The memory row compares a server with a loaded model, whose
16 slots hold short texts, with a server without a model. The loops were compiled by an earlier process, so that the
compiler's memory does not count.
"""

import json
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from bench.harness import CACHE, GPT2_SHAPE, Row, arguments, character_checkpoint, free_port, random_checkpoint, report
from bench.load import completions
from bench.process import MB, PATIENCE, Server, ours, started, wait_for_loops

IMPORTS = "import torch, gradio"


def app(port: int, *flags: str) -> AbstractContextManager[Server]:
    """Start the app in a separate process without waiting for it."""
    return started(ours(port, "--cache", str(CACHE / "cache"), *flags), port)


def wait_for(port: int) -> None:
    """Wait until the port responds."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.01)
    raise RuntimeError("the app did not come up")


def first_token(folder: Path) -> float:
    """Seconds from the start of the process to the first token."""
    port, started = free_port(), time.perf_counter()
    with app(port, "--checkpoint", str(folder)):
        wait_for(port)
        body = json.dumps({"prompt": "\n", "max_tokens": 1}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, headers)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    assert json.loads(answer.read())["usage"]["completion_tokens"] == 1
            except urllib.error.HTTPError as error:
                if error.code != 503:  # 503 while the checkpoints are being loaded
                    raise
                time.sleep(0.01)
            else:
                return time.perf_counter() - started


def imports() -> float:
    """The duration of the bare imports, in seconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
    return time.perf_counter() - started


def memory_row(folder: Path) -> Row:
    """Megabytes that a model adds to the process, compared with its weights as stored."""
    port = free_port()
    with app(port, "--checkpoint", str(folder)):  # compiles the loops unless they are in the cache
        wait_for(port)
        wait_for_loops(port)
    held = []
    for options in (["--checkpoint", str(folder)], ["--checkpoint", str(CACHE / "nothing")]):
        port = free_port()
        with app(port, *options) as server:
            wait_for(port)
            if not held:
                wait_for_loops(port)
                completions(port, ["\U00020000" * 8] * 16, 16, 0.1)
            else:
                time.sleep(5)  # wait for background work after the start
            held.append(server.resident)
    weights = (folder / "model.safetensors").stat().st_size
    return Row(f"{folder.name}, memory", "MB", (held[0] - held[1]) / MB, "less", {"its weights": weights / MB}, 1.6)


def main() -> None:
    rounds = 3 if arguments(__doc__ or "").quick else 9
    folder = character_checkpoint()
    found: dict[str, list[float]] = {"app": [], IMPORTS: []}
    for _ in range(rounds):
        found["app"].append(first_token(folder))
        found[IMPORTS].append(imports())
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    gpt2 = random_checkpoint("gpt2-124m-random", GPT2_SHAPE)
    rows = [Row("first token after python app.py", "s", medians.pop("app"), "less", medians, 1.25), memory_row(gpt2)]
    report("start", rows)


if __name__ == "__main__":
    main()
