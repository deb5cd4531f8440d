"""The server as a process of its own, and what it takes: memory, descriptors, log."""

import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 180.0  # seconds for a server to come up
MB = 1_000_000


@dataclass(frozen=True)
class Server:
    """A running server. Linux only: what it takes is read from /proc."""

    port: int
    pid: int
    log: Path

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds."""
        return self.status("VmRSS")

    @property
    def highest(self) -> int:
        """The most it held since ``forget_highest``."""
        return self.status("VmHWM")

    def status(self, field: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024

    def forget_highest(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def log_bytes(self) -> int:
        return self.log.stat().st_size


def wait_until_healthy(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the server did not come up") from None
            time.sleep(0.2)


@contextmanager
def serving(folder: Path, port: int, flags: Sequence[str] = (), max_descriptors: int | None = None) -> Iterator[Server]:
    """``python app.py`` with one checkpoint, once it is loaded; ``max_descriptors`` is its RLIMIT_NOFILE."""

    def limit_descriptors() -> None:
        if max_descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max_descriptors, max_descriptors))

    command = [sys.executable, "app.py", "--checkpoint", str(folder), "--port", str(port), *flags]
    environ = os.environ | {"HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
    with tempfile.TemporaryDirectory() as beside:
        log = Path(beside) / "log"
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command, cwd=ROOT, env=environ, stdout=output, stderr=output, preexec_fn=limit_descriptors
            ) as process,
        ):
            try:
                wait_until_healthy(port, process)
                yield Server(port, process.pid, log)
            finally:
                process.kill()
