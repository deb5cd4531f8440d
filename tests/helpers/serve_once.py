"""Start ``python app.py`` as a user would, and check that it serves, writes and stops. Needs only the app's packages.

python tests/helpers/serve_once.py
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds until the models must be loaded


def free_port() -> int:
    """A free port below the range that systems use for outgoing connections."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("", port)):
            return port


def wait_until_healthy(url: str, process: "subprocess.Popen[bytes]") -> dict[str, object]:
    """The answer of ``/health`` once the models are loaded."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as response:
                return json.load(response)
        except (urllib.error.URLError, ConnectionError, TimeoutError):  # not listening, or 503 while loading
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)  # returns early if the process ends
    raise SystemExit(f"no healthy answer from {url} within {PATIENCE} s")


def call(url: str, body: bytes | None = None) -> str:
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
        return response.read().decode()


def main() -> None:
    from gradio_client import Client

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "app.py", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}) as process:
        try:
            health = wait_until_healthy(url, process)
            assert health["status"] == "ok" and health["models"], health
            page = call(url)
            assert "Headscope" in page, page[:500]
            text = Client(url, verbose=False).predict("ROMEO:", max_new_tokens=20, seed=1, api_name="/generate")
            assert len(text) >= 10, text
        finally:
            process.send_signal(signal.SIGTERM)
        print(f"served {health['models']}, wrote {text!r}, ended with {process.wait(30)}")


if __name__ == "__main__":
    main()
