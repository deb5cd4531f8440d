"""An HTML file opened in Firefox, offline, shows what it shows in Chromium.

Firefox is driven by its own protocol, Marionette: messages of JSON, each after its length.
"""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.models import tiny_model
from helpers.serve_once import free_port

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
TEXT = "To be, or not to be"
# Waits until the number under the pointer is there, then reads the page.
READ = """
const [done] = arguments;
localStorage["headscope-details"] = "on";
document.querySelector(".hs-details:not([aria-checked=true])")?.click();
const look = () => {
  const number = document.querySelector(".hs-number")?.textContent;
  if (!number) return setTimeout(look, 50);
  const text = document.querySelector('[role="group"][aria-label="Text"]').textContent;
  done({ number, text, tiles: document.querySelectorAll(".hs-grid canvas").length });
};
look();
"""


class Firefox:
    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        while True:  # until Firefox listens
            assert process.poll() is None, "Firefox ended"
            try:
                self.stream = socket.create_connection(("127.0.0.1", port), timeout=60).makefile("rwb")
                break
            except ConnectionRefusedError:
                continue
        self.n = 0
        self.read()  # its greeting
        self.send("WebDriver:NewSession", capabilities={"alwaysMatch": {"timeouts": {"script": 30_000}}})

    def read(self) -> Any:
        length = b""
        while (byte := self.stream.read(1)) != b":":
            length += byte
        return json.loads(self.stream.read(int(length)))

    def send(self, command: str, **parameters: Any) -> Any:
        self.n += 1
        message = json.dumps([0, self.n, command, parameters]).encode()
        self.stream.write(b"%d:%s" % (len(message), message))
        self.stream.flush()
        _, _, error, result = self.read()
        assert error is None, error
        return result


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    if FIREFOX is None:
        pytest.skip("Firefox is not installed")
    port, profile = free_port(), tmp_path / "profile"
    profile.mkdir()
    (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\nuser_pref("network.proxy.type", 0);\n')
    command = [FIREFOX, "--headless", "--offline", "--marionette", "--profile", str(profile)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Firefox(port, process)
        finally:
            process.kill()


@pytest.mark.slow
def test_a_file_is_drawn_in_firefox(firefox: Firefox, tmp_path: Path) -> None:
    tiny_model(n_layer=3, n_head=4, context_length=64).trace(TEXT).to_html(tmp_path / "text.html")
    firefox.send("WebDriver:Navigate", url=(tmp_path / "text.html").as_uri())
    shown = firefox.send("WebDriver:ExecuteAsyncScript", script=READ, args=[])["value"]
    assert shown["text"] == TEXT and shown["tiles"] == 12
    assert 0 <= float(shown["number"].rstrip("%")) <= 100
