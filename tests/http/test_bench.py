"""The benchmarks show what they say they measure."""

from bench.page import opening
from helpers.server import Server, run_async
from web.page.link import land


def test_the_benchmark_of_the_page_opens_it(server: Server) -> None:
    """It hands the page an opening of its own, which must be one the page can show."""
    made = server.services.openings.made
    before, made["tiny"] = made["tiny"], opening(server.services.served.models["tiny"], 50)
    try:
        landing = run_async(land(server.services, {"model": "tiny"}))
    finally:
        made["tiny"] = before
    assert landing.pointer["tokens"] == 50 and landing.settings["prompt"]
