"""A server with very short trainings, and visitors who train there."""

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.server import Server, start
from helpers.training import TRAINING_TEXT
from web.training import process, training_request, trainings
from web.training.training_request import Size, seconds_of

QUICK = Size("small", n_layer=2, n_head=2, n_embd=16, context_length=16, batch_size=4, seconds=1, enough=2_000)
ENDLESS = Size("large", n_layer=1, n_head=2, n_embd=16, context_length=16, batch_size=4, seconds=150)
UPLOAD = "/train/text?size="
STAND_IN = Path(__file__).with_name("stand_in.py")


def quick_server(checkpoints: Path, **changes: Any) -> Iterator[Server]:
    """The app with the model "tiny" and two sizes to train; "large" takes longer than any test."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training_request, "SIZES", (QUICK, ENDLESS))
        patched.setattr(process, "NICENESS", 0)  # other tests run at the same time
        patched.setattr(trainings, "EXPIRY_CHECK_SECONDS", 0.1)
        server = start(checkpoints / "tiny", **changes)
        yield server
        server.close()


def learn_nothing(monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> None:
    """Replace training processes with a stand-in that leaves a copy of ``checkpoint``, for tests of everything around
    them. A process that imports torch takes seconds to start.
    """

    def stand_in(request: Any, limits: Any, device: str, text: Path, out: Path, writer: object) -> list[str]:
        seconds = str(seconds_of(request.size, limits))
        return [sys.executable, "-IS", str(STAND_IN), "model.train.live", str(out), str(checkpoint), seconds]

    monkeypatch.setattr(trainings, "command", stand_in)


class Visitor(httpx.Client):
    """A browser with its cookies, and its actions on the Train tab."""

    def __init__(self, server: Server) -> None:
        super().__init__(base_url=server.url, timeout=120)

    def train(self, text: str = TRAINING_TEXT, size: str = "small") -> httpx.Response:
        return self.post(f"{UPLOAD}{size}", content=text.encode())

    def events(self) -> Iterator[dict[str, Any]]:
        """The events, until the last one or until this is closed."""
        with self.stream("GET", "/train/events") as response:
            assert response.status_code == 200
            for line in response.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    def watch_until(self, kind: str, **values: Any) -> dict[str, Any]:
        """The first event of this kind with these values."""
        for event in self.events():
            if event["kind"] == kind and values.items() <= event.items():
                return event
        raise AssertionError(f"no event {kind} {values}")


class Child:
    """A training process, found by its parent."""

    def __init__(self, pid: int) -> None:
        self.pid, self.descriptor = pid, os.pidfd_open(pid)
        self.nice = os.getpriority(os.PRIO_PROCESS, pid)

    def environment(self) -> bytes:
        return Path(f"/proc/{self.pid}/environ").read_bytes()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def has_ended(self, timeout: float = 60) -> bool:
        """Whether the process ends within that time."""
        return bool(select.select([self.descriptor], [], [], timeout)[0])


def children(parent: int | None = None) -> list[Child]:
    """The training processes of a server, by default of one in this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (folder / "stat").read_text().rpartition(") ")[2].split()
            is_training = b"model.train.live" in (folder / "cmdline").read_bytes()
            if is_training and stat[0] != "Z" and int(stat[1]) == (parent or os.getpid()):
                found.append(Child(int(folder.name)))
    return found
