"""The benchmarks measure what they claim to, and name what is missing before they start."""

from pathlib import Path

import pytest

from bench.harness import need_browser, need_files, need_packages
from bench.page import opening
from helpers import run_async
from helpers.server import Server
from web.page.link import resolve_address


def test_page_benchmark_opens_the_page(server: Server) -> None:
    """The benchmark gives the page an opening, which the page must be able to show."""
    made = server.services.openings.written.entries
    before, made["tiny"] = made["tiny"], opening(server.services.served.models["tiny"], 50)
    try:
        start = run_async(resolve_address(server.services, {"model": "tiny"}))
    finally:
        made["tiny"] = before
    assert start.pointer["tokens"] == 50 and start.settings["prompt"]


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="^missing packages: nowhere_found, nor_this; pip install"):
        need_packages("torch", "nowhere_found", "nor_this")
    (tmp_path / "a").touch()
    with pytest.raises(SystemExit, match=f"^missing in {tmp_path}: b, c; advice$"):
        need_files(tmp_path, "a", "b", "c", advice="; advice")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="^missing browser: none of chromium, .* is installed$"):
        need_browser()
