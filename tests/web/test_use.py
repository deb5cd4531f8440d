"""Every example of the Use tab runs as it stands, against the page's own address."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Server
from playwright.sync_api import expect

from web.use import DEFAULT_ADDRESS, examples


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)


def run(language: str, code: str, **environ: str) -> str:
    if language == "bash" and (not shutil.which("bash") or not shutil.which("curl")):
        pytest.skip("the example needs bash and curl")
    command = [sys.executable, "-c", code] if language == "python" else ["bash", "-ec", code]
    environ |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "NO_PROXY": "*", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)
    assert result.returncode == 0, result.stderr
    return result.stdout


def check(text: str, **environ: str) -> None:
    said = [run(language, code, **environ) for language, code in blocks(text) if "pip install" not in code]
    health, written, weights, curl_written, curl_weights = said
    assert '"ok"' in health
    assert len(written.split("\n---\n")[-2]) == 50
    assert "['R', 'O', 'M', 'E', 'O', ':']" in weights
    assert "event: complete" in curl_written and "event: complete" in curl_weights
    assert '"tokens"' in curl_weights


def test_the_examples_run(server: Server) -> None:
    check(examples(server.parts, server.url + "/", with_key=False))


def test_the_examples_run_with_a_key(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", api_key="open-sesame")
    check(examples(server.parts, server.url, with_key=True), HEADSCOPE_API_KEY="open-sesame")


@pytest.mark.parametrize(
    "address", ["http://a/\n```", "javascript:x", "http://a'b", 'http://a"', "http://a b", None, 7]
)
def test_an_odd_address_is_not_put_into_code(server: Server, address: Any) -> None:
    assert DEFAULT_ADDRESS in examples(server.parts, address, with_key=False)


@pytest.mark.browser
def test_the_page_shows_its_own_address(page: Any, server: Server) -> None:
    page.get_by_role("tab", name="Use").click()
    expect(page.get_by_text(f"curl {server.url}/health")).to_be_visible()
