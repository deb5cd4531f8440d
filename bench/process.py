"""A server in a separate process, and its resource use: memory, file descriptors, log."""

import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.harness import ROOT

PATIENCE = 180.0  # seconds for a server to come up
ENDING = 20.0  # seconds that it has to shut down
MB = 1_000_000


@dataclass(frozen=True)
class Server:
    """A running server. Its resource use is read from /proc, which only Linux has."""

    port: int
    pid: int
    log: Path

    @property
    def resident(self) -> int:
        """The memory it uses, in bytes."""
        return self.status("VmRSS")

    @property
    def highest(self) -> int:
        """Its peak memory since ``forget_highest``."""
        return self.status("VmHWM")

    @property
    def cpu_seconds(self) -> float:
        """The processor time it has used."""
        user, system = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def status(self, field: str, pid: int | None = None) -> int:
        lines = Path(f"/proc/{pid or self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024

    @property
    def trainings(self) -> int:
        """The sum of the peak memory of the trainings that it runs now, which are processes of their own."""
        total = 0
        for children in Path(f"/proc/{self.pid}/task").glob("*/children"):
            with suppress(OSError, StopIteration):  # a thread or a process has just ended
                for pid in map(int, children.read_text().split()):
                    if b"model.train.live" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        total += self.status("VmHWM", pid)
        return total

    def forget_highest(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def cached(self) -> int:
        """The memory, in bytes, in which a Headscope server caches texts of the page until something else needs it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE) as answer:
            lines = answer.read().decode().splitlines()
        return int(float(next(line for line in lines if line.startswith("headscope_runs_cached_bytes")).split()[1]))

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def log_bytes(self) -> int:
        return self.log.stat().st_size


def ours(port: int, *flags: str) -> list[str]:
    """The command that starts the app."""
    return [sys.executable, "app.py", "--port", str(port), *flags]


@contextmanager
def started(command: Sequence[str], port: int, max_descriptors: int | None = None) -> Iterator[Server]:
    """Start a server process without waiting for it; ``max_descriptors`` is its RLIMIT_NOFILE."""

    def limit_descriptors() -> None:
        if max_descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max_descriptors, max_descriptors))

    environ = os.environ | {"HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command, cwd=ROOT, env=environ, stdout=output, stderr=output, preexec_fn=limit_descriptors
            ) as process,
        ):
            try:
                yield Server(port, process.pid, log)
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ENDING)
                process.kill()


@contextmanager
def serving(
    command: Sequence[str], port: int, path: str = "/health", max_descriptors: int | None = None
) -> Iterator[Server]:
    """Start a server process, and wait until it responds on ``path``."""
    with started(command, port, max_descriptors) as server:
        until = time.monotonic() + PATIENCE
        while not answers(port, path):
            if time.monotonic() > until or has_ended(server.pid):
                raise RuntimeError(f"{' '.join(command)} did not come up: {server.log.read_text()[-2_000:]}")
            time.sleep(0.2)
        yield server


def answers(port: int, path: str) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
    except OSError:
        return False
    return True


def has_ended(pid: int) -> bool:
    """Whether a child process has ended; its status is left for ``Popen``."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def wait_for_loops(port: int) -> None:
    """Wait until compiled loops generate the texts. The first start on a machine takes a while to compile them."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line.startswith("headscope_compiled{")]
        if lines and all(line.endswith(" 1.0") for line in lines):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the loops were not compiled within {PATIENCE:g} s")
