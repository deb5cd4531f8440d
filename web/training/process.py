"""The process in which one GPT is trained: started with the lowest priority, and ended when it is no longer wanted."""

import asyncio
import contextlib
import json
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import model

from ..settings import Limits
from .ask import TrainingAsk
from .sizes import seconds_of

log = logging.getLogger(__name__)

ROOT = Path(model.__file__).resolve().parent.parent
MAX_LINE = 4_000_000  # bytes of a report
NICENESS = 19
SECRETS = ("HEADSCOPE_", "HF_", "HUGGING_FACE_")  # beginnings of variables that it does not get
RECIPE = {"dropout": 0, "warmup": 30, "snapshots": 12, "steps": 1_000_000, "save-every": 1_000_000}
FINISHING = 0.06  # of the time, for the loss on the whole held-out text and the card
LIMITS = "Trained for a very short time on one text: it has learned how words are spelled and put together there."
NOTE = (
    "The losses along the way are those of a part of the held-out text, spread evenly over it; the last one is that of "
    "all of it."
)


def command(
    ask: TrainingAsk, limits: Limits, device: str, text: Path, out: Path, writer: Path | str | None
) -> list[str]:
    """The command line of the process that writes a checkpoint to ``out``."""
    size = ask.size
    flags: dict[str, object] = {
        "out": out,
        "data": text,
        "megabytes": limits.max_training_megabytes,
        "n-layer": size.n_layer,
        "n-head": size.n_head,
        "n-embd": size.n_embd,
        "context-length": size.context_length,
        "batch-size": size.batch_size,
        "seconds": round(seconds_of(size, limits) * (1 - FINISHING), 2),
        "device": device,
        "data-note": ask.about,
        "recipe-note": NOTE,
        "limits": LIMITS,
    }
    flags |= RECIPE | ({"writer": writer} if writer is not None else {})
    return [sys.executable, "-m", "model.train.live", *(word for k, v in flags.items() for word in (f"--{k}", str(v)))]


class TrainingProcess:
    """A process of ``model.train.live``. It ends by itself when this one is gone, as its stdin then ends."""

    def __init__(self, words: list[str], log_file: Path) -> None:
        self.words, self.log_file = words, log_file
        self.process: Process | None = None

    async def reports(self) -> AsyncGenerator[dict[str, Any]]:
        """Start it and yield what it reports, to its end."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(SECRETS)}
        # Threads that wait must not spin: those who write would be kept from the processor.
        environment |= {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
        with self.log_file.open("wb") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *self.words,
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                cwd=ROOT,
                env=environment,
                limit=MAX_LINE,
                start_new_session=True,  # Ctrl-C is for the server
            )
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.process.pid, NICENESS)
        assert self.process.stdout is not None
        try:
            async for line in self.process.stdout:
                yield json.loads(line)
            await self.process.wait()
        finally:
            self.kill()

    def stop(self) -> None:
        """Let it end early and keep what it has learned."""
        if self.process and self.process.stdin and not self.process.stdin.is_closing():
            self.process.stdin.write(b"stop\n")

    def kill(self) -> None:
        """End it at once; it writes only to a folder that is then removed."""
        if self.process and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    @property
    def errors(self) -> str:
        """The end of what it wrote to stderr."""
        with contextlib.suppress(OSError):
            return self.log_file.read_text(errors="replace")[-2_000:]
        return ""
