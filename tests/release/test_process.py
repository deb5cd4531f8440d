"""The command as a process: the address it listens on; SIGTERM lets requests finish, and the exit status is 0."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from gradio import tunneling
from huggingface_hub.constants import HF_HOME

from helpers.gate import PATIENCE
from helpers.serve_once import ROOT, free_port, wait_until_healthy


def ask(url: str, **body: Any) -> Any:
    content = json.dumps({"prompt": "ab", "stream": True} | body).encode()
    return urllib.request.urlopen(urllib.request.Request(f"{url}/v1/completions", content), timeout=60)


@pytest.mark.parametrize("grace", ["30", "0"])
def test_sigterm_lets_running_texts_finish(checkpoints: Path, grace: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "app.py", "--checkpoint", str(checkpoints / "tiny"), "--port", str(port)]
    command += ["--grace-seconds", grace]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}) as process:
        wait_until_healthy(url, process)
        stream = ask(url, max_tokens=3000, context_shift=True)
        stream.readline()
        process.send_signal(signal.SIGTERM)
        with pytest.raises(urllib.error.HTTPError) as refused:
            while True:  # until the signal has arrived
                ask(url, max_tokens=1).read()
        assert refused.value.code == 503 and json.load(refused.value)["error"]["code"] == "closing"
        chunks = [json.loads(line[6:]) for line in stream if line.startswith(b"data: {")]
        (last,) = chunks[-1]["choices"]
        assert last["finish_reason"] == "length" and last.get("cut_off_by") == (None if grace == "30" else "deadline")
        assert process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_exits_at_once(checkpoints: Path, number: signal.Signals) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "app.py", "--checkpoint", str(checkpoints / "tiny"), "--port", str(port)]
    command += ["--grace-seconds", "300"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}) as process:
        wait_until_healthy(url, process)
        stream = ask(url, max_tokens=4000, context_shift=True, n=16)
        stream.readline()
        process.send_signal(number)
        with pytest.raises(urllib.error.HTTPError):
            while True:  # until the signal has arrived
                ask(url, max_tokens=1).read()
        process.send_signal(number)
        assert process.wait(5) == 128 + number


TUNNEL = """#!{python}
import os, sys, time
with open({told!r}, "w") as file:
    print(os.getpid(), *sys.argv[1:], file=file)
print("start proxy success: http://abc123.gradio.live", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("n_signals", [1, 2])
def test_a_shared_server_takes_its_tunnel_with_it(checkpoints: Path, tmp_path: Path, n_signals: int) -> None:
    """With a program in place of the one that Gradio downloads."""
    program = tmp_path / tunneling.BINARY_PATH.removeprefix(HF_HOME).lstrip("/")
    told, port = tmp_path / "told", free_port()
    program.parent.mkdir(parents=True)
    program.write_text(TUNNEL.format(python=sys.executable, told=str(told)))
    program.chmod(0o755)
    environ = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "GRADIO_SHARE_SERVER_ADDRESS": "127.0.0.1:7000"}
    environ["PYTHONUNBUFFERED"] = "1"  # Gradio prints the address without flushing it
    command = [sys.executable, "app.py", "--checkpoint", str(checkpoints / "tiny"), "--port", str(port), "--share"]
    command += ["--grace-seconds", "300"]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert any("public URL: https://abc123.gradio.live" in line for line in process.stdout)
        wait_until_healthy(f"http://127.0.0.1:{port}", process)
        pid, *arguments = told.read_text().split()
        assert arguments[arguments.index("-l") + 1] == str(port) and "127.0.0.1" in arguments
        stream = ask(f"http://127.0.0.1:{port}", max_tokens=4000, context_shift=True) if n_signals == 2 else None
        process.send_signal(signal.SIGTERM)
        if stream:
            with pytest.raises(urllib.error.HTTPError):
                while True:  # until the signal has arrived
                    ask(f"http://127.0.0.1:{port}", max_tokens=1).read()
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == (0 if n_signals == 1 else 128 + signal.SIGTERM)
    until = time.monotonic() + PATIENCE
    while is_running(int(pid)):
        assert time.monotonic() < until


def is_running(pid: int) -> bool:
    """Whether a process that is not a child of this one is still running."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_sigterm_while_it_still_starts(checkpoints: Path) -> None:
    """The openings are written once the models are loaded, so the process may be inside torch."""
    port = free_port()
    command = [sys.executable, "app.py", "--checkpoint", str(checkpoints / "tiny"), "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}) as process:
        wait_until_healthy(f"http://127.0.0.1:{port}", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_command_listens_everywhere_on_a_space(checkpoints: Path) -> None:
    port = free_port()
    environ = {key: value for key, value in os.environ.items() if key != "GRADIO_SERVER_NAME"}
    environ |= {"SPACE_ID": "someone/space", "HEADSCOPE_PORT": str(port), "NO_PROXY": "*"}
    command = [sys.executable, "app.py", "--checkpoint", str(checkpoints / "tiny")]
    with subprocess.Popen(command, cwd=ROOT, env=environ) as process:
        try:
            # This loopback address answers only if the server listens on all addresses.
            assert wait_until_healthy(f"http://127.0.0.2:{port}", process)["models"] == ["tiny"]
            with urllib.request.urlopen(f"http://127.0.0.2:{port}/", timeout=10) as page:
                assert b"Headscope" in page.read()
        finally:
            process.terminate()


def test_the_app_starts_serves_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "tests/helpers/serve_once.py"], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0 and "served" in done.stdout, done.stdout + done.stderr
