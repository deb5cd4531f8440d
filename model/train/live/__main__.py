"""A training run that another process watches: ``python -m model.train.live --out FOLDER --data FILE ...``.

Everything that happens is a line of JSON on stdout. A line ``stop`` on stdin ends the run, which keeps what it has
learned; the end of stdin means that nobody watches any more, and ends the process at once. With ``--writer`` a model
writes the text first, into the file that ``--data`` names.
"""

import argparse
import contextlib
import json
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from ...errors import CheckpointError
from ...loaded import load
from ...serving.threads import available_cores
from ..settings import TrainSettings, add_flags
from .trainer import LiveTrainer
from .writing import write_text

SHOWN_CHARACTERS = 400  # of the end of a text that a model has written
MAX_THREADS = 4  # more gain nothing on models this small


class Channel:
    """The lines to and from the process that watches."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        self.stopping = False
        self.trainer: LiveTrainer | None = None
        threading.Thread(target=self.listen, daemon=True).start()

    def report(self, told: dict[str, Any]) -> None:
        print(json.dumps(told), file=self.out, flush=True)

    def listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                self.stopping = True
                if self.trainer:
                    self.trainer.stop()
        os._exit(1)

    def watch(self, trainer: LiveTrainer) -> None:
        """Pass on that it should stop, also where that was said before it was there."""
        self.trainer = trainer
        if self.stopping:
            trainer.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m model.train.live", description="Train a GPT and report on it.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the checkpoint to")
    parser.add_argument("--megabytes", type=int, default=0, help="memory that the process may use; 0: no limit")
    parser.add_argument("--writer", default="", help="a checkpoint that writes the text first, into the --data file")
    parser.add_argument("--characters", type=int, default=200_000, help="characters that the --writer writes")
    add_flags(parser)
    given = vars(parser.parse_args())
    out, megabytes, writer, n_characters = (given.pop(name) for name in ("out", "megabytes", "writer", "characters"))
    if megabytes:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))
    torch.set_num_threads(min(MAX_THREADS, available_cores()))
    channel = Channel()
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            if writer:
                write_first(channel, writer, n_characters, Path(given["data"]), given.get("seed", 1))
            trainer = LiveTrainer(TrainSettings(**given), out, channel.report)
            channel.watch(trainer)
            trainer.run()
    except (ValueError, CheckpointError, OSError, MemoryError, RuntimeError) as error:
        is_memory = isinstance(error, MemoryError) or "allocate" in str(error)
        message = f"It needs more than the {megabytes} MB of memory that it may use." if is_memory else str(error)
        channel.report({"kind": "error", "message": message})
        return 1
    return 0


def write_first(channel: Channel, writer: str, n_characters: int, path: Path, seed: int) -> None:
    """Let the model ``writer`` write the text; stopping it early leaves what it has."""

    def report(n_written: int, text: str) -> None:
        told = {"kind": "writing", "written": min(n_written, n_characters), "of": n_characters, "text": text}
        channel.report(told)

    report(0, "")
    loaded = load(writer, device="cpu")
    text = write_text(loaded, n_characters, seed=seed, report=report)
    report(n_characters, text[-SHOWN_CHARACTERS:])
    path.write_text(text[:n_characters], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
