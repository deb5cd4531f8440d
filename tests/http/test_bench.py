"""The benchmarks show what they say they measure."""

from bench.page import opening
from helpers.server import Server, run_async
from web.page.link import resolve_address


def test_the_benchmark_of_the_page_opens_it(server: Server) -> None:
    """It hands the page an opening of its own, which must be one the page can show."""
    made = server.services.openings.written.entries
    before, made["tiny"] = made["tiny"], opening(server.services.served.models["tiny"], 50)
    try:
        start = run_async(resolve_address(server.services, {"model": "tiny"}))
    finally:
        made["tiny"] = before
    assert start.pointer["tokens"] == 50 and start.settings["prompt"]
