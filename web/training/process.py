"""The process that trains one GPT: started at a low priority, and killed when its training is no longer needed."""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import model

from ..settings import NICENESS, Limits, without_secrets
from .training_request import Size, TrainingRequest, seconds_of

log = logging.getLogger(__name__)

ROOT = Path(model.__file__).resolve().parent.parent
MAX_LINE = 4_000_000  # bytes of a report
# High learning rates, so that heads form within a few hundred steps, which is all that a busy server may have time for.
RECIPE = {"dropout": 0.0, "muon_lr": 0.03, "warmup": 5, "average": 0.9, "snapshots": 12}
RECIPE |= {"steps": 1_000_000, "save_every": 1_000_000}
RATE = 6.4  # of AdamW, for embeddings, times the width: the wider a model, the smaller the steps that it needs
FINISHING = 0.06  # share of the time for the loss on the whole held-out text and for the model card
LIMITS = "Trained for a very short time on one text: it has learned how words are spelled and combined there."
NOTE = (
    "The held-out losses during the training are measured on the same part of the held-out text, or on all of it if it "
    "is short. The weights with the lowest of these losses were kept."
)


def command(
    request: TrainingRequest, limits: Limits, device: str, text: Path, out: Path, writer: Path | str | None
) -> list[str]:
    """The command line of the process that writes a checkpoint to ``out``."""
    flags: dict[str, object] = {
        "out": out,
        "arch": request.arch,
        "seed": secrets.randbits(31),  # so that models differ from their first step on
        "data": text,
        "megabytes": limits.max_training_megabytes,
        "device": device,
        "data_note": request.about,
        "recipe_note": NOTE,
        "limits": LIMITS,
    }
    if writer is not None:
        flags |= {"writer": writer, "characters": request.n_characters}
    flags |= recipe(request.size, seconds_of(request.size, limits))
    words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, "-m", "model.train.live", *words]


def recipe(size: Size, seconds: float) -> dict[str, Any]:
    """The training settings for a model of this size, so that everything takes about ``seconds``."""
    own = {"batch_size": size.batch_size, "adamw_lr": round(RATE / size.n_embd, 4)}
    return RECIPE | size.shape | own | {"seconds": round(seconds * (1 - FINISHING), 2)}


class TrainingProcess:
    """A process of ``model.train.live``. If the server dies, the process exits because its stdin is closed."""

    def __init__(self, words: list[str], log_file: Path) -> None:
        self.words, self.log_file = words, log_file
        self.process: Process | None = None
        self.killed = False

    async def reports(self) -> AsyncGenerator[dict[str, Any]]:
        """Start the process and yield its reports until it ends."""
        # Waiting threads must not spin: they would take processor time from visitors who are writing.
        environment = without_secrets(os.environ) | {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
        with self.log_file.open("wb") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *self.words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                cwd=ROOT,
                env=environment,
                limit=MAX_LINE,
                start_new_session=True,  # Ctrl-C goes to the server only
            )
        if self.killed:  # killed while it was being started
            self.kill()
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, NICENESS)
        assert self.process.stdout is not None
        try:
            async for line in self.process.stdout:
                yield json.loads(line)
        finally:
            self.kill()
            await self.process.wait()

    def stop(self) -> None:
        """End the training early and keep what it has learned."""
        if self.process and self.process.stdin and not self.process.stdin.is_closing():
            self.process.stdin.write(b"stop\n")

    def kill(self) -> None:
        """Kill the process. This is safe: it writes only to a folder that is then removed."""
        self.killed = True
        if self.process and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    @property
    def errors(self) -> str:
        """The end of its stderr."""
        with contextlib.suppress(OSError):
            return self.log_file.read_text(errors="replace")[-2_000:]
        return ""
