"""Each attack of ``bench.siege`` by itself, and how it affects well-behaved visitors and the log."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import pytest

from bench.harness import free_port
from bench.process import MB, Server, serving, wait_for_loops
from bench.siege.attacks import ATTACKS
from bench.siege.targets import besieged_command, files_left_by_a_killed_server
from bench.siege.visitors import Noticed, look_around, visit, warm_up
from helpers.server import Server as OwnServer
from helpers.siege.generated import Generated
from helpers.siege.watch import answer_all, own_routes
from web.serving.engines import CACHE_BYTES
from web.settings import Limits

T = TypeVar("T")
SECONDS = 20.0  # longer than any stalled connection is kept
FIRST_TOKEN = 2.0  # seconds, for the median: other tests run at the same time. bench.siege bounds the 95th percentile
BUDGET = Limits().memory_budget_mb * MB
RECOVERY = 40.0

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")


@dataclass(frozen=True)
class Besieged:
    """A server with few descriptors, and its memory before and after every feature was used once."""

    server: Server
    idle: int
    before: int


def in_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a loop and a thread of its own: a browser of other tests keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.fixture(scope="module")
def besieged() -> Iterator[Besieged]:
    port = free_port()
    with serving(besieged_command(port), port, max_descriptors=1_024) as server:
        wait_for_loops(port)
        idle = server.resident
        in_a_loop(warm_up(port))
        yield Besieged(server, idle, server.resident)


async def visits(server: Server, attack: str) -> Noticed:
    """How well-behaved visitors are affected while the server is attacked."""
    noticed, ended = Noticed(), asyncio.Event()
    visiting = [asyncio.create_task(visit(server.port, noticed, ended.is_set)) for _ in range(2)]
    await ATTACKS[attack](server.port, SECONDS)
    ended.set()
    await asyncio.gather(*visiting)
    return noticed


@pytest.mark.parametrize("attack", ATTACKS)
def test_other_clients_do_not_wait_and_nothing_is_left_behind(besieged: Besieged, attack: str) -> None:
    server, log = besieged.server, besieged.server.log_bytes
    server.forget_highest()
    noticed = in_a_loop(visits(server, attack))
    assert not noticed.lost and noticed.served > 3
    assert median(noticed.first_token) < FIRST_TOKEN
    assert server.highest <= besieged.idle + CACHE_BYTES + BUDGET + 200 * MB, (server.highest / MB, besieged)
    until = time.monotonic() + RECOVERY
    while server.resident - server.cached > besieged.before + 100 * MB or server.descriptors > 100:
        assert time.monotonic() < until, (server.resident / MB, besieged, server.descriptors)
        in_a_loop(look_around(server.port))
    assert server.log_bytes - log < 20_000


def test_a_killed_server_leaves_no_texts_behind() -> None:
    assert files_left_by_a_killed_server() == 0


def test_twenty_thousand_generated_requests(server: OwnServer, capfd: pytest.CaptureFixture[str]) -> None:
    gets = [path for method, path in own_routes(server) if method == "GET"]
    answer_all(server, islice(Generated(7, server.served.models["tiny"].sha256, gets), 20_000))
    assert "Traceback" not in capfd.readouterr().err
